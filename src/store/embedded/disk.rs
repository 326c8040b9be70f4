//! The file: two redb tables, JSON rows, one fsync per batch.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    TableError,
};
use serde::{Deserialize, Serialize};

use super::fields::FieldSets;
use super::identity::Recorded;
use super::ops::{Record, Records};
use crate::api::{Object, ObjectKey};
use crate::store::StoreError;

/// Layout of the rows. Rises with each change that an older program could not read.
pub(super) const SCHEMA_VERSION: u64 = 1;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const IDENTITY: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("identity");
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");

const META_SCHEMA: &str = "schema_version";
const META_SEQUENCE: &str = "sequence";
const IDENTITY_OWN: &str = "own";

/// All reads after the opening come from memory, so redb needs little cache (its default is 1 GiB).
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// A row as it is written.
#[derive(Serialize)]
struct RowRef<'a> {
    object: &'a Object,
    owners: &'a FieldSets,
}

/// A row as it is read.
#[derive(Deserialize)]
struct Row {
    object: Object,
    owners: FieldSets,
}

/// The open file.
#[derive(Debug)]
pub(super) struct Disk {
    database: Database,
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::Backend { action, source: error.into() }
}

impl Disk {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let name = path.display().to_string();
        let is_new = !path.exists();
        let database = builder().create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Locked { path: name.clone() },
            error => {
                StoreError::Backend { action: "open its file", source: format!("{name}: {error}").into() }
            }
        })?;
        if is_new && let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // The file's name is durable only when its directory is.
            File::open(parent)
                .and_then(|directory| directory.sync_all())
                .map_err(failed("sync its directory"))?;
        }
        let disk = Self { database };
        disk.check_schema(&name)?;
        Ok(disk)
    }

    pub(super) fn with_backend(backend: impl StorageBackend) -> Result<Self, StoreError> {
        let database = builder().create_with_backend(backend).map_err(failed("open its backend"))?;
        let disk = Self { database };
        disk.check_schema("the store")?;
        Ok(disk)
    }

    /// Stamps a new file; refuses one that another program version or another program wrote.
    fn check_schema(&self, path: &str) -> Result<(), StoreError> {
        let found = {
            let transaction = self.database.begin_read().map_err(failed("read its file"))?;
            let empty = transaction.list_tables().map_err(failed("read its file"))?.next().is_none();
            match transaction.open_table(META) {
                Ok(meta) => Some(
                    meta.get(META_SCHEMA)
                        .map_err(failed("read its schema version"))?
                        .map_or(0, |row| row.value()),
                ),
                Err(TableError::TableDoesNotExist(_)) if empty => None,
                Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => Some(0),
                Err(error) => return Err(failed("read its schema version")(error)),
            }
        };
        match found {
            Some(SCHEMA_VERSION) => Ok(()),
            Some(found) => Err(StoreError::Schema { path: path.to_owned(), found, expected: SCHEMA_VERSION }),
            None => self.write(0, &IndexMap::new()),
        }
    }

    /// All rows, and the sequence of the last commit.
    pub(super) fn load(&self) -> Result<(Records, u64), StoreError> {
        let transaction = self.database.begin_read().map_err(failed("read its file"))?;
        let meta = transaction.open_table(META).map_err(failed("read its file"))?;
        let sequence =
            meta.get(META_SEQUENCE).map_err(failed("read its sequence"))?.map_or(0, |row| row.value());
        let mut records = Records::new();
        let objects = transaction.open_table(OBJECTS).map_err(failed("read its objects"))?;
        for row in objects.iter().map_err(failed("read its objects"))? {
            let (key, bytes) = row.map_err(failed("read its objects"))?;
            let row: Row = serde_json::from_slice(bytes.value()).map_err(|error| StoreError::Backend {
                action: "read an object",
                // The row's content may be secret: its name and the position are enough.
                source: format!("{}: not valid at byte {}", key.value(), error.column()).into(),
            })?;
            let record = Record { object: Arc::new(row.object), owners: Arc::new(row.owners) };
            records.insert(record.object.key(), record);
        }
        Ok((records, sequence))
    }

    /// Which store this is, when that was ever written.
    pub(super) fn identity(&self) -> Result<Option<Recorded>, StoreError> {
        let transaction = self.database.begin_read().map_err(failed("read its file"))?;
        let table = match transaction.open_table(IDENTITY) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed("read its identity")(error)),
        };
        let Some(row) = table.get(IDENTITY_OWN).map_err(failed("read its identity"))? else {
            return Ok(None);
        };
        serde_json::from_slice(row.value()).map(Some).map_err(failed("read its identity"))
    }

    /// Writes which store this is, durably.
    pub(super) fn set_identity(&self, identity: &Recorded) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(identity).map_err(failed("write its identity"))?;
        let transaction = self.database.begin_write().map_err(failed("begin a write"))?;
        transaction
            .open_table(IDENTITY)
            .map_err(failed("write"))?
            .insert(IDENTITY_OWN, bytes.as_slice())
            .map_err(failed("write its identity"))?;
        transaction.commit().map_err(failed("commit"))
    }

    /// Writes rows in one durable transaction.
    pub(super) fn write(
        &self,
        sequence: u64,
        rows: &IndexMap<ObjectKey, Option<Record>>,
    ) -> Result<(), StoreError> {
        let transaction = self.database.begin_write().map_err(failed("begin a write"))?;
        {
            let mut meta = transaction.open_table(META).map_err(failed("write"))?;
            meta.insert(META_SCHEMA, SCHEMA_VERSION).map_err(failed("write"))?;
            meta.insert(META_SEQUENCE, sequence).map_err(failed("write"))?;
            let mut objects = transaction.open_table(OBJECTS).map_err(failed("write"))?;
            for (key, row) in rows {
                let name = row_key(key);
                match row {
                    Some(record) => {
                        let row = RowRef { object: &record.object, owners: &record.owners };
                        let bytes = serde_json::to_vec(&row).map_err(failed("write an object"))?;
                        objects.insert(name.as_str(), bytes.as_slice()).map_err(failed("write an object"))?;
                    }
                    None => {
                        objects.remove(name.as_str()).map_err(failed("remove an object"))?;
                    }
                }
            }
        }
        // redb's default durability: when commit returns, the file is synced.
        transaction.commit().map_err(failed("commit"))
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// The parts contain no slash: `ops::validate` sees to it.
fn row_key(key: &ObjectKey) -> String {
    format!("{}/{}/{}/{}", key.group, key.kind, key.namespace, key.name)
}
