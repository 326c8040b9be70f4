//! What each write does to the objects: rules only, no disk and no lock.
//!
//! A [`Stage`] stands over the committed state and collects the changes of one batch of requests.
//! A request either changes the stage as a whole or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::fields::{self, FieldSets};
use crate::api::{Object, ObjectKey};
use crate::store::{ANNOTATION_INTENT, Applied, Change, Event, Intent, StoreError, Write, intent_of};

/// An object with the field sets of its owners.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) object: Arc<Object>,
    pub(super) owners: Arc<FieldSets>,
}

/// The committed objects.
pub(super) type Records = BTreeMap<ObjectKey, Record>;

/// One request to the store.
#[derive(Debug)]
pub(super) enum Request {
    Transaction(Vec<Write>),
    Status { key: ObjectKey, expected: Option<String>, status: Value },
    Finalizer { key: ObjectKey, finalizer: String, present: bool },
    Delete { key: ObjectKey, uid: Option<String> },
    Intent { key: ObjectKey, expected: String, intent: Intent },
}

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Reply {
    Applied(Vec<Applied>),
    Object(Arc<Object>),
    Done,
}

/// Changes of one batch over the committed records.
pub(super) struct Stage<'a> {
    base: &'a Records,
    /// New rows; `None` removes one.
    pub(super) rows: IndexMap<ObjectKey, Option<Record>>,
    /// What watchers will see, each with its version.
    pub(super) events: Vec<(u64, Event)>,
    /// Version after the batch.
    pub(super) sequence: u64,
    now: Timestamp,
    new_uid: &'a dyn Fn() -> String,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        base: &'a Records,
        sequence: u64,
        now: Timestamp,
        new_uid: &'a dyn Fn() -> String,
    ) -> Self {
        Self { base, rows: IndexMap::new(), events: Vec::new(), sequence, now, new_uid }
    }

    /// Performs a request: all of it, or nothing and an error.
    pub(super) fn perform(&mut self, request: Request) -> Result<Reply, StoreError> {
        let mut step = Step { stage: self, rows: IndexMap::new(), events: Vec::new() };
        let reply = step.perform(request)?;
        let Step { rows, events, .. } = step;
        if !events.is_empty() {
            self.sequence += 1;
        }
        let sequence = self.sequence;
        self.events.extend(events.into_iter().map(|event| (sequence, event)));
        self.rows.extend(rows);
        Ok(reply)
    }

    fn get(&self, key: &ObjectKey) -> Option<&Record> {
        match self.rows.get(key) {
            Some(row) => row.as_ref(),
            None => self.base.get(key),
        }
    }
}

/// Changes of one request over the stage.
struct Step<'s, 'a> {
    stage: &'s Stage<'a>,
    rows: IndexMap<ObjectKey, Option<Record>>,
    events: Vec<Event>,
}

impl Step<'_, '_> {
    fn perform(&mut self, request: Request) -> Result<Reply, StoreError> {
        match request {
            Request::Transaction(writes) => {
                let mut applied = Vec::new();
                for write in writes {
                    match write {
                        Write::Apply { owner, object } => applied.push(self.apply(&owner, object)?),
                        Write::Delete { key, uid } => match self.delete(&key, uid.as_deref()) {
                            Ok(()) | Err(StoreError::NotFound { .. }) => {}
                            Err(error) => return Err(error),
                        },
                    }
                }
                Ok(Reply::Applied(applied))
            }
            Request::Status { key, expected, status } => {
                self.update_status(&key, expected.as_deref(), status).map(Reply::Object)
            }
            Request::Finalizer { key, finalizer, present } => {
                self.set_finalizer(&key, finalizer, present).map(|()| Reply::Done)
            }
            Request::Delete { key, uid } => self.delete(&key, uid.as_deref()).map(|()| Reply::Done),
            Request::Intent { key, expected, intent } => {
                self.record_intent(&key, &expected, &intent).map(Reply::Object)
            }
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<&Record> {
        match self.rows.get(key) {
            Some(row) => row.as_ref(),
            None => self.stage.get(key),
        }
    }

    fn existing(&self, key: &ObjectKey) -> Result<Record, StoreError> {
        self.get(key).cloned().ok_or_else(|| StoreError::NotFound { key: key.clone() })
    }

    /// Version of what this request writes.
    fn version(&self) -> String {
        (self.stage.sequence + 1).to_string()
    }

    /// Puts a changed object in place, or removes it when nobody holds it back any more.
    fn write(&mut self, key: ObjectKey, mut object: Object, owners: Arc<FieldSets>) -> Arc<Object> {
        object.metadata.resource_version = self.version();
        let object = Arc::new(object);
        if object.is_terminating() && object.metadata.finalizers.is_empty() {
            self.rows.insert(key, None);
            self.events.push(Event::Deleted(Arc::clone(&object)));
        } else {
            self.rows.insert(key, Some(Record { object: Arc::clone(&object), owners }));
            self.events.push(Event::Applied(Arc::clone(&object)));
        }
        object
    }

    fn apply(&mut self, owner: &str, mut wanted: Object) -> Result<Applied, StoreError> {
        validate(&wanted)?;
        encode_string_data(&mut wanted)?;
        let key = wanted.key();
        let mut wanted_view = fields::wanted_view(&wanted);
        let Some(record) = self.get(&key).cloned() else {
            let mut live = Value::Object(Map::new());
            let mut owners = FieldSets::new();
            fields::merge(&mut live, &mut owners, owner, &wanted_view);
            let mut object = Object::new(&wanted.gvk(), key.namespace.clone(), key.name.clone());
            fields::write_back(&mut object, live);
            object.metadata.uid = (self.stage.new_uid)();
            object.metadata.generation = 1;
            object.metadata.creation_timestamp = Some(self.stage.now);
            let object = self.write(key, object, Arc::new(owners));
            return Ok(Applied { object, change: Change::Created });
        };

        if record.object.is_terminating() {
            keep_known_finalizers(&mut wanted_view, &record.object);
        }
        let before = fields::view(&record.object);
        let mut live = before.clone();
        let mut owners = (*record.owners).clone();
        fields::merge(&mut live, &mut owners, owner, &wanted_view);
        let same_fields = live == before && wanted.api_version == record.object.api_version;
        if same_fields {
            if owners != *record.owners {
                // Ownership alone is no change that a reader could see: kept, but no event.
                let record = Record { object: Arc::clone(&record.object), owners: Arc::new(owners) };
                self.rows.insert(key, Some(record));
            }
            return Ok(Applied { object: record.object, change: Change::Unchanged });
        }
        let content_changed =
            wanted.api_version != record.object.api_version || content(&live) != content(&before);
        let mut object = (*record.object).clone();
        object.api_version = wanted.api_version;
        fields::write_back(&mut object, live);
        if content_changed {
            object.metadata.generation += 1;
        }
        let object = self.write(key, object, Arc::new(owners));
        Ok(Applied { object, change: Change::Updated })
    }

    fn update_status(
        &mut self,
        key: &ObjectKey,
        expected: Option<&str>,
        status: Value,
    ) -> Result<Arc<Object>, StoreError> {
        let record = self.existing(key)?;
        if expected.is_some_and(|expected| expected != record.object.metadata.resource_version) {
            return Err(StoreError::Conflict { key: key.clone() });
        }
        if *record.object.status() == status {
            return Ok(record.object);
        }
        let mut object = (*record.object).clone();
        if status.is_null() {
            object.body.remove("status");
        } else {
            object.body.insert("status".into(), status);
        }
        Ok(self.write(key.clone(), object, record.owners))
    }

    fn set_finalizer(&mut self, key: &ObjectKey, finalizer: String, present: bool) -> Result<(), StoreError> {
        let record = self.existing(key)?;
        if record.object.metadata.finalizers.contains(&finalizer) == present {
            return Ok(());
        }
        if present && record.object.is_terminating() {
            // As Kubernetes: "no new finalizers can be added if the object is being deleted".
            return Err(StoreError::Invalid {
                key: key.clone(),
                message: format!("it is being deleted, so the finalizer {finalizer} can no longer be added"),
            });
        }
        let mut object = (*record.object).clone();
        if present {
            object.metadata.finalizers.push(finalizer);
        } else {
            object.metadata.finalizers.retain(|existing| *existing != finalizer);
        }
        self.write(key.clone(), object, record.owners);
        Ok(())
    }

    fn delete(&mut self, key: &ObjectKey, uid: Option<&str>) -> Result<(), StoreError> {
        let record = self.existing(key)?;
        if uid.is_some_and(|uid| uid != record.object.metadata.uid) {
            return Err(StoreError::NotFound { key: key.clone() });
        }
        if record.object.is_terminating() {
            return Ok(());
        }
        let mut object = (*record.object).clone();
        object.metadata.deletion_timestamp = Some(self.stage.now);
        self.write(key.clone(), object, record.owners);
        Ok(())
    }

    fn record_intent(
        &mut self,
        key: &ObjectKey,
        expected: &str,
        intent: &Intent,
    ) -> Result<Arc<Object>, StoreError> {
        let record = self.existing(key)?;
        let recorded_term = intent_of(&record.object).map_or(0, |recorded| recorded.term);
        if expected != record.object.metadata.resource_version || recorded_term > intent.term {
            return Err(StoreError::Conflict { key: key.clone() });
        }
        let text = serde_json::to_string(intent)
            .map_err(|error| StoreError::Backend { action: "write an intent", source: error.into() })?;
        if record.object.annotation(ANNOTATION_INTENT) == Some(text.as_str()) {
            return Ok(record.object);
        }
        let mut object = (*record.object).clone();
        object.metadata.annotations.insert(ANNOTATION_INTENT.into(), text);
        Ok(self.write(key.clone(), object, record.owners))
    }
}

/// The part of a view that `generation` counts.
fn content(view: &Value) -> Vec<(&String, &Value)> {
    view.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata").collect()
}

/// An apply can keep or drop finalizers of a terminating object, but add none.
fn keep_known_finalizers(wanted: &mut Value, live: &Object) {
    let Some(Value::Object(metadata)) = wanted.get_mut("metadata") else { return };
    let Some(Value::Object(finalizers)) = metadata.get_mut("finalizers") else { return };
    finalizers.retain(|name, _| live.metadata.finalizers.contains(name));
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    }
}

/// Rejects names that could not be told apart as keys of the file.
fn validate(object: &Object) -> Result<(), StoreError> {
    let key = object.key();
    let parts = [
        ("apiVersion", &key.group, true),
        ("kind", &key.kind, false),
        ("metadata.namespace", &key.namespace, true),
        ("metadata.name", &key.name, false),
    ];
    for (field, part, may_be_empty) in parts {
        let problem = if part.is_empty() && !may_be_empty {
            "is empty"
        } else if part.contains(|c: char| c == '/' || c.is_control()) {
            "contains a slash or a control character"
        } else {
            continue;
        };
        return Err(StoreError::Invalid { key: key.clone(), message: format!("{field} {problem}") });
    }
    Ok(())
}

/// Turns a Secret's `stringData` into `data`, as an API server does on every write.
fn encode_string_data(object: &mut Object) -> Result<(), StoreError> {
    if object.kind != "Secret" || object.api_version != "v1" {
        return Ok(());
    }
    let Some(plain) = object.body.remove("stringData") else { return Ok(()) };
    // The message names the key and never the value.
    let key = object.key();
    let invalid = |field: &str| StoreError::Invalid {
        key: key.clone(),
        message: format!("{field} must hold strings only"),
    };
    let plain = match plain {
        Value::Null => return Ok(()),
        Value::Object(plain) => plain,
        _ => return Err(invalid("stringData")),
    };
    let mut encoded = Map::new();
    for (name, value) in plain {
        let Value::String(text) = value else { return Err(invalid(&format!("stringData.{name}"))) };
        encoded.insert(name, Value::String(base64::engine::general_purpose::STANDARD.encode(text)));
    }
    match object.body.get_mut("data") {
        Some(Value::Object(data)) => data.extend(encoded),
        None | Some(Value::Null) => {
            object.body.insert("data".into(), Value::Object(encoded));
        }
        Some(_) => return Err(invalid("data")),
    }
    Ok(())
}
