//! Checks that look from one object to another, or to a calendar: what can be known of them offline.
//!
//! Nothing is guessed from field names: only bare AWS kinds and selectors are looked at.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::{Ipv4Net, Ipv6Net};
use serde_json::Value;

use crate::api::iam_role_selector::{self, IamRoleSelectorSpec};
use crate::api::{GroupKind, Object, ObjectKey, ack, names};
use crate::diagnostic::nearest;
use crate::graph::Problem;
use crate::yaml::join_pointer;

/// When the calendar below was last compared with the Amazon EKS User Guide ("Kubernetes version lifecycle").
const CALENDAR_OF: &str = "2026-09-30";

/// Minor versions of Kubernetes on EKS, with the days on which standard and extended support end.
const CALENDAR: [(&str, &str, &str); 6] = [
    ("1.30", "2025-07-23", "2026-07-23"),
    ("1.31", "2025-11-26", "2026-11-26"),
    ("1.32", "2026-03-23", "2027-03-23"),
    ("1.33", "2026-07-29", "2027-07-29"),
    ("1.34", "2026-12-02", "2027-12-02"),
    ("1.35", "2027-03-27", "2028-03-27"),
];

/// That the annotation which permits a replacement permits none, for the metadata of an object at a pointer.
pub(super) fn permission(annotations: &BTreeMap<String, String>, pointer: &str) -> Option<Problem> {
    const WORD: &str = "allowed";
    let written = annotations.get(names::ANNOTATION_REPLACE).filter(|written| *written != WORD)?;
    let place = join_pointer(&format!("{pointer}/metadata/annotations"), names::ANNOTATION_REPLACE);
    // What an expression makes of it is not known here.
    (!written.contains("${")).then(|| {
        let message = format!("`{}: {written}` permits nothing", names::ANNOTATION_REPLACE);
        let help = format!(
            "write `{WORD}` to have the object replaced where AWS cannot change it, or remove the line"
        );
        Problem::warning(place, "permits-nothing", message).with_help(help)
    })
}

/// The same for the templates of a definition.
pub(super) fn permissions_in(definition: &Object) -> Vec<Problem> {
    let resources = definition.spec().get("resources").and_then(Value::as_array).into_iter().flatten();
    let permission = |(index, resource): (usize, &Value)| {
        let written = resource.pointer("/template/metadata/annotations")?.get(names::ANNOTATION_REPLACE)?;
        let written = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
        let annotations = BTreeMap::from([(names::ANNOTATION_REPLACE.to_owned(), written)]);
        permission(&annotations, &format!("/spec/resources/{index}/template"))
    };
    resources.enumerate().filter_map(permission).collect()
}

/// What can be said of one object by itself.
pub(super) fn alone(object: &Object) -> Vec<Problem> {
    let mut problems = of_kind(object);
    let refused = ack::tags::refused(&object.gvk().group_kind(), object.spec());
    let refused =
        refused.into_iter().map(|(at, what)| Problem::error(format!("/spec{at}"), "invalid-tag", what));
    problems.extend(refused);
    problems.extend(permission(&object.metadata.annotations, ""));
    problems
}

fn of_kind(object: &Object) -> Vec<Problem> {
    let gvk = object.gvk();
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("eks.services.k8s.aws", "Cluster") => version(object.spec()).into_iter().collect(),
        ("ec2.services.k8s.aws", "VPC") => {
            let mut problems = blocks(object.spec(), "cidrBlocks");
            problems.extend(block_v6(object.spec(), "ipv6CIDRBlock"));
            problems
        }
        ("ec2.services.k8s.aws", "Subnet") => {
            let block = object.spec().get("cidrBlock").and_then(Value::as_str);
            let mut problems: Vec<Problem> =
                block.and_then(|block| block_v4(block, "/spec/cidrBlock")).into_iter().collect();
            problems.extend(block_v6(object.spec(), "ipv6CIDRBlock"));
            problems
        }
        _ => Vec::new(),
    }
}

/// The calendar has no clock: it says what was known when it was made, and AWS has the last word.
fn version(spec: &Value) -> Option<Problem> {
    let version = spec.get("version")?.as_str()?;
    let known = CALENDAR.iter().find(|(minor, ..)| *minor == version);
    let newest = CALENDAR.last()?.0;
    let minor = |text: &str| -> Option<u32> { text.strip_prefix("1.")?.parse().ok() };
    let problem = |message: String| Problem::warning("/spec/version", "kubernetes-version", message);
    let Some(wanted) = minor(version) else {
        let message = format!("`{version}` is no Kubernetes version of EKS");
        return Some(problem(message).with_help(Some(format!("write it as `{newest}`"))));
    };
    let source = format!("calendar of {CALENDAR_OF}");
    match known {
        // Newer than the calendar: AWS knows.
        None if Some(wanted) > minor(newest) => None,
        None => Some(problem(format!("Kubernetes {version} is not offered by EKS any more ({source})"))),
        Some((_, _, extended)) if *extended <= CALENDAR_OF => {
            Some(problem(format!("EKS supports Kubernetes {version} until {extended} only ({source})")))
        }
        Some((_, standard, extended)) if *standard <= CALENDAR_OF => Some(problem(format!(
            "standard support of Kubernetes {version} ended on {standard}: until {extended} it costs extra ({source})"
        ))),
        Some(_) => None,
    }
}

fn blocks(spec: &Value, field: &str) -> Vec<Problem> {
    let blocks = spec.get(field).and_then(Value::as_array).into_iter().flatten().enumerate();
    let texts = blocks.filter_map(|(index, block)| Some((index, block.as_str()?)));
    texts.filter_map(|(index, block)| block_v4(block, &format!("/spec/{field}/{index}"))).collect()
}

/// EC2 takes IPv4 blocks from /16 to /28, and moves one with host bits to its network without a word.
fn block_v4(block: &str, pointer: &str) -> Option<Problem> {
    let error = |message: String| Some(Problem::error(pointer, "invalid-cidr", message));
    match block.parse::<Ipv4Net>() {
        Err(_) => error(format!("`{block}` is no IPv4 block such as `10.0.0.0/16`")),
        Ok(net) if !(16..=28).contains(&net.prefix_len()) => {
            error(format!("`{block}`: EC2 takes blocks from /16 to /28"))
        }
        Ok(net) if net != net.trunc() => Some(
            Problem::warning(pointer, "cidr-host-bits", format!("`{block}` is not the start of its block"))
                .with_help(Some(format!("AWS makes it `{}`: write that", net.trunc()))),
        ),
        Ok(_) => None,
    }
}

fn block_v6(spec: &Value, field: &str) -> Option<Problem> {
    let block = spec.get(field)?.as_str()?;
    let message = format!("`{block}` is no IPv6 block such as `2001:db8::/56`");
    block
        .parse::<Ipv6Net>()
        .is_err()
        .then(|| Problem::error(format!("/spec/{field}"), "invalid-cidr", message))
}

/// A selector, as far as it can be read.
struct Selector<'a> {
    name: &'a str,
    spec: IamRoleSelectorSpec,
}

/// What can be said of objects together: for each object that is concerned, by its place in the list.
///
/// `is_instance` tells the objects that stand for AWS objects to come: where their children go is not known
/// offline, so their own namespace counts.
pub(super) fn together(objects: &[&Object], is_instance: &dyn Fn(&Object) -> bool) -> Vec<(usize, Problem)> {
    let selector_kind = GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND);
    let selectors: Vec<Selector<'_>> = objects
        .iter()
        .filter(|object| object.gvk().group_kind() == selector_kind)
        .filter_map(|object| {
            let spec = IamRoleSelectorSpec::of(object).ok()?;
            Some(Selector { name: &object.metadata.name, spec })
        })
        .collect();
    if selectors.is_empty() {
        return Vec::new();
    }
    let labels: BTreeMap<ObjectKey, &BTreeMap<String, String>> = objects
        .iter()
        .filter(|object| object.gvk().group.is_empty() && object.kind == "Namespace")
        .map(|object| (object.key(), &object.metadata.labels))
        .collect();
    let none = BTreeMap::new();
    let mut told: BTreeSet<(&str, Vec<&str>)> = BTreeSet::new();
    let mut problems = Vec::new();
    for (place, object) in objects.iter().enumerate() {
        let aws = ack::find(&object.gvk().group_kind()).is_some();
        if !aws && !is_instance(object) {
            continue;
        }
        let namespace = object.metadata.namespace.as_str();
        let labels = labels.get(&ObjectKey::new("", "Namespace", "", namespace)).copied().unwrap_or(&none);
        // What an instance's children are is not known here: a selector by kind or label may fit them.
        let fits = |selector: &&Selector<'_>| {
            if aws {
                selector.spec.selects(object, labels)
            } else {
                of_namespace(&selector.spec).selects(object, labels)
            }
        };
        let fitting: Vec<&Selector<'_>> = selectors.iter().filter(fits).collect();
        // Selectors that choose by kind or label as well may share a namespace.
        let whole = |selector: &&&Selector<'_>| aws || of_namespace(&selector.spec) == selector.spec;
        let rivals: Vec<&str> = fitting.iter().filter(whole).map(|selector| selector.name).collect();
        let problem = if fitting.is_empty() {
            no_account(namespace, &selectors)
        } else if rivals.len() > 1 {
            let message = format!("IAMRoleSelectors {} all match namespace `{namespace}`", rivals.join(", "));
            Problem::warning("/metadata/namespace", "ambiguous-account", message)
                .with_help(Some("keep one: nothing is done in AWS until then".into()))
        } else {
            continue;
        };
        // Once per namespace, not once per object.
        if told.insert((namespace, rivals)) {
            problems.push((place, problem));
        }
    }
    problems
}

/// The selector without its choice among the objects of a namespace.
fn of_namespace(spec: &IamRoleSelectorSpec) -> IamRoleSelectorSpec {
    IamRoleSelectorSpec { resource_type_selector: Vec::new(), resource_label_selector: None, ..spec.clone() }
}

fn no_account(namespace: &str, selectors: &[Selector<'_>]) -> Problem {
    let message = format!("no IAMRoleSelector matches namespace `{namespace}`: which AWS account is meant?");
    let by_name = selectors.iter().flat_map(|selector| {
        let names = selector.spec.namespace_selector.iter().flat_map(|namespaces| &namespaces.names);
        names.map(move |name| (name.as_str(), selector.name))
    });
    let by_name: BTreeMap<&str, &str> = by_name.collect();
    let help = match nearest(namespace, by_name.keys().copied()).and_then(|near| by_name.get_key_value(near))
    {
        Some((near, selector)) => format!("the nearest is `{selector}`, for namespace `{near}`"),
        None => "add one, or list the daemon's own account in `aws.useOwnRoleIn`".to_owned(),
    };
    Problem::warning("/metadata/namespace", "no-account-for-namespace", message).with_help(Some(help))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: &str, name: &str, spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec}))
        .unwrap()
    }

    fn told(problems: impl IntoIterator<Item = Problem>) -> Vec<String> {
        problems
            .into_iter()
            .map(|problem| {
                format!(
                    "{} {} {} {}",
                    problem.pointer,
                    problem.code,
                    problem.message,
                    problem.help.unwrap_or_default()
                )
            })
            .collect()
    }

    #[test]
    fn versions_are_judged_by_the_calendar() {
        let version = |version: &str| told(super::version(&json!({"version": version}))).join("");
        for (text, expected) in [
            ("1.34", ""),
            ("1.36", ""),
            ("1.33", "ended on 2026-07-29"),
            ("1.30", "until 2026-07-23 only"),
            ("1.21", "not offered"),
            ("v1.34", "no Kubernetes version"),
        ] {
            let said = version(text);
            assert_eq!(said.is_empty(), expected.is_empty(), "{text}: {said}");
            assert!(said.contains(expected), "{text}: {said}");
        }
        assert!(CALENDAR.is_sorted() && CALENDAR.iter().all(|(_, standard, extended)| standard < extended));
    }

    #[test]
    fn a_permission_that_permits_nothing_is_told() {
        let vpc = |written: &str| {
            let mut vpc = object("ec2.services.k8s.aws/v1alpha1", "VPC", "a", "v", json!({"cidrBlocks": []}));
            vpc.metadata.annotations.insert(names::ANNOTATION_REPLACE.into(), written.into());
            told(alone(&vpc))
        };
        assert!(vpc("allowed").is_empty() && vpc("${schema.spec.replace}").is_empty());
        for written in ["Allowed", "allow", "true", "", "forbidden"] {
            let said = vpc(written);
            assert_eq!(said.len(), 1, "{written}: {said:#?}");
            assert!(said[0].starts_with(
                "/metadata/annotations/fleetwright.dev~1replace permits-nothing `fleetwright.dev/replace: "
            ));
        }
        let template = |written: Value| json!({"template": {"metadata": {"annotations": {names::ANNOTATION_REPLACE: written}}}});
        let resources =
            json!([{}, template("allowed".into()), template("yes".into()), template(true.into())]);
        let definition =
            object("kro.run/v1alpha1", "ResourceGraphDefinition", "", "d", json!({"resources": resources}));
        let said = told(permissions_in(&definition));
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(
            said[0].starts_with("/spec/resources/2/template/metadata/annotations/fleetwright.dev~1replace ")
        );
        assert!(said[1].contains(": true` permits nothing"), "{said:#?}");
    }

    #[test]
    fn blocks_are_what_ec2_takes() {
        let vpc = |spec| told(alone(&object("ec2.services.k8s.aws/v1alpha1", "VPC", "a", "v", spec)));
        assert_eq!(
            vpc(json!({"cidrBlocks": ["10.0.0.0/16", "100.64.0.0/28"], "ipv6CIDRBlock": "2001:db8::/56"}))
                .len(),
            0
        );
        let wrong = vpc(
            json!({"cidrBlocks": ["10.0.0.0/16", "10.0.0/16", "10.0.0.0/8", "10.1.2.0/16"], "ipv6CIDRBlock": "x"}),
        );
        let starts = [
            "/spec/cidrBlocks/1 invalid-cidr",
            "/spec/cidrBlocks/2 invalid-cidr",
            "/spec/cidrBlocks/3 cidr-host-bits",
            "/spec/ipv6CIDRBlock invalid-cidr",
        ];
        assert_eq!(wrong.len(), starts.len(), "{wrong:#?}");
        assert!(wrong.iter().zip(starts).all(|(said, start)| said.starts_with(start)), "{wrong:#?}");
        let subnet = alone(&object(
            "ec2.services.k8s.aws/v1alpha1",
            "Subnet",
            "a",
            "s",
            json!({"cidrBlock": "10.0.0.0/29"}),
        ));
        assert_eq!(subnet.len(), 1);
    }

    #[test]
    fn every_namespace_with_aws_objects_has_one_account() {
        let selector = |name: &str, more: Value| {
            let mut spec = json!({"arn": "arn:aws:iam::222222222222:role/fleet"});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object("services.k8s.aws/v1alpha1", "IAMRoleSelector", "", name, spec)
        };
        let team = |name: &str| selector(name, json!({"namespaceSelector": {"names": [name]}}));
        let instance = |namespace: &str| object("kro.run/v1alpha1", "EksCluster", namespace, "c", json!({}));
        let vpc = |namespace: &str| object("ec2.services.k8s.aws/v1alpha1", "VPC", namespace, "v", json!({}));
        let said = |objects: &[Object]| {
            let objects: Vec<&Object> = objects.iter().collect();
            let found = together(&objects, &|object| object.kind == "EksCluster");
            told(found.into_iter().map(|(_, problem)| problem))
        };
        assert!(said(&[instance("shop"), vpc("shop")]).is_empty(), "without selectors nothing is expected");
        assert!(said(&[team("shop"), instance("shop"), vpc("shop")]).is_empty());
        let missing = said(&[team("shop"), instance("shopp"), vpc("shopp"), vpc("elsewhere")]);
        assert_eq!(missing.len(), 2, "once per namespace: {missing:#?}");
        assert!(
            missing[0].contains("no-account-for-namespace") && missing[0].contains("the nearest is `shop`")
        );
        assert!(missing[1].contains("useOwnRoleIn"));
        let both = said(&[team("shop"), selector("all", json!({})), vpc("shop"), instance("shop")]);
        assert_eq!(both.len(), 1);
        assert!(both[0].contains("ambiguous-account") && both[0].contains("shop, all"), "{both:#?}");
        let by_kind = selector("vpcs", json!({"resourceTypeSelector": [{"kind": "VPC"}]}));
        assert!(
            said(&[team("shop"), by_kind.clone(), instance("shop")]).is_empty(),
            "its children may differ"
        );
        assert_eq!(said(&[team("shop"), by_kind, vpc("shop")]).len(), 1);
    }
}
