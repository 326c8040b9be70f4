//! Defaulting and pruning as the API server does them for custom resources.
//!
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting>

use serde_json::Value;

use super::{Schema, join_pointer};

/// Fills in what is absent, from the outside in: a default brings its own nested defaults along.
///
/// A null that may not be null is dropped where a default takes its place; other nulls of fields
/// that are not nullable are pruned, as the API server prunes them.
pub fn apply_defaults(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let null = fields.get(name).is_some_and(Value::is_null) && !property.nullable;
                if null && (property.default.is_some() || !property.is_anything()) {
                    fields.remove(name);
                }
                if let Some(default) = &property.default
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    apply_defaults(property, field);
                }
            }
            if let Some(values) = &schema.additional_properties {
                if let Some(default) = values.default.as_ref().filter(|_| !values.nullable) {
                    fields
                        .iter_mut()
                        .filter(|(name, field)| !schema.properties.contains_key(*name) && field.is_null())
                        .for_each(|(_, field)| *field = default.clone());
                }
                for (_, field) in fields.iter_mut().filter(|(name, _)| !schema.properties.contains_key(*name))
                {
                    apply_defaults(values, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    if let Some(default) = &schema.default
                        && item.is_null()
                        && !schema.nullable
                    {
                        *item = default.clone();
                    }
                    apply_defaults(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// Removes the fields the schema does not know and returns their JSON pointers.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    prune_at(schema, value, "", true, &mut pruned);
    pruned
}

fn prune_at(schema: &Schema, value: &mut Value, pointer: &str, root: bool, pruned: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            // Every object has these, whether its schema says so or not.
            let implied = |name: &str| {
                (root || schema.embedded_resource) && matches!(name, "apiVersion" | "kind" | "metadata")
            };
            let keeps_all = schema.preserve_unknown || schema.is_anything();
            let unknown: Vec<String> = fields
                .keys()
                .filter(|name| schema.field(name).is_none() && !keeps_all && !implied(name))
                .cloned()
                .collect();
            for name in unknown {
                fields.remove(&name);
                pruned.push(join_pointer(pointer, &name));
            }
            for (name, field) in fields {
                if let Some(schema) = schema.field(name) {
                    prune_at(schema, field, &join_pointer(pointer, name), false, pruned);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_at(schema, item, &join_pointer(pointer, &index.to_string()), false, pruned);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(openapi: Value) -> Schema {
        Schema::from_openapi(&openapi).unwrap()
    }

    #[test]
    fn defaults_follow_the_rules_of_the_api_server() {
        let schema = schema(json!({"type": "object", "properties": {
            "size": {"type": "integer", "default": 3},
            "vpc": {"type": "object", "default": {}, "properties": {"create": {"type": "boolean", "default": true}}},
            "free": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}},
            "note": {"type": "string", "nullable": true, "default": "n"},
            "plain": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "tcp"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"q": {"type": "integer", "default": 1}}}},
        }}));
        for (given, expected) in [
            (json!({}), json!({"size": 3, "vpc": {"create": true}, "note": "n"})),
            (
                json!({"size": null, "note": null, "plain": null}),
                json!({"size": 3, "vpc": {"create": true}, "note": null}),
            ),
            (
                json!({"size": 1, "vpc": {"create": false}, "free": {}, "note": ""}),
                json!({"size": 1, "vpc": {"create": false}, "free": {"a": "x"}, "note": ""}),
            ),
            (
                json!({"list": [{}, {"p": "udp"}], "map": {"k": {}}}),
                json!({"size": 3, "vpc": {"create": true}, "note": "n", "list": [{"p": "tcp"}, {"p": "udp"}], "map": {"k": {"q": 1}}}),
            ),
        ] {
            let mut value = given.clone();
            apply_defaults(&schema, &mut value);
            assert_eq!(value, expected, "from {given}");
        }
    }

    #[test]
    fn unknown_fields_are_pruned_and_named() {
        let schema = schema(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                    "known": {"type": "object", "properties": {"x": {"type": "string"}}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
            }},
        }}));
        let mut value = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1, "spec": {
            "a": "1", "b/c": 2, "any": {"free": 1, "known": {"x": "1", "y": 2}}, "labels": {"k": "v"}, "items": [{"n": "1", "m": 2}]}});
        let mut pruned = prune(&schema, &mut value);
        pruned.sort();
        assert_eq!(pruned, ["/extra", "/spec/any/known/y", "/spec/b~1c", "/spec/items/0/m"]);
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {
                "a": "1", "any": {"free": 1, "known": {"x": "1"}}, "labels": {"k": "v"}, "items": [{"n": "1"}]}})
        );
    }
}
