//! The public sample that started this project: its three definitions run unchanged.
//!
//! The corpus is not part of the repository. Where it is missing the tests say so and end; set
//! `FLEETWRIGHT_CORPUS` to its folder to run them.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

mod table;

use crate::schema::{Schema, SchemaType};
use crate::yaml;

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("FLEETWRIGHT_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no corpus at {}; set FLEETWRIGHT_CORPUS", folder.display());
    None
}

/// All objects of the YAML files below a folder, with their files.
fn objects(folder: &Path) -> Vec<(String, Object)> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(objects(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let file = path.display().to_string();
            let parsed = yaml::parse(&file, &fs::read_to_string(&path).unwrap(), &yaml::Limits::default());
            let objects =
                parsed.documents.into_iter().filter_map(|document| Object::from_value(document.value).ok());
            found.extend(objects.map(|object| (file.clone(), object)));
        }
    }
    found
}

/// All definitions below a folder, with their files.
fn definitions(folder: &Path) -> Vec<(String, Object)> {
    let mut found = objects(folder);
    found.retain(|(_, object)| object.kind == DEFINITION_KIND);
    found
}

/// What AWS might answer: every field of the status has a value.
fn filled(schema: &Schema, name: &str, of: &str) -> Value {
    match (name, schema.type_) {
        ("status", Some(SchemaType::String)) => json!("ACTIVE"),
        ("state", Some(SchemaType::String)) => json!("available"),
        ("conditions", _) => json!([{"type": "ACK.ResourceSynced", "status": "True"}]),
        (_, Some(SchemaType::Object)) => Value::Object(
            schema.properties.iter().map(|(name, field)| (name.clone(), filled(field, name, of))).collect(),
        ),
        (_, Some(SchemaType::Array)) => json!([]),
        (_, Some(SchemaType::Boolean)) => json!(true),
        (_, Some(SchemaType::Integer | SchemaType::Number)) => json!(1),
        _ => json!(format!("{of}-{name}")),
    }
}

/// Runs every instance of a graph and every AWS resource until nothing changes; tells the rounds.
fn settle(compiled: &CompiledDefinitions, live: &mut Live) -> usize {
    for round in 1..100 {
        let mut changes = 0;
        for (key, object) in live.0.clone() {
            let gvk = object.gvk();
            let graph = compiled
                .outcomes
                .values()
                .filter_map(|outcome| outcome.as_ref().ok())
                .map(|compiled| &compiled.graph)
                .find(|graph| graph.kind().gvk == gvk);
            let status = if let Some(graph) = graph {
                let (admitted, problems) = graph.admit(&object);
                assert!(!problems.iter().any(Problem::is_error), "{key}: {}", shown(&problems));
                let evaluation = graph.evaluate(&admitted, live, UnmanagedKinds::Hold);
                assert!(
                    evaluation.nodes.iter().all(|node| node.state != NodeState::Failed),
                    "{key}:\n{}",
                    told(&evaluation)
                );
                changes += live.apply(&evaluation);
                let told = instance_status(&evaluation, 0);
                let mut status = evaluation.status.clone();
                status.insert("state".into(), json!(told.state.as_str()));
                status.insert("conditions".into(), serde_json::to_value(&told.conditions).unwrap());
                Value::Object(status)
            } else if gvk.group.ends_with(".services.k8s.aws") {
                let kind = compiled.catalogue.kind(&gvk).unwrap();
                filled(&kind.schema.properties["status"], "", &object.metadata.name)
            } else {
                continue;
            };
            if *object.status() != status {
                changes += 1;
                live.status(&key.kind, &key.name, status);
            }
        }
        if changes == 0 {
            return round;
        }
    }
    panic!("it never settles");
}

fn cluster(create: bool) -> Object {
    Object::from_value(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "EksCluster",
        "metadata": {"name": "alpha", "namespace": "argocd"},
        "spec": {
            "name": "alpha", "accountId": "222222222222", "managementAccountId": "111111111111",
            "subHostedZone": "x", "gitops": {}, "addons": {},
            "vpc": {"create": create, "vpcId": "vpc-0", "privateSubnet1Id": "subnet-1", "privateSubnet2Id": "subnet-2"},
        },
    }))
    .unwrap()
}

#[test]
fn the_sample_definitions_run_unchanged() {
    let Some(corpus) = corpus() else { return };
    let found = definitions(&corpus.join("eks-cluster-mgmt/charts/kro/resource-groups/eks"));
    let compiled = compile_all(found.iter().map(|(_, object)| object), Catalogue::builtin());
    for (name, outcome) in &compiled.outcomes {
        let compiled = outcome.as_ref().unwrap_or_else(|problems| panic!("{name}:\n{}", shown(problems)));
        println!("{name}: {} nodes, {} warnings", compiled.graph.nodes().count(), compiled.warnings.len());
        assert_eq!(shown(&compiled.warnings), "", "{name}");
    }
    let nodes = |name: &str| compiled.outcomes[name].as_ref().unwrap().graph.nodes().count();
    assert_eq!(["vpc.kro.run", "eksclusterbasic.kro.run", "ekscluster.kro.run"].map(nodes), [13, 9, 3]);

    for (create, objects) in [(true, 1 + 2 + 13 + 9), (false, 1 + 1 + 9)] {
        let mut live = Live::default();
        live.put(cluster(create));
        let rounds = settle(&compiled, &mut live);
        println!("vpc.create={create}: settled after {rounds} rounds with {} objects", live.0.len());
        assert_eq!(live.0.len(), objects, "{:#?}", live.0.keys());
        let cluster = live.get(&cluster(create).key()).unwrap();
        assert_eq!(cluster.status()["state"], json!("ACTIVE"), "{}", cluster.status());
        let secret = live.get(&ObjectKey::new("", "Secret", "argocd", "alpha")).unwrap();
        assert_eq!(secret.label("argocd.argoproj.io/secret-type"), Some("cluster"));
        assert!(secret.body.contains_key("data") && !secret.body.contains_key("stringData"));
        let vpc = if create { "alpha-vpc-vpcID" } else { "vpc-0" };
        assert_eq!(secret.annotation("aws_vpc_id"), Some(vpc));
    }
}
