//! Two objects of one repository that stand for one AWS object: the daemon lets the older have it, and the
//! other waits for ever.

use std::collections::BTreeMap;

use super::{Checked, Expanded};
use crate::api::ack::NaturalKey;
use crate::api::iam_role_selector::{self, IamRoleSelectorSpec};
use crate::api::{GroupKind, Object, ObjectKey, names};
use crate::diagnostic::Diagnostic;
use crate::graph::PreviewState;

/// Where an object lives in AWS, as far as the repository tells: its account, or else its namespace, which
/// has one account; and its Region, where that matters.
type Place = (String, Option<String>);

/// Each object of an expanded repository whose AWS object another one stands for as well.
pub fn twins(checked: &Checked, expansion: &[Expanded]) -> Vec<Diagnostic> {
    let places = Places::of(checked);
    let mut holders: BTreeMap<(NaturalKey, Place), (ObjectKey, &str)> = BTreeMap::new();
    let mut problems = Vec::new();
    for expanded in expansion.iter().filter(|expanded| expanded.state == PreviewState::Certain) {
        for object in expanded.objects.iter().map(|preview| &preview.object) {
            let natural = NaturalKey::of(&object.gvk().group_kind(), object.spec());
            // What is not known yet stands there as its expression.
            let Some(natural) = natural.filter(|natural| !natural.name.contains("${")) else { continue };
            let region = (!natural.is_global).then(|| places.region(object));
            let place = (places.account(object), region);
            let key = object.key();
            let name = format!("{} `{}`", natural.kind.kind, natural.name);
            let (holder, source) = holders
                .entry((natural, place.clone()))
                .or_insert_with(|| (key.clone(), expanded.source.as_str()));
            if *holder == key {
                continue;
            }
            let region = place.1.filter(|region| !region.is_empty());
            let region = region.map(|region| format!(", {region}")).unwrap_or_default();
            let message = format!(
                "{key} and {holder} ({source}) stand for one AWS object, {name} in {}{region}",
                place.0
            );
            let problem = Diagnostic::error("same-aws-object", message)
                .with_help("give one of the two another name in AWS, or remove it");
            problems.push(match super::expand::location(&expanded.source) {
                Some(location) => problem.at(location),
                None => problem,
            });
        }
    }
    problems
}

/// What the repository says about where objects live.
struct Places<'a> {
    selectors: Vec<IamRoleSelectorSpec>,
    namespaces: BTreeMap<&'a str, &'a Object>,
}

impl<'a> Places<'a> {
    fn of(checked: &'a Checked) -> Self {
        let selector = GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND);
        let namespace = GroupKind::new("", "Namespace");
        let objects = || checked.objects.iter().map(|(_, object)| object);
        let of_kind = |kind: GroupKind| objects().filter(move |object| object.gvk().group_kind() == kind);
        Self {
            selectors: of_kind(selector).filter_map(|object| IamRoleSelectorSpec::of(object).ok()).collect(),
            namespaces: of_kind(namespace).map(|object| (object.metadata.name.as_str(), object)).collect(),
        }
    }

    fn account(&self, object: &Object) -> String {
        let none = BTreeMap::new();
        let namespace = object.metadata.namespace.as_str();
        let labels = self.namespaces.get(namespace).map_or(&none, |namespace| &namespace.metadata.labels);
        let mut accounts = self
            .selectors
            .iter()
            .filter(|selector| selector.selects(object, labels))
            .filter_map(|selector| Some(format!("account {}", selector.arn.account()?)));
        match (accounts.next(), accounts.next()) {
            (Some(account), None) => account,
            _ => format!("the account of namespace {namespace}"),
        }
    }

    fn region(&self, object: &Object) -> String {
        let namespace = self.namespaces.get(object.metadata.namespace.as_str());
        let default = namespace.and_then(|namespace| namespace.annotation(names::ANNOTATION_DEFAULT_REGION));
        object.annotation(names::ANNOTATION_REGION).or(default).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{FileContent, Limits, Options, Tree, check, expand, load};

    fn role(namespace: &str, name: &str, in_aws: &str) -> String {
        format!(
            "apiVersion: iam.services.k8s.aws/v1alpha1\nkind: Role\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{name: {in_aws}, assumeRolePolicyDocument: '{{}}'}}\n"
        )
    }

    fn cluster(namespace: &str, name: &str, region: &str) -> String {
        format!(
            "apiVersion: eks.services.k8s.aws/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}, namespace: {namespace}, annotations: {{services.k8s.aws/region: {region}}}}}\nspec: {{name: shop, version: \"1.35\", roleARN: \"arn:aws:iam::1:role/r\", resourcesVPCConfig: {{subnetIDs: [a, b]}}}}\n"
        )
    }

    fn selector(account: &str, namespaces: &str) -> String {
        format!(
            "apiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata: {{name: s{account}}}\nspec: {{arn: \"arn:aws:iam::{account}:role/fleet\", namespaceSelector: {{names: [{namespaces}]}}}}\n"
        )
    }

    fn told(files: &[String]) -> Vec<Diagnostic> {
        let tree: Tree = files
            .iter()
            .enumerate()
            .map(|(index, text)| (format!("f{index}.yaml"), FileContent::text(text.as_str())))
            .collect();
        let is_namespaced = |_: &crate::api::GroupVersionKind| Some(true);
        let options = Options {
            path: "",
            default_namespace: "default",
            limits: Limits::default(),
            is_namespaced: &is_namespaced,
        };
        let checked = check(load(&tree, &options), &[]);
        let errors: Vec<_> = checked.diagnostics.iter().filter(|finding| finding.is_error()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        twins(&checked, &expand(&checked))
    }

    #[test]
    fn two_objects_for_one_aws_object_are_told_with_both_places() {
        let one = selector("222222222222", "a, b");
        let found = told(&[one, role("a", "first", "shared"), role("b", "second", "shared")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].message.contains("f1.yaml:1:1"), "{}", found[0].message);
        assert!(found[0].message.contains("Role `shared` in account 222222222222"), "{}", found[0].message);
        assert_eq!(found[0].location.as_ref().unwrap().file, "f2.yaml");
    }

    #[test]
    fn other_accounts_and_regions_are_other_objects() {
        let two = [selector("222222222222", "a"), selector("333333333333", "b")];
        let roles = [role("a", "first", "shared"), role("b", "second", "shared")];
        assert_eq!(told(&[&two[..], &roles].concat()), []);
        let clusters = [cluster("a", "one", "eu-west-1"), cluster("a", "two", "eu-central-1")];
        assert_eq!(told(&clusters), []);
        let same = [cluster("a", "one", "eu-west-1"), cluster("a", "two", "eu-west-1")];
        assert_eq!(told(&same).len(), 1);
    }
}
