//! All integration tests, in one binary: each further binary would link the AWS SDK again.

mod architecture;
mod example;
mod fleet_corpus;
mod managers_ec2;
mod managers_eks;
mod sample;
mod simulator;
mod store_suite;
mod support;
