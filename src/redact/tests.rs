use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::api::{Object, names};

fn object(value: Value) -> Arc<Object> {
    Arc::new(Object::from_value(value).unwrap())
}

fn secret() -> Arc<Object> {
    object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"},
        "data": {"password": STANDARD.encode("s3cr3t/val\"ue"), "short": STANDARD.encode("yes")}}))
}

fn redactor() -> Redactor {
    Redactor::of([secret().as_ref()])
}

#[test]
fn data_is_masked_by_place() {
    let shown = redactor().object(&secret());
    assert_eq!(shown.body["data"]["password"], json!(mask(b"s3cr3t/val\"ue")));
    assert_eq!(shown.body["data"]["short"], json!(mask(b"yes")));
    assert_eq!(mask(b"abc"), "<sha256:ba7816bf>");
}

#[test]
fn a_copied_value_is_masked_in_every_form() {
    let value = "s3cr3t/val\"ue";
    let mask = mask(value.as_bytes());
    for form in [
        value.to_owned(),
        STANDARD.encode(value),
        json!(value).to_string(),
        format!("{value:?}"),
        "s3cr3t%2Fval%22ue".to_owned(),
    ] {
        let text = redactor().text(&format!("before {form} after")).into_owned();
        assert!(text.contains(&mask) && !text.contains("s3cr3t"), "{form}: {text}");
    }
    let copy = object(json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "a"},
        "spec": {"url": format!("https://u:{value}@h")},
        "status": {"conditions": [{"type": "Ready", "message": format!("bad {value}")}]}}));
    let text = redactor().object(&copy).to_value().to_string();
    assert!(!text.contains("s3cr3t") && text.contains(&mask), "{text}");
}

#[test]
fn each_line_of_a_key_counts() {
    let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END KEY-----\n";
    let known = Known::default();
    known.learn_text(pem);
    let text = known.redactor().text("cannot read MIIEvQIBADANBgkqhkiG9w0BAQEFAASC").into_owned();
    assert_eq!(text, format!("cannot read {}", mask(pem.as_bytes())));
}

#[test]
fn an_object_without_secrets_is_not_copied() {
    let plain = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "yes"}}));
    assert!(Arc::ptr_eq(&plain, &redactor().object(&plain)));
}

#[test]
fn what_a_graph_made_of_open_data_is_no_secret_elsewhere() {
    let made = object(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "payments", "namespace": "argocd", "annotations": {
            names::ANNOTATION_INSTANCE: "EksCluster.kro.run/argocd/payments",
            names::ANNOTATION_SENSITIVE: "[\"/data/token\"]"}},
        "data": {"name": STANDARD.encode("payments"), "token": STANDARD.encode("a-token")}}));
    let redactor = Redactor::of([made.as_ref()]);
    assert_eq!(redactor.text("payments is ready"), "payments is ready");
    assert_eq!(redactor.text("a-token"), mask(b"a-token"));
    assert_eq!(redactor.object(&made).body["data"]["name"], json!(mask(b"payments")));
}

#[test]
fn a_template_of_a_secret_keeps_its_expressions_only() {
    let definition = object(json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition",
        "metadata": {"name": "d"},
        "spec": {"resources": [{"id": "s", "template": {"apiVersion": "v1", "kind": "Secret",
            "stringData": {"token": "plain-token", "server": "${cluster.status.endpoint}",
                "mixed": "plain-${x}", "inside": "${'plain' + x}"}}}]}}));
    let text = Redactor::default().object(&definition).to_value().to_string();
    assert!(!text.contains("plain") && text.contains("${cluster.status.endpoint}"), "{text}");
    let redactor = Redactor::of([definition.as_ref()]);
    assert_eq!(redactor.text("plain-token"), mask(b"plain-token"));
}

#[test]
fn listed_places_are_masked_whatever_stands_there() {
    let object = object(json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC",
        "metadata": {"name": "v", "annotations": {"note": "abc", names::ANNOTATION_SENSITIVE:
            r#"["/spec/tags/*/value", "/spec/count", "/spec/map", "/metadata/annotations/note"]"#}},
        "spec": {"tags": [{"key": "a", "value": "x"}], "count": 3, "map": {"abc": "y"}, "open": "o"},
        "status": {"count": 3, "vpcID": "vpc-1",
            "fleetwright": {"sensitive": ["/status/made"]}, "made": "of a secret"}}));
    let shown = Redactor::default().object(&object).to_value();
    assert_eq!(
        shown["spec"],
        json!({"tags": [{"key": "a", "value": mask(b"x")}], "count": mask(b"3"),
            "map": mask(br#"{"abc":"y"}"#), "open": "o"})
    );
    assert_eq!(shown["status"]["count"], json!(mask(b"3")), "AWS may answer what it was told");
    assert_eq!(
        (&shown["status"]["made"], &shown["status"]["vpcID"]),
        (&json!(mask(b"of a secret")), &json!("vpc-1"))
    );
    assert_eq!(shown["metadata"]["annotations"]["note"], json!(mask(b"abc")));
}

#[test]
fn a_list_that_cannot_be_read_hides_everything() {
    for list in ["", "{}", "[5]", "[\"spec\"]"] {
        let object = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
            "annotations": {names::ANNOTATION_SENSITIVE: list}}, "data": {"a": "value"}}));
        let text = Redactor::default().object(&object).to_value().to_string();
        assert!(!text.contains("value"), "{list}: {text}");
        assert_eq!(Redactor::of([object.as_ref()]).text("a value"), "a value", "nothing is learned of it");
    }
}

#[test]
fn texts_about_an_object_hide_its_short_values_too() {
    let object = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
        "annotations": {names::ANNOTATION_SENSITIVE: "[\"/spec/pin\", \"/spec/on\"]"}},
        "spec": {"pin": "42", "on": true}}));
    let words = Words::of(&object);
    assert_eq!(words.text("set 42 of 4200, true"), format!("set {} of 4200, {}", mask(b"42"), mask(b"true")));
    assert_eq!(Words::stated(&object.metadata.annotations, object.spec()), words);
}

#[test]
fn what_was_once_a_secret_stays_known() {
    let known = Known::default();
    known.learn([secret().as_ref()]);
    let newer =
        object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"},
        "stringData": {"password": "another-one"}}));
    known.learn([newer.as_ref()]);
    let text = known.redactor().text("s3cr3t/val\"ue another-one").into_owned();
    assert_eq!(text, format!("{} {}", mask(b"s3cr3t/val\"ue"), mask(b"another-one")));
}

#[test]
fn a_long_value_is_masked_as_a_whole_and_costs_no_more_than_its_length() {
    // The search that holds it in one piece takes minutes.
    for value in ["Zq9".repeat(34_000), (0..17_000).map(|number| format!("é{number:05}")).collect()] {
        let secret =
            object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"},
            "stringData": {"big": value}}));
        let redactor = Redactor::of([secret.as_ref()]);
        let start: String = value.chars().take(9_000).collect();
        for form in [start.clone(), STANDARD.encode(&start)] {
            let shown = redactor.text(&format!("it is {form}!")).into_owned();
            let rest = shown.strip_prefix(&format!("it is {}", mask(value.as_bytes()))).unwrap();
            assert!(rest.len() <= 2 * 64 + 1 && rest.ends_with('!'), "{} bytes are left", rest.len());
        }
        assert_eq!(redactor.object(&secret).body["stringData"]["big"], json!(mask(value.as_bytes())));
    }
}
