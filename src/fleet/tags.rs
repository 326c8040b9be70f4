//! Tags that AWS would refuse, in what instances unfold into: an input of an instance ends up in them.

use super::Expanded;
use crate::api::ack;
use crate::diagnostic::Diagnostic;
use crate::graph::PreviewState;

/// The tags of what instances make that AWS would refuse. Those of documents are findings of their check.
pub fn refused_tags(expansion: &[Expanded]) -> Vec<Diagnostic> {
    let made = expansion.iter().filter_map(|expanded| Some((expanded, expanded.maker.as_ref()?)));
    let told = made.filter(|(expanded, _)| expanded.state != PreviewState::Excluded);
    let found = told.flat_map(|(expanded, maker)| {
        expanded.objects.iter().flat_map(move |preview| {
            let object = &preview.object;
            let refused = ack::tags::refused(&object.gvk().group_kind(), object.spec());
            refused.into_iter().map(move |(_, what)| {
                let message = format!("node `{}` of {}: {what}", maker.node, maker.instance);
                let help = format!("correct the instance, or the definition `{}`", maker.definition);
                let problem = Diagnostic::error("invalid-tag", message).with_help(help);
                match super::expand::location(&expanded.source) {
                    Some(location) => problem.at(location),
                    None => problem,
                }
            })
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{FileContent, Limits, Options, Tree, check, expand, load};

    const DEFINITION: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: net}
spec:
  schema: {apiVersion: v1alpha1, kind: Net, spec: {tenant: string}}
  resources:
    - id: vpc
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: VPC
        metadata: {name: "${schema.metadata.name}"}
        spec: {cidrBlocks: [10.0.0.0/16], tags: [{key: tenant, value: "${schema.spec.tenant}"}]}
"#;

    fn told(tenant: &str) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let net = format!(
            "apiVersion: kro.run/v1alpha1\nkind: Net\nmetadata: {{name: a}}\nspec: {{tenant: \"{tenant}\"}}\n"
        );
        let vpc = format!(
            "apiVersion: ec2.services.k8s.aws/v1alpha1\nkind: VPC\nmetadata: {{name: b}}\nspec:\n  cidrBlocks: [10.1.0.0/16]\n  tags:\n    - {{key: tenant, value: \"{tenant}\"}}\n"
        );
        let files = [("definition.yaml", DEFINITION.to_owned()), ("net.yaml", net), ("vpc.yaml", vpc)];
        let tree: Tree = files.map(|(path, text)| (path.to_owned(), FileContent::text(text.as_str()))).into();
        let is_namespaced = |_: &crate::api::GroupVersionKind| Some(true);
        let options = Options {
            path: "",
            default_namespace: "default",
            limits: Limits::default(),
            is_namespaced: &is_namespaced,
        };
        let checked = check(load(&tree, &options), &[]);
        let made = refused_tags(&expand(&checked));
        (checked.diagnostics.into_iter().filter(Diagnostic::is_error).collect(), made)
    }

    #[test]
    fn a_tag_that_aws_would_refuse_is_told_of_a_document_and_of_what_an_instance_makes() {
        assert_eq!(told("shop"), (Vec::new(), Vec::new()));
        let (stated, made) = told("shop\\e[31m");
        assert_eq!((stated.len(), made.len()), (1, 1), "{stated:#?} {made:#?}");
        assert_eq!(stated[0].location.as_ref().unwrap().to_string(), "vpc.yaml:7:7");
        assert_eq!(made[0].location.as_ref().unwrap().file, "net.yaml");
        for finding in [&stated[0], &made[0]] {
            assert!(finding.code == "invalid-tag" && finding.message.contains("U+001B"), "{finding}");
        }
    }
}
