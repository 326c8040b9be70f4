//! Label selectors, as the Kubernetes API defines them: all requirements must hold.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A label selector; the empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct LabelSelector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Requirement {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let selector: Self =
            serde_json::from_value(value.clone()).map_err(|error| format!("invalid selector: {error}"))?;
        for requirement in &selector.match_expressions {
            let lists = matches!(requirement.operator, Operator::In | Operator::NotIn);
            if lists == requirement.values.is_empty() {
                let must = if lists { "needs" } else { "can't have" };
                return Err(format!(
                    "invalid selector: {:?} on `{}` {must} values",
                    requirement.operator, requirement.key
                ));
            }
        }
        Ok(selector)
    }

    /// The labels that a match has exactly.
    pub(super) fn labels(&self) -> &BTreeMap<String, String> {
        &self.match_labels
    }

    /// Whether labels fulfil every requirement.
    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| {
                let value = labels.get(&requirement.key);
                let listed = value.is_some_and(|value| requirement.values.contains(value));
                match requirement.operator {
                    Operator::In => listed,
                    // An absent label is in no list.
                    Operator::NotIn => !listed,
                    Operator::Exists => value.is_some(),
                    Operator::DoesNotExist => value.is_none(),
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_are_those_of_kubernetes() {
        let labels = BTreeMap::from([("env".to_owned(), "prod".to_owned())]);
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"env": "prod"}}), true),
            (json!({"matchLabels": {"env": "dev"}}), false),
            (
                json!({"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "prod"]}]}),
                true,
            ),
            (json!({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}), false),
            (json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}), true),
            (json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}), true),
        ] {
            assert_eq!(LabelSelector::read(&selector).unwrap().matches(&labels), expected, "{selector}");
        }
        for wrong in [
            json!({"matchLabel": {}}),
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        ] {
            assert!(LabelSelector::read(&wrong).is_err(), "{wrong}");
        }
    }
}
