//! The CustomResourceDefinition of the kind that a definition creates, as a value.

use serde_json::{Map, Value, json};

use super::{Graph, label_value};
use crate::api::definition::Scope;
use crate::api::{names, plural};

impl Graph {
    /// The CustomResourceDefinition of the kind, as kro makes it: one version, served and stored, with a status
    /// subresource.
    pub fn custom_resource_definition(&self) -> Value {
        let declared = &self.declared;
        let singular = declared.gvk.kind.to_lowercase();
        let plural = plural(&declared.gvk.kind);
        let mut labels = declared.labels.clone();
        labels.insert(names::LABEL_OWNED.to_owned(), "true".to_owned());
        labels.insert(names::LABEL_DEFINITION_NAME.to_owned(), label_value(&self.definition));
        let mut metadata = json!({"name": format!("{plural}.{}", declared.gvk.group), "labels": labels});
        if !declared.annotations.is_empty() {
            metadata["annotations"] = json!(declared.annotations);
        }
        let mut kinds = json!({
            "kind": declared.gvk.kind,
            "listKind": format!("{}List", declared.gvk.kind),
            "plural": plural,
            "singular": singular,
        });
        for (key, list) in [("shortNames", &declared.short_names), ("categories", &declared.categories)] {
            if !list.is_empty() {
                kinds[key] = json!(list);
            }
        }
        let columns = if declared.printer_columns.is_empty() {
            printer_columns()
        } else {
            Value::from(declared.printer_columns.clone())
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "conversion": {"strategy": "None"},
                "group": declared.gvk.group,
                "names": kinds,
                "scope": if declared.scope == Scope::Cluster { "Cluster" } else { "Namespaced" },
                "versions": [{
                    "name": declared.gvk.version,
                    "served": true,
                    "storage": true,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": self.openapi()},
                }],
            },
        })
    }

    /// The schema of whole objects of the kind.
    fn openapi(&self) -> Value {
        let mut properties = Map::from_iter([
            ("apiVersion".to_owned(), json!({"type": "string"})),
            ("kind".to_owned(), json!({"type": "string"})),
            ("metadata".to_owned(), json!({"type": "object"})),
        ]);
        for (name, schema) in &self.kind.schema.properties {
            properties.insert(name.clone(), schema.to_openapi());
        }
        // What may be left out of `spec` may be left out with it.
        json!({"type": "object", "properties": properties})
    }
}

/// The columns of a kind whose definition names none.
fn printer_columns() -> Value {
    json!([
        {
            "name": "State",
            "type": "string",
            "description": "The state of a ResourceGraphDefinition instance",
            "jsonPath": ".status.state",
        },
        {
            "name": "Ready",
            "type": "string",
            "description": "Whether a ResourceGraphDefinition instance is ready",
            "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        },
        {
            "name": "Age",
            "type": "date",
            "description": "Age of the resource",
            "jsonPath": ".metadata.creationTimestamp",
        },
    ])
}
