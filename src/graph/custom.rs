//! Kinds that CustomResourceDefinitions declare. Nobody here looks after their objects, but what is written of
//! them is checked as an API server would.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::instance::{FAILED_RULE, dropped_field, problem};
use super::rules::Rules;
use super::{Catalogue, Keeper, KindDescription, Problem};
use crate::api::{GroupKind, GroupVersionKind, Object};
use crate::diagnostic::Severity;
use crate::redact::Fields;
use crate::schema::{self, Schema};

/// The kind of CustomResourceDefinitions.
pub fn crd_kind() -> GroupKind {
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")
}

impl Catalogue {
    /// The built-in kinds and those that CRDs declare; what is wrong with the CRDs is told elsewhere.
    pub fn with_declared<'a>(crds: impl IntoIterator<Item = &'a Object>) -> Self {
        let mut catalogue = Self::builtin();
        for crd in crds {
            catalogue.declare(declared_kinds(crd).0);
        }
        catalogue
    }
}

/// The versions of its kind that a CRD serves, with their schemas and rules; and what is wrong with it. With an
/// error there are none.
pub fn declared_kinds(crd: &Object) -> (Vec<KindDescription>, Vec<Problem>) {
    let mut reader = Reader { problems: Vec::new() };
    if crd.gvk().version != "v1" {
        let message = format!("`{}` was removed in Kubernetes 1.22: the kind is not read", crd.api_version);
        let help = "write it as `apiextensions.k8s.io/v1`".to_owned();
        return (Vec::new(), vec![Problem::warning("/apiVersion", "unread-crd", message).with_help(help)]);
    }
    let kinds = reader.read(crd);
    let failed = reader.problems.iter().any(Problem::is_error);
    (if failed { Vec::new() } else { kinds }, reader.problems)
}

struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn error(&mut self, pointer: &str, message: impl Into<String>) {
        self.problems.push(Problem::error(pointer, "invalid-crd", message));
    }

    fn text<'a>(&mut self, crd: &'a Object, pointer: &str) -> Option<&'a str> {
        let text = crd.spec().pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        if text.is_none() {
            self.error("/spec", format!("`spec{}` must be a text", pointer.replace('/', ".")));
        }
        text
    }

    fn read(&mut self, crd: &Object) -> Vec<KindDescription> {
        let (group, kind) = (self.text(crd, "/group"), self.text(crd, "/names/kind"));
        let (plural, scope) = (self.text(crd, "/names/plural"), self.text(crd, "/scope"));
        if let (Some(group), Some(plural)) = (group, plural)
            && crd.metadata.name != format!("{plural}.{group}")
        {
            self.error("/metadata/name", format!("the name must be plural and group: `{plural}.{group}`"));
        }
        if let Some(other) = scope.filter(|scope| !["Namespaced", "Cluster"].contains(scope)) {
            self.error("/spec/scope", format!("scope `{other}` must be Namespaced or Cluster"));
        }
        let versions = crd.spec().get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if versions.is_empty() {
            self.error("/spec", "`spec.versions` must name at least one version");
        }
        let mut kinds = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            let pointer = format!("/spec/versions/{index}");
            let Some(name) = version.get("name").and_then(Value::as_str) else {
                self.error(&pointer, "a version must have a `name`");
                continue;
            };
            if version.get("served") == Some(&Value::Bool(false)) {
                continue;
            }
            let Some((schema, rules)) = self.schema(version, &pointer) else { continue };
            let (Some(group), Some(kind)) = (group, kind) else { continue };
            kinds.push(KindDescription {
                gvk: GroupVersionKind { group: group.into(), version: name.into(), kind: kind.into() },
                namespaced: scope == Some("Namespaced"),
                schema,
                keeper: Keeper::Nobody,
                rules: rules.map(Arc::new),
                sensitive: Fields::none(),
            });
        }
        kinds
    }

    fn schema(&mut self, version: &Value, pointer: &str) -> Option<(Schema, Option<Rules>)> {
        let Some(openapi) = version.pointer("/schema/openAPIV3Schema") else {
            self.error(pointer, "a version must have a schema: `schema.openAPIV3Schema`");
            return None;
        };
        let pointer = format!("{pointer}/schema/openAPIV3Schema");
        let mut schema = match Schema::from_openapi(openapi) {
            Ok(schema) => schema,
            Err(error) => {
                self.error(&format!("{pointer}{}", error.pointer()), error.to_string());
                return None;
            }
        };
        for implied in ["apiVersion", "kind", "metadata"] {
            schema.properties.remove(implied);
            schema.required.remove(implied);
        }
        let mut problems = Vec::new();
        let rules = Rules::compile(&whole(schema.clone()), &pointer, &mut problems);
        // It may well be a rule to an API server.
        self.problems.extend(problems.into_iter().map(|problem| Problem {
            pointer: pointer.clone(),
            code: "rule-not-held",
            severity: Severity::Note,
            message: format!("{}: it is not held against objects", problem.message),
            ..problem
        }));
        Some((schema, rules))
    }
}

/// What the rules of a root see besides its own fields.
fn whole(mut schema: Schema) -> Schema {
    let metadata = Schema::object([("name", Schema::string()), ("generateName", Schema::string())]);
    let fields = [("apiVersion", Schema::string()), ("kind", Schema::string()), ("metadata", metadata)];
    schema.properties.extend(fields.map(|(name, field)| (name.to_owned(), field)));
    schema
}

impl KindDescription {
    /// Defaults, prunes and validates an object of the kind. Rules about changes are held against the version
    /// that it takes the place of.
    pub fn admit(&self, object: &Object, in_force: Option<&Object>) -> (Object, Vec<Problem>) {
        let sensitive = Fields::of(object);
        let (body, pruned) = self.settled(object);
        let mut problems: Vec<Problem> =
            pruned.iter().map(|pointer| dropped_field(&self.schema, pointer)).collect();
        let mut admitted = object.clone();
        let violations = schema::validate(&self.schema, &body);
        let rules = self.rules.as_ref().filter(|_| violations.is_empty());
        if let Value::Object(body) = body {
            admitted.body = body;
        }
        let broken = rules.map(|rules| {
            let old = in_force.map(|in_force| {
                let mut old = in_force.clone();
                if let (Value::Object(body), _) = self.settled(in_force) {
                    old.body = body;
                }
                old.to_value()
            });
            rules.violations(&admitted.to_value(), old.as_ref(), "")
        });
        let violations = violations.into_iter().map(|violation| (violation, "invalid-value"));
        let broken = broken.into_iter().flatten().map(|violation| (violation, FAILED_RULE));
        problems
            .extend(violations.chain(broken).map(|(violation, code)| problem(violation, code, &sensitive)));
        (admitted, problems)
    }

    /// The body with its defaults and without the fields that nobody declared, whose places are told.
    fn settled(&self, object: &Object) -> (Value, Vec<String>) {
        let mut body = Value::Object(Map::clone(&object.body));
        schema::apply_defaults(&self.schema, &mut body);
        let pruned = schema::prune(&self.schema, &mut body);
        (body, pruned)
    }
}
