//! All integration tests, in one binary: each further binary would link the AWS SDK again.

mod architecture;
#![expect(unreachable_pub, reason = "nothing is outside of a test binary")]

mod example;
mod fleet_corpus;
mod managers_ec2;
mod managers_eks;
mod managers_iam;
mod sample;
mod simulator;
mod store_suite;
mod support;
mod wire;
