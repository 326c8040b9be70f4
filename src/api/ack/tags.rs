//! What AWS takes as a tag, so that a refusal is told with its place and before the call.
//!
//! No stricter than AWS: IAM states a pattern (API reference, `Tag`). EC2 takes any character and EKS states no
//! pattern (Tagging AWS Resources, "Tag naming limits and requirements"), but neither takes control characters.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::api::GroupKind;

/// Characters of a key, and of a value.
const MOST: [(&str, usize); 2] = [("key", 128), ("value", 256)];

/// IAM's pattern for both.
static IAM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$").ok());

/// What AWS would refuse of the tags of a spec, each with the pointer to it. What is an expression still is not
/// judged.
pub fn refused(kind: &GroupKind, spec: &Value) -> Vec<(String, String)> {
    let Some(service) = kind.group.strip_suffix(".services.k8s.aws") else { return Vec::new() };
    let pairs: Vec<(String, [&str; 2])> = match spec.get("tags") {
        Some(Value::Array(pairs)) => {
            let pairs = pairs.iter().enumerate().filter_map(|(index, pair)| {
                let value = pair.get("value").and_then(Value::as_str).unwrap_or_default();
                Some((format!("/tags/{index}"), [pair.get("key")?.as_str()?, value]))
            });
            pairs.collect()
        }
        Some(Value::Object(pairs)) => pairs
            .iter()
            .filter_map(|(key, value)| Some(("/tags".to_owned(), [key.as_str(), value.as_str()?])))
            .collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (pointer, parts) in pairs {
        for ((part, most), text) in MOST.into_iter().zip(parts) {
            found.extend(problem(service, part, most, text).map(|problem| (pointer.clone(), problem)));
        }
    }
    found
}

fn problem(service: &str, part: &str, most: usize, text: &str) -> Option<String> {
    if text.contains("${") {
        return None;
    }
    let count = text.chars().count();
    if part == "key" && text.is_empty() {
        return Some("a tag has no key".to_owned());
    }
    if count > most {
        return Some(format!("the tag {part} `{text}` has {count} characters, AWS takes {most}"));
    }
    if let Some(control) = text.chars().find(|letter| letter.is_control()) {
        return Some(format!(
            "the tag {part} `{text}` has the control character U+{:04X}, which AWS does not take",
            u32::from(control)
        ));
    }
    let fits = service != "iam" || IAM.as_ref().is_none_or(|pattern| pattern.is_match(text));
    (!fits).then(|| {
        format!(
            "IAM does not take the tag {part} `{text}`: letters, numbers, spaces and `_ . : / = + - @` only"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(service: &str, tags: Value) -> Vec<String> {
        let kind = GroupKind::new(format!("{service}.services.k8s.aws"), "X");
        refused(&kind, &json!({"tags": tags})).into_iter().map(|(at, what)| format!("{at} {what}")).collect()
    }

    #[test]
    fn what_aws_takes_is_taken() {
        for text in ["shop", "Größe 1 = a/b:c_d.e+f-g@h", "", "日本 語", &"x".repeat(256)] {
            for service in ["ec2", "eks", "iam"] {
                assert_eq!(told(service, json!([{"key": "k", "value": text}])), [""; 0], "{service} {text}");
                assert_eq!(told(service, json!({"k": text})), [""; 0], "{service} {text}");
            }
        }
        assert_eq!(told("ec2", json!([{"key": "a,b", "value": "it's {odd} \u{202e}"}])), [""; 0]);
        assert_eq!(told("iam", json!([{"key": "k", "value": "${schema.spec.tenant}"}])), [""; 0]);
        assert_eq!(told("iam", json!([{"key": "k"}])), [""; 0]);
        assert_eq!(refused(&GroupKind::new("kro.run", "X"), &json!({"tags": {"a": "\u{1b}"}})), []);
    }

    #[test]
    fn what_aws_refuses_is_told_with_its_place() {
        let escape = "a\u{1b}[31m";
        for service in ["ec2", "eks", "iam"] {
            let found = told(service, json!([{"key": "k", "value": "v"}, {"key": "k", "value": escape}]));
            assert!(found[0].starts_with("/tags/1 ") && found[0].contains("U+001B"), "{found:?}");
            assert_eq!(told(service, json!({escape: "v"})).len(), 1);
            assert_eq!(told(service, json!({"k".repeat(129): "v"})).len(), 1);
            assert_eq!(told(service, json!({"k": "v".repeat(257)})).len(), 1);
            assert_eq!(told(service, json!({"": "v"})).len(), 1);
        }
        assert_eq!(told("iam", json!([{"key": "k", "value": "a,b"}])).len(), 1);
    }
}
