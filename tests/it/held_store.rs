//! A store in which the pass of one instance is held at the worst moment: it has read which revision is in force,
//! and the next one comes before it looks at anything else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fleetwright::api::provenance::revision_key;
use fleetwright::api::{Object, ObjectKey};
use fleetwright::store::{
    Applied, Embedded, Intent, Listing, ObjectStore, Selector, StoreError, StoreIdentity, Version, Watch,
    Write,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::Id;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is held.
    Open,
    /// Passes of a revision are to be held.
    Armed(i64),
    /// The one pass is held.
    Holding,
}

/// The store.
pub struct HeldStore {
    inner: Arc<Embedded>,
    /// The instance whose pass goes on with what it read; the others wait and read anew.
    instance: ObjectKey,
    /// Its definition, whose status says that its graph is there.
    definition: ObjectKey,
    /// Which instance each task works on.
    tasks: Mutex<BTreeMap<String, ObjectKey>>,
    pub stage: watch::Sender<Stage>,
}

impl HeldStore {
    pub fn new(inner: Arc<Embedded>, instance: &str, definition: &str) -> Self {
        let (instance, definition) = (instance.parse().unwrap(), definition.parse().unwrap());
        Self { inner, instance, definition, tasks: Mutex::default(), stage: watch::Sender::new(Stage::Open) }
    }

    async fn until_open(&self) {
        self.stage.subscribe().wait_for(|stage| *stage == Stage::Open).await.unwrap();
    }

    async fn is_compiled(&self) -> bool {
        let Some(definition) = self.inner.get(&self.definition).await.unwrap() else { return false };
        let conditions = definition.status()["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["observedGeneration"] == definition.metadata.generation)
    }
}

#[async_trait]
impl ObjectStore for HeldStore {
    async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, StoreError> {
        let found = self.inner.get(key).await?;
        let Some(task) = tokio::task::try_id().as_ref().map(Id::to_string) else { return Ok(found) };
        if key.group_kind() == self.instance.group_kind() {
            self.tasks.lock().unwrap().insert(task, key.clone());
            return Ok(found);
        }
        let instance = self.tasks.lock().unwrap().get(&task).cloned();
        let (Some(instance), Some(record)) = (instance, found.as_ref()) else { return Ok(found) };
        let is_meant = match *self.stage.borrow() {
            Stage::Open => false,
            Stage::Armed(generation) => record.metadata.generation == generation,
            Stage::Holding => true,
        };
        if *key != revision_key() || !is_meant {
            return Ok(found);
        }
        if instance != self.instance {
            self.until_open().await;
            return self.inner.get(key).await;
        }
        if self.is_compiled().await {
            self.stage.send_replace(Stage::Holding);
            self.until_open().await;
        }
        Ok(found)
    }

    async fn list(&self, selector: &Selector) -> Result<Listing, StoreError> {
        self.inner.list(selector).await
    }

    async fn watch(&self, from: &Version) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.watch(from).await
    }

    async fn apply(&self, owner: &str, object: Object) -> Result<Applied, StoreError> {
        self.inner.apply(owner, object).await
    }

    async fn transaction(&self, writes: Vec<Write>) -> Result<Vec<Applied>, StoreError> {
        self.inner.transaction(writes).await
    }

    async fn update_status(
        &self,
        key: &ObjectKey,
        expected: Option<&str>,
        status: Value,
    ) -> Result<Arc<Object>, StoreError> {
        self.inner.update_status(key, expected, status).await
    }

    async fn set_finalizer(&self, key: &ObjectKey, finalizer: &str, present: bool) -> Result<(), StoreError> {
        self.inner.set_finalizer(key, finalizer, present).await
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), StoreError> {
        self.inner.delete(key, uid).await
    }

    async fn record_intent(
        &self,
        key: &ObjectKey,
        expected: &str,
        intent: &Intent,
    ) -> Result<Arc<Object>, StoreError> {
        self.inner.record_intent(key, expected, intent).await
    }

    fn identity(&self) -> StoreIdentity {
        self.inner.identity()
    }

    async fn begin_term(&self, above: u64) -> Result<StoreIdentity, StoreError> {
        self.inner.begin_term(above).await
    }

    async fn become_another(&self) -> Result<StoreIdentity, StoreError> {
        self.inner.become_another().await
    }
}
