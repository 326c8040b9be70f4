//! IAM policy documents: whether two of them mean the same, and how IAM encodes them in answers.
//!
//! It compares structure, not effect: no statement is evaluated. The rules are those of the IAM User Guide,
//! "Grammar of the IAM JSON policy language".

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Decodes a document of an IAM answer. IAM encodes as RFC 3986 says, so `+` is a plus and no space.
pub(crate) fn decode(encoded: &str) -> String {
    percent_decode_str(encoded).decode_utf8().map_or_else(|_| encoded.to_owned(), |text| text.into_owned())
}

/// Whether two documents mean the same to IAM. Texts that are no JSON are compared as they stand.
pub(crate) fn equivalent(left: &str, right: &str) -> bool {
    match (serde_json::from_str::<Value>(left), serde_json::from_str::<Value>(right)) {
        (Ok(left), Ok(right)) => canonical(&left) == canonical(&right),
        _ => left.trim() == right.trim(),
    }
}

/// The document in the one form that all its spellings share.
pub(crate) fn canonical(document: &Value) -> Value {
    let Value::Object(members) = document else { return document.clone() };
    let mut result = Map::new();
    for (key, value) in members {
        let value = match key.as_str() {
            "Statement" => sorted(items(value).into_iter().map(statement).collect()),
            _ => value.clone(),
        };
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

fn statement(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut result = Map::new();
    for (key, value) in members {
        let value = match key.as_str() {
            // Names of services and actions are case-insensitive.
            "Action" | "NotAction" => sorted(
                items(value)
                    .into_iter()
                    .map(|item| mapped(item, &|text| text.to_ascii_lowercase()))
                    .collect(),
            ),
            "Resource" | "NotResource" => sorted(items(value).into_iter().cloned().collect()),
            "Principal" | "NotPrincipal" => principal(value),
            "Condition" => condition(value),
            _ => value.clone(),
        };
        // An empty Sid is no Sid.
        if !(key == "Sid" && value.as_str() == Some("")) {
            result.insert(key.clone(), value);
        }
    }
    Value::Object(result)
}

/// `"*"` and `{"AWS": "*"}` are one principal, and an account id is its root ARN.
fn principal(value: &Value) -> Value {
    let Value::Object(kinds) = value else {
        return if value.as_str() == Some("*") {
            principal(&serde_json::json!({"AWS": "*"}))
        } else {
            value.clone()
        };
    };
    let mut result = Map::new();
    for (kind, value) in kinds {
        let members = items(value).into_iter().map(|item| match kind.as_str() {
            "AWS" => mapped(item, &account_of_root),
            _ => item.clone(),
        });
        result.insert(kind.clone(), sorted(members.collect()));
    }
    Value::Object(result)
}

/// `arn:aws:iam::111122223333:root` as `111122223333`.
fn account_of_root(text: &str) -> String {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        ["arn", _, "iam", "", account, "root"] => (*account).to_owned(),
        _ => text.to_owned(),
    }
}

/// Operators keep their case rules: operator and key names are case-insensitive, values are not; numbers and
/// truths may be written as texts.
fn condition(value: &Value) -> Value {
    let Value::Object(operators) = value else { return value.clone() };
    let mut result = Map::new();
    for (operator, keys) in operators {
        let Value::Object(keys) = keys else {
            result.insert(operator.to_ascii_lowercase(), keys.clone());
            continue;
        };
        let keys = keys
            .iter()
            .map(|(key, values)| {
                let values = items(values).into_iter().map(|item| match item {
                    Value::Bool(_) | Value::Number(_) => Value::String(item.to_string()),
                    other => other.clone(),
                });
                (key.to_ascii_lowercase(), sorted(values.collect()))
            })
            .collect::<Map<_, _>>();
        result.insert(operator.to_ascii_lowercase(), Value::Object(keys));
    }
    Value::Object(result)
}

/// A scalar is a list of one.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        single => vec![single],
    }
}

fn mapped(value: &Value, map: &dyn Fn(&str) -> String) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| Value::String(map(text)))
}

/// Order and repetition mean nothing in any list of a policy. `serde_json` may keep the order of keys, so
/// members are sorted by a text in which keys are sorted.
fn sorted(mut members: Vec<Value>) -> Value {
    members.sort_by_cached_key(key_of);
    members.dedup();
    Value::Array(members)
}

fn key_of(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut members: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", key_of(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(key_of).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}"#;

    #[test]
    fn documents_that_mean_the_same_are_equivalent() {
        let cases = [
            (
                "white space and key order",
                TRUST,
                r#"{ "Statement": [ {"Action":["sts:AssumeRole","sts:TagSession"], "Principal":{"Service":"eks.amazonaws.com"}, "Effect":"Allow"} ], "Version":"2012-10-17" }"#,
            ),
            (
                "order of actions",
                TRUST,
                r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":["sts:TagSession","sts:AssumeRole"]}]}"#,
            ),
            (
                "one statement without a list, one principal with one",
                TRUST,
                r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":["eks.amazonaws.com"]},"Action":["sts:assumerole","sts:TagSession"]}}"#,
            ),
            (
                "everybody",
                r#"{"Statement":{"Principal":"*"}}"#,
                r#"{"Statement":[{"Principal":{"AWS":["*"]}}]}"#,
            ),
            (
                "an account and its root",
                r#"{"Statement":{"Principal":{"AWS":"111122223333"}}}"#,
                r#"{"Statement":{"Principal":{"AWS":"arn:aws:iam::111122223333:root"}}}"#,
            ),
            (
                "truths as texts",
                r#"{"Statement":{"Condition":{"Bool":{"aws:SecureTransport":true}}}}"#,
                r#"{"Statement":{"Condition":{"bool":{"aws:securetransport":["true"]}}}}"#,
            ),
            (
                "order of statements",
                r#"{"Statement":[{"Sid":"a"},{"Sid":"b"}]}"#,
                r#"{"Statement":[{"Sid":"b"},{"Sid":"a"}]}"#,
            ),
        ];
        for (name, left, right) in cases {
            assert!(equivalent(left, right), "{name}");
        }
    }

    #[test]
    fn documents_that_mean_something_else_are_not() {
        let cases = [
            ("another service", TRUST, TRUST.replace("eks.", "ec2.")),
            ("an action fewer", TRUST, TRUST.replace(r#","sts:TagSession""#, "")),
            ("another effect", TRUST, TRUST.replace("Allow", "Deny")),
            (
                "case of a resource",
                r#"{"Statement":{"Resource":"arn:aws:s3:::A"}}"#,
                r#"{"Statement":{"Resource":"arn:aws:s3:::a"}}"#.into(),
            ),
            ("another version", TRUST, TRUST.replace("2012-10-17", "2008-10-17")),
            (
                "case of a condition's value",
                r#"{"Statement":{"Condition":{"StringEquals":{"k":"V"}}}}"#,
                r#"{"Statement":{"Condition":{"StringEquals":{"k":"v"}}}}"#.into(),
            ),
            ("not JSON", "{", "[".into()),
        ];
        for (name, left, right) in cases {
            assert!(!equivalent(left, &right), "{name}");
        }
    }

    #[test]
    fn a_plus_survives_decoding() {
        assert_eq!(decode("%7B%22a%22%3A%22b+c%20d%2B%22%7D"), r#"{"a":"b+c d+"}"#);
        assert_eq!(decode("plain"), "plain");
    }

    proptest! {
        #[test]
        fn order_of_lists_never_matters(mut actions in proptest::collection::vec("[a-z]{1,4}:[A-Z][a-z]{1,5}", 1..6), turn in 0usize..6) {
            let before = serde_json::json!({"Statement": [{"Action": actions, "Resource": "*"}]}).to_string();
            let turn = turn % actions.len();
            actions.rotate_left(turn);
            let after = serde_json::json!({"Statement": {"Resource": ["*"], "Action": actions}}).to_string();
            prop_assert!(equivalent(&before, &after));
        }

        #[test]
        fn encoding_is_undone(text in "\\PC{0,40}") {
            let encoded = percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string();
            prop_assert_eq!(decode(&encoded), text);
        }
    }
}
