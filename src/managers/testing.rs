//! Desired objects for the unit tests of managers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Desired;
use crate::api::ObjectKey;

/// A desired object named `demo` in the fleet `test`.
pub(crate) fn desired(group: &str, kind: &str, spec: Value) -> Desired {
    Desired {
        key: ObjectKey::new(group, kind, "team", "demo"),
        spec,
        status: Value::Null,
        annotations: BTreeMap::new(),
        account: "111122223333".parse().unwrap(),
        region: "eu-central-1".parse().unwrap(),
        fleet: "test".parse().unwrap(),
        incarnation: 1,
    }
}

/// The calls of steps, for tables.
pub(crate) fn calls(steps: &[crate::plan::Step]) -> Vec<&str> {
    steps.iter().map(|step| step.call.as_str()).collect()
}
