//! The call log: what was asked of the simulated AWS, and what became of it.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Service;
use super::world::{digest, hex};
use crate::api::{AccountId, Region};

/// One call in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// Number of the call, from 1.
    pub number: u64,
    /// Simulated time.
    pub time: Timestamp,
    /// Account that was called.
    pub account: AccountId,
    /// Region that was called.
    pub region: Region,
    /// ARN of the caller.
    pub principal: String,
    /// Service.
    pub service: Service,
    /// Operation, e.g. `CreateVpc`.
    pub operation: String,
    /// Whether the operation changes resources.
    pub mutating: bool,
    /// `OK`, AWS's error code, or `ConnectionReset` where the caller got no answer.
    pub outcome: String,
    /// Whether the world changed, which differs from a good outcome where an answer was lost.
    pub effective: bool,
    /// Request id that the caller was told.
    pub request_id: String,
    /// Digest of the parameters.
    pub digest: String,
    /// Parameters of a mutating call.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
}

/// The newest calls, and a digest over all of them.
#[derive(Debug, Default)]
pub(crate) struct Log {
    records: VecDeque<CallRecord>,
    digest: [u8; 32],
}

/// More than one cold start of a large fleet, and still bounded.
const KEPT: usize = 200_000;

impl Log {
    pub(crate) fn push(&mut self, record: CallRecord) {
        self.digest = digest(&[
            &self.digest,
            record.service.scope().as_bytes(),
            record.operation.as_bytes(),
            record.account.as_str().as_bytes(),
            record.region.as_str().as_bytes(),
            record.outcome.as_bytes(),
            record.digest.as_bytes(),
            record.time.to_string().as_bytes(),
        ]);
        if self.records.len() == KEPT {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &CallRecord> {
        self.records.iter()
    }

    /// The records after a number: numbers rise, though some requests are no calls and leave a gap.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = &CallRecord> {
        let from = self.records.partition_point(|record| record.number <= number);
        self.records.range(from..)
    }

    /// Digest over every call so far: the same seed must give the same.
    pub(crate) fn digest(&self) -> String {
        hex(&self.digest)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Digest of parameters, whatever the order of their names.
pub(crate) fn parameters_digest(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    hex(&digest(&[text.as_bytes()])).chars().take(16).collect()
}

/// JSON with sorted names: equal for equal values.
pub(crate) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.sort();
            out.push('{');
            for name in names {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                canonical(map.get(name).unwrap_or(&Value::Null), out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
