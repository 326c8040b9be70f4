//! Client tokens: the same intention always has the same token.
//!
//! A create that is repeated after a crash carries the token of the first try, so AWS answers with the
//! object that the first try made. Nothing that dies with the store goes into a token (decisions 3).

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::api::{FleetId, ObjectKey};
use crate::plan::{Argument, Step};

/// The token of one create call: 64 hexadecimal digits, the most that EC2 and EKS take.
///
/// Tags are left out: they may change while the outcome of the call is unknown, and a token that moved
/// with them would make a second object.
pub fn client_token(
    fleet: &FleetId,
    key: &ObjectKey,
    incarnation: u32,
    call: &str,
    arguments: &BTreeMap<String, Argument>,
) -> String {
    let mut text = String::new();
    for part in [fleet.as_str(), &key.to_string(), &incarnation.to_string(), call] {
        // Lengths keep "ab"+"c" and "a"+"bc" apart.
        text.push_str(&format!("{}:{part};", part.len()));
    }
    for (name, argument) in arguments.iter().filter(|(name, _)| *name != "tags") {
        text.push_str(&format!("{}:{name}=", name.len()));
        match argument {
            Argument::Known(value) => canonical(value, &mut text),
            Argument::FromStep { step, output } => text.push_str(&format!("from {step} {output}")),
        }
        text.push(';');
    }
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The token of a step.
pub fn of_step(fleet: &FleetId, incarnation: u32, step: &Step) -> String {
    client_token(fleet, &step.object, incarnation, &step.call, &step.arguments)
}

/// The token after one that is spent: the same in every process, so that a repeated create walks the same way.
pub fn next(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys: `serde_json` keeps the order of insertion here, which says nothing.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            text.push('{');
            for (name, value) in sorted {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::Operation;

    fn token(incarnation: u32, change: impl FnOnce(Step) -> Step) -> String {
        let key = ObjectKey::new("ec2.services.k8s.aws", "NATGateway", "team", "nat");
        let step =
            Step::new(&key, "CreateNatGateway", Operation::Create, "create").with("subnetID", "subnet-1");
        of_step(&"fleet".parse().unwrap(), incarnation, &change(step))
    }

    #[test]
    fn a_token_follows_the_intention_and_nothing_else() {
        let plain = token(1, |step| step);
        assert_eq!(plain.len(), 64);
        assert_eq!(plain, token(1, |step| step.with("tags", json!({"Name": "x"}))), "tags do not count");
        assert_ne!(plain, token(2, |step| step), "the next life is another object");
        assert_ne!(plain, token(1, |step| step.with("subnetID", "subnet-2")));
        assert_eq!(
            token(1, |step| step.with("x", json!({"a": 1, "b": [2]}))),
            token(1, |step| step.with("x", json!({"b": [2], "a": 1}))),
            "the order of keys says nothing"
        );
    }
}
