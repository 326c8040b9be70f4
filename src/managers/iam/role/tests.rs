use super::*;
use crate::managers::testing;

const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;
const INLINE: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:Get*","s3:List*"],"Resource":"*"}]}"#;

fn spec() -> Value {
    json!({
        "name": "nodes",
        "assumeRolePolicyDocument": TRUST,
        "policies": ["arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B"],
        "inlinePolicies": {"logs": INLINE},
        "maxSessionDuration": 7200,
        "tags": [{"key": "team", "value": "edge"}],
    })
}

fn role(spec: Value) -> Desired {
    testing::desired(GROUP, "Role", spec)
}

/// What IAM would answer after the desired role was created.
fn as_created(desired: &Desired) -> Observed {
    let mut answer = types::Role::builder()
        .role_name(name(desired))
        .path(text(&desired.spec, "/path").unwrap_or("/"))
        .role_id("AROA1")
        .arn("arn:aws:iam::111122223333:role/nodes")
        .create_date(aws_smithy_types::DateTime::from_secs(0))
        .assume_role_policy_document(
            percent_encoding::utf8_percent_encode(TRUST, percent_encoding::NON_ALPHANUMERIC).to_string(),
        )
        .set_description(owned(&desired.spec, "/description"))
        .max_session_duration(integer(&desired.spec, "/maxSessionDuration").unwrap_or(3600));
    for (key, value) in tagging::wanted(desired) {
        answer = answer.tags(types::Tag::builder().key(key).value(value).build().unwrap());
    }
    let attached = text_set(&desired.spec, "/policies").unwrap_or_default();
    let inline = inline_policies(&desired.spec).unwrap_or_default();
    observed(desired, &answer.build().unwrap(), attached.into_iter().collect(), inline)
}

#[test]
fn a_role_is_created_with_everything_and_then_needs_nothing() {
    let desired = role(spec());
    let steps = RoleManager.diff(&desired, None).unwrap();
    assert_eq!(
        testing::calls(&steps),
        ["CreateRole", "AttachRolePolicy", "AttachRolePolicy", "PutRolePolicy"]
    );
    assert_eq!(steps[0].argument("tags").as_array().unwrap().len(), 4);
    assert_eq!(RoleManager.diff(&desired, Some(&as_created(&desired))).unwrap(), []);
}

#[test]
fn each_change_is_one_call() {
    let before = role(spec());
    let cases: Vec<(&str, Value, &[&str])> = vec![
        (
            "/policies",
            json!(["arn:aws:iam::aws:policy/C", "arn:aws:iam::aws:policy/B"]),
            &["AttachRolePolicy", "DetachRolePolicy"],
        ),
        ("/policies", json!([]), &["DetachRolePolicy", "DetachRolePolicy"]),
        (
            "/inlinePolicies/logs",
            json!(INLINE.replace(r#""s3:Get*","s3:List*""#, r#""s3:List*","s3:Get*""#)),
            &[],
        ),
        ("/inlinePolicies/logs", json!(INLINE.replace("Allow", "Deny")), &["PutRolePolicy"]),
        ("/inlinePolicies", json!({}), &["DeleteRolePolicy"]),
        ("/tags/0/value", json!("core"), &["TagRole"]),
        ("/tags", json!([]), &["UntagRole"]),
        ("/assumeRolePolicyDocument", json!(TRUST.replace("eks", "ec2")), &["UpdateAssumeRolePolicy"]),
        (
            "/assumeRolePolicyDocument",
            json!(TRUST.replace(r#""sts:AssumeRole""#, r#"["sts:AssumeRole"]"#)),
            &[],
        ),
        ("/maxSessionDuration", json!(3600), &["UpdateRole"]),
        ("/maxSessionDuration", json!(null), &[]),
    ];
    for (pointer, value, expected) in cases {
        let mut desired = before.clone();
        *desired.spec.pointer_mut(pointer).unwrap() = value;
        let observed = as_created(&before);
        desired.status = observed.status.clone();
        let steps = RoleManager.diff(&desired, Some(&observed)).unwrap();
        assert_eq!(testing::calls(&steps), expected, "{pointer} {}", desired.spec);
    }
}

#[test]
fn an_empty_description_is_none() {
    let mut spec = spec();
    spec["description"] = json!("");
    let desired = role(spec);
    assert_eq!(RoleManager.diff(&desired, Some(&as_created(&desired))).unwrap(), []);
}

#[test]
fn silence_detaches_only_what_was_ours() {
    let before = role(spec());
    let mut observed = as_created(&before);
    observed.spec["policies"] =
        json!(["arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B", "arn:aws:iam::aws:policy/Theirs"]);
    let mut desired = role(
        json!({"name": "nodes", "assumeRolePolicyDocument": TRUST, "tags": spec()["tags"], "inlinePolicies": {"logs": INLINE}}),
    );
    desired.status = observed.status.clone();
    let steps = RoleManager.diff(&desired, Some(&observed)).unwrap();
    let detached: Vec<_> = steps.iter().filter_map(|step| step.text("policyARN")).collect();
    assert_eq!(detached, ["arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B"]);
    assert_eq!(steps.len(), 2);
}

#[test]
fn a_boundary_of_ours_follows_the_spec_and_a_foreign_one_stays() {
    let bounded = role(
        json!({"name": "nodes", "assumeRolePolicyDocument": TRUST, "permissionsBoundary": "arn:aws:iam::1:policy/B"}),
    );
    let free = role(json!({"name": "nodes", "assumeRolePolicyDocument": TRUST}));
    let mut observed = as_created(&free);
    assert_eq!(
        testing::calls(&RoleManager.diff(&bounded, Some(&observed)).unwrap()),
        ["PutRolePermissionsBoundary"]
    );
    observed.spec["permissionsBoundary"] = json!("arn:aws:iam::1:policy/B");
    assert_eq!(RoleManager.diff(&free, Some(&observed)).unwrap(), [], "not ours");
    observed.status["manager"]["permissionsBoundary"] = json!(["arn:aws:iam::1:policy/B"]);
    assert_eq!(
        testing::calls(&RoleManager.diff(&free, Some(&observed)).unwrap()),
        ["DeleteRolePermissionsBoundary"]
    );
}

#[test]
fn another_path_is_another_role() {
    let mut desired = role(spec());
    let observed = as_created(&desired);
    desired.spec["path"] = json!("/team/");
    assert!(matches!(
        RoleManager.diff(&desired, Some(&observed)),
        Err(Refusal::ReplacementRequired { field, .. }) if field == "path"
    ));
}

#[test]
fn teardown_empties_the_role_first() {
    let desired = role(spec());
    let steps = RoleManager.teardown(&desired, &as_created(&desired));
    assert_eq!(
        testing::calls(&steps),
        ["DetachRolePolicy", "DetachRolePolicy", "DeleteRolePolicy", "DeleteRole"]
    );
}
