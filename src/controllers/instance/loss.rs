//! What an instance would lose by a pass, and whether it may.
//!
//! What goes is judged before it goes, over the whole fleet and by its effect on AWS (decisions 10). The set
//! of one pass goes or stays as a whole, and what lives by it stays as it is for as long.

use serde::{Deserialize, Serialize};

use super::*;
use crate::api::ack;
use crate::controllers::anchors::Anchors;
use crate::controllers::losses::Evaluated;
use crate::plan::guard::{HeldHere, digest_of};
use crate::plan::held_list::{self, Besides};
use crate::plan::losses::{self, Child, Epoch, Gone, Loss};
use crate::store::approvals;

/// What an instance remembers of its passes: members of `status.fleetwright`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Memory {
    /// The content that was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Inputs>,
    /// The loss that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<Appeared>,
    /// The loss that was last let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<Gone>,
    /// What an approval must name.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<HeldHere>,
    /// How often the loss of a living child, by its uid, was held and taken back.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    taken_back: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Inputs {
    generation: i64,
    definition: String,
    /// The revision in which they changed.
    epoch: Epoch,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Appeared {
    set: String,
    epoch: Epoch,
}

impl Memory {
    pub(super) fn of(instance: &Object) -> Self {
        let own = instance.status().get("fleetwright").cloned().unwrap_or_default();
        serde_json::from_value(own).unwrap_or_default()
    }

    /// Takes note of the content that a pass looks at.
    pub(super) fn see(&mut self, instance: &Object, definition: String, epoch: Epoch) {
        let generation = instance.metadata.generation;
        let same = |inputs: &Inputs| inputs.generation == generation && inputs.definition == definition;
        if !self.inputs.as_ref().is_some_and(same) {
            self.inputs = Some(Inputs { generation, definition, epoch });
        }
    }

    /// Takes note of children that were about to go, waited for an approval, and are wanted again: the approval
    /// that was told for them dies.
    pub(super) fn take_back(&mut self, living: &[Arc<Object>], desired: &[Object]) {
        self.taken_back.retain(|uid, _| living.iter().any(|child| child.metadata.uid == *uid));
        let Some(held) = &mut self.held else { return };
        for key in desired.iter().map(Object::key) {
            if held.removals.remove(&key.to_string()).is_some()
                && let Some(child) = living.iter().find(|child| child.key() == key)
            {
                let times = self.taken_back.entry(child.metadata.uid.clone()).or_default();
                *times = times.saturating_add(1);
            }
        }
    }

    /// The value of `status.fleetwright`.
    pub(super) fn to_value(&self, nodes: Value) -> Value {
        // Numbers, texts and lists only: serialisation cannot fail.
        let mut own = serde_json::to_value(self).unwrap_or_default();
        own["nodes"] = nodes;
        own
    }
}

/// The children that a pass no longer wants.
#[derive(Default)]
pub(super) struct Losing {
    children: Vec<Arc<Object>>,
    /// How a judge sees them; empty when AWS would lose nothing.
    judged: BTreeMap<ObjectKey, Child>,
    /// Whether nodes that cannot be told at the moment may have given up more that is in AWS.
    unsure: bool,
}

impl Losing {
    /// This instance's part of what is held.
    fn held_here(&self, held: &Held, besides: BTreeMap<String, Besides>) -> HeldHere {
        let removals = self
            .judged
            .iter()
            .map(|(key, child)| (key.to_string(), child.protected.iter().map(ToString::to_string).collect()));
        let (digest, reason) = (held.digest.clone(), held.reason.clone());
        HeldHere { digest, reason, removals: removals.collect(), besides }
    }
}

impl InstanceController {
    /// The live children that the graph no longer wants.
    pub(super) fn losing(
        &self,
        instance: &Object,
        memory: &mut Memory,
        graph: &Graph,
        evaluation: &Evaluation,
        desired: &[Object],
    ) -> Losing {
        let wanted: BTreeSet<ObjectKey> = desired.iter().map(Object::key).collect();
        // The mirror may lag: what it does not show yet, its event brings back here.
        let mut unwanted = self.mirror.children(&instance.key());
        memory.take_back(&unwanted, desired);
        unwanted.retain(|child| !child.is_terminating() && !wanted.contains(&child.key()));
        let (children, undecided): (Vec<_>, Vec<_>) =
            unwanted.into_iter().partition(|child| graph.has_given_up(evaluation, child));
        let is_aws = |key: &ObjectKey| ack::find(&key.group_kind()).is_some();
        let is_in_aws = |child: &Arc<Object>| {
            let below = self.mirror.descendants(&child.key());
            is_aws(&child.key()) || below.iter().any(|below| is_aws(&below.key()))
        };
        let in_aws = children.iter().any(is_in_aws);
        let unsure = undecided.iter().any(is_in_aws);
        let judged = children.iter().filter(|_| in_aws).map(|child| {
            let protected = self.mirror.protected_below(&child.key(), self.settings.protection);
            let uid = child.metadata.uid.clone();
            let taken_back = memory.taken_back.get(&uid).copied().unwrap_or_default();
            (child.key(), Child { uid, taken_back, protected })
        });
        Losing { judged: judged.collect(), children, unsure }
    }

    /// Applies what is wanted, and lets go of what is not if it may go. What would let go of something that
    /// may not stays as it is.
    pub(super) async fn carry_out(
        &self,
        instance: &Object,
        memory: &mut Memory,
        epoch: Epoch,
        desired: Vec<Object>,
        losing: &Losing,
        may_prune: bool,
    ) -> Result<Outcome, StoreError> {
        let (dependent, free): (Vec<_>, Vec<_>) = match self.anchors(losing) {
            None => (Vec::new(), desired),
            Some(anchors) => desired.into_iter().partition(|child| {
                let live = self.mirror.get(&child.key());
                live.is_some_and(|live| anchors.are_left(&live, child))
            }),
        };
        if let Err(error) = self.apply(free, &[]).await {
            if matches!(error, StoreError::Invalid { .. }) {
                // Nothing helps but another revision, and the others must not wait for it.
                self.note(instance, memory, epoch, &Losing::default());
            }
            return Err(error);
        }
        // After the writes: who judges with this in hand sees them in the store.
        self.note(instance, memory, epoch, losing);
        let waiting = || dependent.iter().map(Object::key).collect();
        let going = losing.judged.keys().cloned().collect();
        let judged = match self.verdict(instance, losing).await? {
            None => {
                return Ok(Outcome {
                    going,
                    waiting: waiting(),
                    next: Next::After(JUDGE_AGAIN),
                    ..Outcome::default()
                });
            }
            Some((_, Verdict::Held(held))) => {
                let besides = self.mirror.besides(losing.judged.keys(), self.settings.protection);
                let here = losing.held_here(&held, besides);
                let lines = held_list::lines(&here.removals, &here.besides);
                memory.held = Some(here);
                self.tell_held(instance, &held, &lines);
                return Ok(Outcome {
                    held: Some(held),
                    going,
                    lines,
                    waiting: waiting(),
                    ..Outcome::default()
                });
            }
            Some((loss, Verdict::Free)) => loss.map(|loss| (loss, None)),
            Some((loss, Verdict::Approved(digest))) => loss.map(|loss| (loss, Some(digest))),
        };
        memory.held = None;
        let going: &[_] = if may_prune { &losing.children } else { &[] };
        if let Some((loss, approval)) = judged.filter(|_| !going.is_empty()) {
            self.remember_gone(instance, memory, loss, approval).await?;
        }
        self.apply(dependent, going).await?;
        for child in going {
            tracing::info!(object = %child.key(), instance = %instance.key(), "no longer wanted by its graph");
        }
        Ok(Outcome::default())
    }

    fn anchors(&self, losing: &Losing) -> Option<Anchors> {
        if losing.judged.is_empty() {
            return None;
        }
        let below: Vec<_> =
            losing.children.iter().flat_map(|child| self.mirror.descendants(&child.key())).collect();
        Some(Anchors::of(losing.children.iter().chain(&below).map(AsRef::as_ref)))
    }

    async fn verdict(
        &self,
        instance: &Object,
        losing: &Losing,
    ) -> Result<Option<(Option<Loss>, Verdict)>, StoreError> {
        if losing.judged.is_empty() {
            return Ok(Some((None, Verdict::Free)));
        }
        let (store, graphs) = (self.store.as_ref(), self.graphs.all());
        let judged =
            self.losses.judge(store, &self.mirror, &graphs, &instance.key(), self.thresholds).await?;
        Ok(judged.map(|(loss, verdict)| (Some(loss), verdict)))
    }

    /// Lets the judges of the fleet know what this pass found.
    pub(super) fn note(&self, instance: &Object, memory: &mut Memory, epoch: Epoch, losing: &Losing) {
        if losing.judged.is_empty() {
            (memory.loss, memory.held) = (None, None);
        } else {
            let set = digest_of(losses::things(&losing.judged));
            if memory.loss.as_ref().is_none_or(|loss| loss.set != set) {
                memory.loss = Some(Appeared { set, epoch });
            }
        }
        let found = Evaluated {
            uid: instance.metadata.uid.clone(),
            generation: instance.metadata.generation,
            epoch,
            changed_in: memory.inputs.as_ref().map_or(epoch, |inputs| inputs.epoch),
            appeared_in: memory.loss.as_ref().map_or(epoch, |loss| loss.epoch),
            children: losing.judged.clone(),
            unsure: losing.unsure,
        };
        self.losses.record(&instance.key(), found);
    }

    /// Before they go: who judges others later must not find that nothing ever went.
    async fn remember_gone(
        &self,
        instance: &Object,
        memory: &mut Memory,
        loss: Loss,
        approval: Option<String>,
    ) -> Result<(), StoreError> {
        if let Some(digest) = &approval {
            approvals::mark_used(self.store.as_ref(), digest).await?;
        }
        let things = loss.things();
        memory.gone = Some(Gone { root: loss.root, causes: loss.causes, things, approval });
        let mut status = instance.status().as_object().cloned().unwrap_or_default();
        let nodes = instance.status().pointer("/fleetwright/nodes").cloned().unwrap_or_default();
        status.insert("fleetwright".into(), memory.to_value(nodes));
        self.store.update_status(&instance.key(), None, Value::Object(status)).await?;
        Ok(())
    }

    /// `here` lists what of a set this instance would lose.
    fn tell_held(&self, instance: &Object, held: &Held, here: &[String]) {
        if !self.losses.is_news(&held.digest) {
            return;
        }
        tracing::warn!(
            instance = %instance.key(),
            digest = %held.digest,
            reason = %held.reason,
            objects = held.removals.len(),
            "removals are held, here:\n{}\nto approve all of them, commit this document:\n{}",
            here.join("\n"),
            held.approval()
        );
    }
}
