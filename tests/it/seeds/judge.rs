//! Watches every call of the daemon and says which of its promises it broke.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use fleetwright::simulator::{CallRecord, Simulator};
use serde_json::Value;

use super::fleet::{Fleet, Identity, is_protected};
use super::inventory::{Owned, owned};
use super::machine::FLEET;

/// A judge. Clones are the same one.
#[derive(Clone)]
pub struct Judge {
    simulator: Simulator,
    books: Arc<Mutex<Books>>,
}

/// What the judge knows.
#[derive(Default)]
pub struct Books {
    /// Number of the last call that was judged.
    seen: u64,
    /// The fleet's AWS objects when they were last looked at.
    pub objects: BTreeMap<String, Owned>,
    pub law: Law,
    /// What must stay as it is, by place in the snapshot.
    foreign: BTreeMap<String, Value>,
    /// Promises that were broken.
    pub broken: Vec<String>,
}

/// What Git allows.
#[derive(Default)]
pub struct Law {
    /// What Git states now, with the root that means it.
    pub stated: BTreeMap<Identity, String>,
    /// What Git once stated and states no more.
    pub gone: BTreeMap<Identity, Gone>,
    /// AWS objects that may be deleted: their removal was valid, though their name may be wanted again.
    deletable: BTreeSet<String>,
    /// Accounts that a selector names.
    accounts: BTreeSet<String>,
    /// Accounts that are marked as another store's.
    marked: BTreeSet<String>,
}

/// A removal.
pub struct Gone {
    pub root: String,
    /// Whether it may be carried out.
    pub allowed: bool,
}

impl Law {
    /// A commit is in force: what it no longer states may go, unless it needs an approval.
    fn commit(&mut self, before: &Fleet, after: &Fleet) {
        self.stated = after.stated();
        for (identity, root) in before.stated() {
            if self.stated.contains_key(&identity) {
                continue;
            }
            let held = if after.roots.contains_key(&root) {
                is_protected(&identity)
            } else {
                before.roots[&root].identities(&root).iter().any(|identity| is_protected(identity))
            };
            self.gone.insert(identity, Gone { root, allowed: !held });
        }
        let stated = &self.stated;
        self.gone.retain(|identity, _| !stated.contains_key(identity));
    }

    fn allows(&self, id: &str) -> bool {
        self.deletable.contains(id)
    }

    fn mark(&mut self, objects: &BTreeMap<String, Owned>) {
        for (id, object) in objects {
            if self.gone.get(&object.identity).is_some_and(|gone| gone.allowed) {
                self.deletable.insert(id.clone());
            }
        }
    }
}

impl Judge {
    pub fn new(simulator: Simulator, accounts: impl IntoIterator<Item = String>) -> Self {
        let mut books = Books::default();
        books.law.accounts = accounts.into_iter().collect();
        Self { simulator, books: Arc::new(Mutex::new(books)) }
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// These places of the snapshot belong to others.
    pub fn protect(&self, places: impl IntoIterator<Item = String>) {
        let snapshot = self.simulator.snapshot().unwrap();
        let mut books = self.books();
        for place in places {
            let there = snapshot.pointer(&place).unwrap_or_else(|| panic!("nothing at {place}")).clone();
            books.foreign.insert(place, there);
        }
    }

    /// A commit is what Git says from now on.
    pub fn commit(&self, before: &Fleet, after: &Fleet) {
        let mut books = self.books();
        let Books { law, objects, .. } = &mut *books;
        law.commit(before, after);
        law.mark(objects);
    }

    /// A person has approved removals.
    pub fn approve(&self, meant: impl Fn(&Identity, &Gone) -> bool) {
        let mut books = self.books();
        let Books { law, objects, .. } = &mut *books;
        for (identity, gone) in &mut law.gone {
            gone.allowed |= meant(identity, gone);
        }
        law.mark(objects);
    }

    /// An object was removed from Git, and a person has approved it.
    pub fn allow(&self, identity: &str) {
        let mut books = self.books();
        let Books { law, objects, .. } = &mut *books;
        let root = law.stated.remove(identity).unwrap_or_default();
        law.gone.insert(identity.to_owned(), Gone { root, allowed: true });
        law.mark(objects);
    }

    /// The store is gone, and with it every removal that was under way.
    pub fn forget(&self) {
        let mut books = self.books();
        books.law.deletable.clear();
        for gone in books.law.gone.values_mut() {
            gone.allowed = false;
        }
        let snapshot = self.simulator.snapshot().unwrap();
        let is_marked = |account: &String| {
            let marker = format!("arn:aws:iam::{account}:policy/fleetwright/{FLEET}");
            snapshot["accounts"][account]["iam"]["policies"].get(marker).is_some()
        };
        books.law.marked = books.law.accounts.iter().filter(|account| is_marked(account)).cloned().collect();
    }

    /// A person has said that the present store may change AWS.
    pub fn take_over(&self) {
        self.books().law.marked.clear();
    }

    /// Judges what has happened since the last look. `ours` says whether it was the daemon's doing.
    pub fn look(&self, ours: bool) {
        let mut books = self.books();
        if !books.broken.is_empty() {
            // What follows from the first broken promise says nothing new.
            return;
        }
        let calls = self.simulator.calls_after(books.seen);
        let Some(last) = calls.last() else { return };
        books.seen = last.number;
        let effective: Vec<&CallRecord> =
            calls.iter().filter(|call| call.mutating && call.effective).collect();
        if effective.is_empty() {
            return;
        }
        let snapshot = self.simulator.snapshot().unwrap();
        let mut objects = owned(&snapshot);
        objects.retain(|_, object| object.fleet == FLEET);
        let by =
            effective.iter().map(|call| format!("{} {}", call.number, call.operation)).collect::<Vec<_>>();
        let by = by.join(", ");
        let Books { objects: before, law, foreign, broken, .. } = &mut *books;
        if ours {
            for call in &effective {
                if !law.accounts.contains(call.account.as_str()) {
                    broken.push(format!("call {by} in account {}, which no selector names", call.account));
                }
                if law.marked.contains(call.account.as_str()) {
                    broken.push(format!("call {by} in account {}, which is another store's", call.account));
                }
            }
            for (id, object) in before.iter().filter(|(_, object)| object.alive) {
                let alive = objects.get(id).is_some_and(|object| object.alive);
                if !alive && !law.allows(id) {
                    broken.push(format!(
                        "call {by} deleted {} ({id}) without a valid removal",
                        object.identity
                    ));
                }
            }
        }
        let mut alive: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (id, object) in objects.iter().filter(|(_, object)| object.alive) {
            alive.entry(&object.identity).or_default().push(id);
        }
        for (identity, ids) in alive.iter().filter(|(_, ids)| ids.len() > 1) {
            broken.push(format!("call {by}: {identity} exists {} times: {}", ids.len(), ids.join(" and ")));
        }
        for (place, expected) in foreign.iter() {
            if snapshot.pointer(place) != Some(expected) {
                broken.push(format!("call {by} touched {place}, which is not ours"));
            }
        }
        law.mark(&objects);
        *before = objects;
    }
}
