//! The query protocols' way in: a form of dotted names becomes nested values.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use serde_json::{Map, Value};

use crate::simulator::call::Service;

/// The pairs of a request: its query and its body.
pub(crate) fn form(request: &Request<Bytes>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(request.uri().query().unwrap_or_default()).unwrap_or_default();
    pairs.extend(serde_urlencoded::from_bytes::<Vec<(String, String)>>(request.body()).unwrap_or_default());
    pairs
}

/// The operation and its parameters; none without an `Action`.
pub(crate) fn parameters(service: Service, form: Vec<(String, String)>) -> Option<(String, Value)> {
    let mut action = None;
    let mut root = Node::default();
    for (name, value) in form {
        match name.as_str() {
            "Action" => action = Some(value),
            "Version" => {}
            _ => root.insert(segments(service, &name), value),
        }
    }
    Some((action?, root.into_object()))
}

/// IAM and STS write lists as `Tags.member.1.Key`, EC2 as `Tag.1.Key`.
fn segments(service: Service, name: &str) -> impl Iterator<Item = &str> {
    name.split('.').filter(move |segment| service == Service::Ec2 || *segment != "member")
}

#[derive(Debug, Default)]
struct Node {
    text: Option<String>,
    children: BTreeMap<String, Node>,
}

impl Node {
    fn insert<'a>(&mut self, path: impl Iterator<Item = &'a str>, value: String) {
        let mut node = self;
        for segment in path {
            node = node.children.entry(segment.to_owned()).or_default();
        }
        node.text = Some(value);
    }

    fn into_object(self) -> Value {
        Value::Object(
            self.children.into_iter().map(|(name, node)| (name, node.into_value())).collect::<Map<_, _>>(),
        )
    }

    fn into_value(self) -> Value {
        if self.children.is_empty() {
            return Value::String(self.text.unwrap_or_default());
        }
        let indices: Option<Vec<u64>> = self.children.keys().map(|key| key.parse().ok()).collect();
        if indices.is_none() {
            return self.into_object();
        }
        let mut items: Vec<(u64, Node)> =
            self.children.into_iter().map(|(key, node)| (key.parse().unwrap_or(u64::MAX), node)).collect();
        items.sort_by_key(|(index, _)| *index);
        Value::Array(items.into_iter().map(|(_, node)| node.into_value()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(service: Service, text: &str) -> (String, Value) {
        parameters(service, serde_urlencoded::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn indices_become_lists_in_their_order() {
        let (action, value) = parse(
            Service::Ec2,
            "Action=DescribeVpcs&Version=2016-11-15&Filter.2.Name=b&Filter.1.Name=tag%3AName&Filter.1.Value.10=y&Filter.1.Value.9=x",
        );
        assert_eq!(action, "DescribeVpcs");
        assert_eq!(value, json!({"Filter": [{"Name": "tag:Name", "Value": ["x", "y"]}, {"Name": "b"}]}));
    }

    #[test]
    fn member_is_syntax_for_iam_only() {
        let (_, value) = parse(Service::Iam, "Action=CreateRole&Tags.member.1.Key=k&Tags.member.1.Value=");
        assert_eq!(value, json!({"Tags": [{"Key": "k", "Value": ""}]}));
    }

    #[test]
    fn no_action_is_no_call() {
        assert!(parameters(Service::Ec2, vec![("Version".into(), "2016-11-15".into())]).is_none());
    }
}
