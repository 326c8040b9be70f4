//! All integration tests, in one binary: each further binary would link the AWS SDK again.

#![expect(unreachable_pub, reason = "nothing is outside of a test binary")]
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod accounts;
mod ack_fields;
mod architecture;
mod binary;
mod blockers;
mod boundaries;
mod chainsaw;
mod cli;
mod clock;
mod configured;
mod creates;
mod drift;
mod end_to_end;
mod example;
mod fleet_corpus;
mod gate;
mod graph_cases;
mod graph_faults;
mod guard;
mod held_store;
mod hostile;
mod hostile_text;
mod instances;
mod managers_ec2;
mod managers_eks;
mod managers_iam;
mod mutations;
mod orphans;
mod removal;
mod replacement;
mod sample;
mod second_opinion;
mod seeds;
mod simulator;
mod store_suite;
mod support;
mod twins;
mod wire;
