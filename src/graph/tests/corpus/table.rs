//! Every definition of kro's own repository with its verdict, every instance with what becomes of it.
//!
//! The snapshots hold paths, names and digests, and nothing of what the files say.

use sha2::{Digest as _, Sha256};

use super::*;
use crate::api::GroupVersionKind;

/// Where kro refuses, too: file, code of the finding, kro's rule (kro.md). A definition that is refused and not
/// listed here fails the test, and so does one that is listed and passes.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "docs-blocks/api/specifications/simple-schema-01.yaml",
        "invalid-expression",
        "3.3: a status names a resource that the fragment does not have",
    ),
    (
        "docs-blocks/docs/concepts/rgd/01-schema-01.yaml",
        "invalid-expression",
        "3.3: a status names a resource that the fragment does not have",
    ),
    (
        "docs-blocks/docs/concepts/rgd/01-schema-02.yaml",
        "missing-field",
        "1.4: a template must have a map metadata",
    ),
    ("docs-blocks/examples/basic/optionals-02.yaml", "invalid-kind", "1.4: the kind must be UpperCamelCase"),
    (
        "examples/apigateway/vpc-lattice/rg-webservice.yaml",
        "unknown-field",
        "1.4: the inner kind of this folder has no such field",
    ),
    (
        "examples/aws/ack-controller/controllers/ec2-controller.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/ack-controller/controllers/ecr-controller.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/ack-controller/controllers/ecr-public-controller.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/ack-controller/controllers/eks-controller.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/ack-controller/controllers/iam-controller.yaml",
        "type-mismatch",
        "3.1: every part of a string template must be a string, this one is a boolean",
    ),
    (
        "examples/aws/ack-controller/controllers/s3-controller.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/ack-controller/controllers/sqs-controller.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/ack-controller/resourcegroup.yaml",
        "invalid-schema",
        "2.1: a value with blanks outside quotes leaves a marker without a value",
    ),
    (
        "examples/aws/webstack/rg.yaml",
        "invalid-expression",
        "3.4: the status of the inner kind has no such field",
    ),
    (
        "examples/aws/webstack/rg.yaml",
        "unknown-field",
        "1.4: no definition of the inner kind has these fields",
    ),
];

/// The files of the corpus, by their paths in it.
struct Files {
    objects: Vec<(String, Object)>,
    made: Vec<(String, KindDescription)>,
    defined: Vec<KindDescription>,
}

impl Files {
    fn read(corpus: &Path) -> Self {
        let root = corpus.join("kro");
        let short = |file: String| file.strip_prefix(&format!("{}/", root.display())).unwrap().to_owned();
        let objects: Vec<(String, Object)> =
            objects(&root).into_iter().map(|(file, object)| (short(file), object)).collect();
        let made = objects
            .iter()
            .filter(|(_, object)| is_definition(object))
            .filter_map(|(file, object)| Some((file.clone(), generated_kind(object).ok()?)))
            .collect();
        let defined = objects
            .iter()
            .filter(|(_, object)| object.gvk().group_kind() == crd_kind())
            .flat_map(|(_, object)| declared_kinds(object).0)
            .collect();
        Self { objects, made, defined }
    }

    fn definitions(&self) -> impl Iterator<Item = &(String, Object)> {
        self.objects.iter().filter(|(_, object)| is_definition(object))
    }

    /// The kinds as a file sees them: of several definitions of one kind the nearest counts.
    fn catalogue(&self, file: &str) -> Catalogue {
        let mut catalogue = Catalogue::builtin();
        catalogue.declare(self.defined.iter().cloned());
        let mut near: Vec<&(String, KindDescription)> = self.made.iter().collect();
        near.sort_by_key(|(other, _)| (nearness(file, other), std::cmp::Reverse(other.clone())));
        for (_, kind) in near {
            catalogue.insert(kind.clone());
        }
        catalogue
    }

    /// The definition of a kind that is nearest to a file.
    fn definition_of(&self, gvk: &GroupVersionKind, file: &str) -> Option<&(String, Object)> {
        self.definitions()
            .filter(|(_, object)| generated_kind(object).is_ok_and(|kind| kind.gvk == *gvk))
            .max_by_key(|(other, _)| (nearness(file, other), std::cmp::Reverse(other.clone())))
    }
}

/// Expected results in kro's own tests have no resources, or no spec at all.
fn is_definition(object: &Object) -> bool {
    object.kind == DEFINITION_KIND && object.body.contains_key("spec") && !object.body.contains_key("status")
}

/// A file with the expected result of a case.
fn is_expected(file: &str) -> bool {
    file.contains("assert") || file.ends_with("-error.yaml")
}

/// Folders that two paths have in common.
fn nearness(file: &str, other: &str) -> usize {
    file.split('/').zip(other.split('/')).take_while(|(a, b)| a == b).count()
}

#[test]
fn every_definition_of_kro_has_its_verdict() {
    let Some(corpus) = corpus() else { return };
    let files = Files::read(&corpus);
    let mut lines = Vec::new();
    let mut refused = Vec::new();
    for (file, object) in files.definitions() {
        let verdict = match compile(object, &files.catalogue(file)) {
            Ok(compiled) if compiled.warnings.is_empty() => "accept".to_owned(),
            Ok(compiled) => format!("accept with warnings: {}", codes(&compiled.warnings).join(" ")),
            Err(problems) => {
                let errors: Vec<Problem> = problems.into_iter().filter(Problem::is_error).collect();
                println!("{file}:\n{}", shown(&errors));
                let codes = codes(&errors);
                refused.extend(codes.iter().map(|code| (file.clone(), code.clone())));
                format!("reject: {}", codes.join(" "))
            }
        };
        lines.push(format!("{file}: {verdict}"));
    }
    assert!(lines.len() > 70, "only {} definitions found", lines.len());
    let explained: Vec<(String, String)> =
        REFUSED.iter().map(|(file, code, _)| ((*file).to_owned(), (*code).to_owned())).collect();
    assert_eq!(refused, explained, "refused, and explained by a rule of kro");
    insta::assert_snapshot!("definitions", lines.join("\n"));
}

fn codes(problems: &[Problem]) -> Vec<String> {
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in problems {
        *codes.entry(problem.code).or_default() += 1;
    }
    codes.keys().map(|code| (*code).to_owned()).collect()
}

#[test]
fn every_instance_of_kro_makes_its_objects() {
    let Some(corpus) = corpus() else { return };
    let files = Files::read(&corpus);
    let mut lines = Vec::new();
    for (file, instance) in files.objects.iter().filter(|(file, _)| !is_expected(file)) {
        let Some((from, definition)) = files.definition_of(&instance.gvk(), file) else { continue };
        let Ok(compiled) = compile(definition, &files.catalogue(from)) else { continue };
        let mut instance = instance.clone();
        if instance.metadata.namespace.is_empty() && compiled.graph.kind().namespaced {
            instance.metadata.namespace = "default".to_owned();
        }
        instance.metadata.uid = "1".to_owned();
        let name = format!("{file} {}", instance.key());
        let (admitted, problems) = compiled.graph.admit(&instance);
        let errors: Vec<Problem> = problems.into_iter().filter(Problem::is_error).collect();
        if !errors.is_empty() {
            println!("{name}:\n{}", shown(&errors));
            lines.push(format!("{name}: refused: {}", codes(&errors).join(" ")));
            continue;
        }
        let mut live = neighbours(&files, file);
        let evaluation = unfold(&compiled.graph, &admitted, &mut live, &files.catalogue(from));
        if evaluation.state != InstanceState::Active {
            println!("{name}:\n{}", told(&evaluation));
        }
        lines.push(format!("{name}: {}", evaluation.state.as_str()));
        for node in &evaluation.nodes {
            for object in &node.objects {
                lines.push(format!("  {} {}: {}", node.id, object.key(), digest(object)));
            }
            if !matches!(node.state, NodeState::Ready) {
                lines.push(format!("  {} {:?}", node.id, node.state));
            }
        }
    }
    assert!(lines.len() > 50, "only {} lines", lines.len());
    insta::assert_snapshot!("instances", lines.join("\n"));
}

/// The plain objects that stand beside an instance: external references find them.
fn neighbours(files: &Files, file: &str) -> Live {
    let folder = |file: &str| file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut live = Live::default();
    for (other, object) in &files.objects {
        let near = folder(file).starts_with(&folder(other)) && other.starts_with("test/");
        if near && matches!(object.kind.as_str(), "ConfigMap" | "Namespace") && !other.contains("assert") {
            live.put(object.clone());
        }
    }
    live
}

/// Runs an instance until nothing changes, in a world that fills in every status that it knows.
fn unfold(graph: &Graph, instance: &Object, live: &mut Live, kinds: &Catalogue) -> Evaluation {
    for _ in 0..40 {
        let evaluation = graph.evaluate(instance, live, UnmanagedKinds::Store);
        let mut changes = live.apply(&evaluation);
        for (key, object) in live.0.clone() {
            let Some(kind) = kinds.kind(&object.gvk()) else { continue };
            let Some(status) = kind.schema.properties.get("status") else { continue };
            let mut status = filled(status, "", &object.metadata.name);
            if kind.keeper == Keeper::Manager && !object.gvk().group.ends_with(".services.k8s.aws") {
                status["state"] = json!("ACTIVE");
                status["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            }
            if *object.status() != status {
                changes += 1;
                live.status(&key.kind, &key.name, status);
            }
        }
        if changes == 0 {
            return evaluation;
        }
    }
    panic!("{} never settles", instance.key());
}

/// A digest of what an author stated, without the marks of the engine.
fn digest(object: &Object) -> String {
    let mut object = object.clone();
    for entries in [&mut object.metadata.labels, &mut object.metadata.annotations] {
        entries
            .retain(|key, _| !key.contains("kro.run/") && !key.starts_with("app.kubernetes.io/managed-by"));
    }
    let digest = Sha256::digest(canonical(&object.to_value()).as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let sorted: BTreeMap<&String, &Value> = entries.iter().collect();
            let entries = sorted.into_iter().map(|(key, value)| format!("{key:?}:{}", canonical(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}
