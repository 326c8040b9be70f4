//! The query protocols' way out: values become XML, in the envelope of the service.

use serde_json::Value;

use crate::simulator::call::{ApiError, Service};

const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;

/// A successful answer.
pub(crate) fn answer(service: Service, operation: &str, request_id: &str, value: &Value) -> String {
    let mut out = String::from(DECLARATION);
    let namespace = namespace(service);
    out.push_str(&format!("<{operation}Response xmlns=\"{namespace}\">"));
    if service == Service::Ec2 {
        element(&mut out, "requestId", &Value::String(request_id.into()), "item");
        members(&mut out, value, "item");
    } else {
        out.push_str(&format!("<{operation}Result>"));
        members(&mut out, value, "member");
        out.push_str(&format!("</{operation}Result><ResponseMetadata>"));
        element(&mut out, "RequestId", &Value::String(request_id.into()), "member");
        out.push_str("</ResponseMetadata>");
    }
    out.push_str(&format!("</{operation}Response>"));
    out
}

/// A refusal.
pub(crate) fn error(service: Service, request_id: &str, error: &ApiError) -> String {
    let code = escape(&error.code);
    let message = escape(&error.message);
    if service == Service::Ec2 {
        format!(
            "{DECLARATION}<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>\
             <RequestID>{request_id}</RequestID></Response>"
        )
    } else {
        let namespace = namespace(service);
        let fault = if error.status >= 500 { "Receiver" } else { "Sender" };
        format!(
            "{DECLARATION}<ErrorResponse xmlns=\"{namespace}\"><Error><Type>{fault}</Type><Code>{code}</Code>\
             <Message>{message}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    }
}

fn namespace(service: Service) -> &'static str {
    match service {
        Service::Ec2 => "http://ec2.amazonaws.com/doc/2016-11-15/",
        Service::Sts => "https://sts.amazonaws.com/doc/2011-06-15/",
        Service::Iam | Service::Eks | Service::Kms => "https://iam.amazonaws.com/doc/2010-05-08/",
    }
}

fn members(out: &mut String, value: &Value, item: &str) {
    if let Value::Object(map) = value {
        for (name, value) in map {
            element(out, name, value, item);
        }
    }
}

fn element(out: &mut String, name: &str, value: &Value, item: &str) {
    match (name.strip_prefix('*'), value) {
        (_, Value::Null) => {}
        (Some(name), Value::Array(values)) => {
            for value in values {
                element(out, name, value, item);
            }
        }
        (_, Value::Array(values)) => {
            out.push_str(&format!("<{name}>"));
            for value in values {
                element(out, item, value, item);
            }
            out.push_str(&format!("</{name}>"));
        }
        (_, Value::Object(_)) => {
            out.push_str(&format!("<{name}>"));
            members(out, value, item);
            out.push_str(&format!("</{name}>"));
        }
        (_, Value::String(text)) => out.push_str(&format!("<{name}>{}</{name}>", escape(text))),
        (_, Value::Bool(_) | Value::Number(_)) => out.push_str(&format!("<{name}>{value}</{name}>")),
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            // XML 1.0 has no way to write other control characters.
            control if control < ' ' && control != '\n' && control != '\t' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ec2_lists_have_items_and_iam_lists_have_members() {
        let value = json!({"tagSet": [{"key": "a&b", "value": ""}], "none": null, "ok": true});
        insta::assert_snapshot!(
            answer(Service::Ec2, "DescribeTags", "r-1", &value),
            @r#"<?xml version="1.0" encoding="UTF-8"?><DescribeTagsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><tagSet><item><key>a&amp;b</key><value></value></item></tagSet><ok>true</ok></DescribeTagsResponse>"#
        );
        let value =
            json!({"Roles": [{"RoleName": "x"}], "SummaryMap": {"*entry": [{"key": "Roles", "value": 1}]}});
        insta::assert_snapshot!(
            answer(Service::Iam, "ListRoles", "r-1", &value),
            @r#"<?xml version="1.0" encoding="UTF-8"?><ListRolesResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><ListRolesResult><Roles><member><RoleName>x</RoleName></member></Roles><SummaryMap><entry><key>Roles</key><value>1</value></entry></SummaryMap></ListRolesResult><ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata></ListRolesResponse>"#
        );
    }
}
