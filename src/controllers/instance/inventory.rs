//! What an instance carries about its children, in kro's and ApplySet's words (kro.md 5.3): an installation
//! of kro may be taken over, and tools that know ApplySets find the members.
//!
//! Nothing here depends on it: members are found by their label, whatever the inventory says.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::controllers::definition::DefinitionController;
use crate::graph::label_value;

/// Which kinds the members have, and which namespaces beside their parent's they are in.
#[derive(Debug, Default, PartialEq, Eq)]
struct Inventory {
    group_kinds: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

impl Inventory {
    fn of<'a>(parent: &ObjectKey, members: impl IntoIterator<Item = &'a ObjectKey>) -> Self {
        let mut inventory = Self::default();
        for member in members {
            inventory.group_kinds.insert(member.group_kind().to_string());
            if !member.namespace.is_empty() && member.namespace != parent.namespace {
                inventory.namespaces.insert(member.namespace.clone());
            }
        }
        inventory
    }

    fn annotations(&self, id: &str) -> BTreeMap<String, String> {
        let list = |items: &BTreeSet<String>| items.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let (group_kinds, namespaces) = (list(&self.group_kinds), list(&self.namespaces));
        let digest = Sha256::digest(format!("{id}\0{group_kinds}\0{namespaces}").as_bytes());
        BTreeMap::from([
            (names::ANNOTATION_TOOLING.to_owned(), format!("kro/{}", names::KRO_VERSION)),
            (names::ANNOTATION_GROUP_KINDS.to_owned(), group_kinds),
            (names::ANNOTATION_NAMESPACES.to_owned(), namespaces),
            (names::ANNOTATION_INVENTORY_HASH.to_owned(), format!("sha256:{}", URL_SAFE.encode(digest))),
        ])
    }
}

impl InstanceController {
    /// Writes labels and inventory: all that is there and all that is about to be, before any of it is made.
    pub(super) async fn mark(
        &self,
        instance: &Object,
        graph: &Graph,
        desired: &[Object],
    ) -> Result<(), StoreError> {
        let key = instance.key();
        let id = apply_set_id(&key);
        let present: Vec<ObjectKey> = self.mirror.children(&key).iter().map(|child| child.key()).collect();
        let wanted: Vec<ObjectKey> = desired.iter().map(Object::key).collect();
        let annotations = Inventory::of(&key, present.iter().chain(&wanted)).annotations(&id);
        let mut labels = BTreeMap::from([
            (names::LABEL_OWNED.to_owned(), "true".to_owned()),
            (names::LABEL_KRO_VERSION.to_owned(), names::KRO_VERSION.to_owned()),
            (names::LABEL_APPLY_SET_ID.to_owned(), id),
            (names::LABEL_DEFINITION_NAME.to_owned(), label_value(graph.definition())),
        ]);
        let kind = DefinitionController::kind();
        let definition = ObjectKey::new(kind.group, kind.kind, "", graph.definition());
        if let Some(definition) = self.mirror.get(&definition) {
            labels.insert(names::LABEL_DEFINITION_ID.to_owned(), definition.metadata.uid.clone());
        }
        let bare = || Object::new(&instance.gvk(), key.namespace.clone(), key.name.clone());
        let mut writes = Vec::new();
        if labels.iter().any(|(name, value)| instance.label(name) != Some(value.as_str())) {
            let mut object = bare();
            object.metadata.labels = labels;
            writes.push(Write::Apply { owner: names::OWNER_LABELLER.into(), object });
        }
        if annotations.iter().any(|(name, value)| instance.annotation(name) != Some(value.as_str())) {
            let mut object = bare();
            object.metadata.annotations = annotations;
            writes.push(Write::Apply { owner: names::OWNER_INVENTORY.into(), object });
        }
        if !writes.is_empty() {
            self.store.transaction(writes).await?;
        }
        Ok(())
    }
}

/// kro's ApplySet id of an instance (kro.md 5.3): the label by which its children are found.
pub fn apply_set_id(instance: &ObjectKey) -> String {
    let text = format!("{}.{}.{}.{}", instance.name, instance.namespace, instance.kind, instance.group);
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes())))
}

/// All children of an instance.
pub(super) fn members_of(instance: &ObjectKey) -> Selector {
    Selector { labels: vec![(names::LABEL_PART_OF.into(), apply_set_id(instance))], ..Selector::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_set_id_fits_a_label() {
        let id = apply_set_id(&ObjectKey::new("kro.run", "EksCluster", "argocd", "x".repeat(253)));
        assert!(id.len() <= 63, "{id}");
    }

    /// Values computed with another program by the rules of kro.md 5.3: a kro that made these children must
    /// find them as its own, and we those of a kro.
    #[test]
    fn ids_and_digests_are_those_of_kro() {
        let parent = ObjectKey::new("kro.run", "WebApp", "default", "my-app");
        let id = apply_set_id(&parent);
        assert_eq!(id, "applyset-9sHw3-6HBl2VO07VeDzfkQhwSs1_MRB3IBzTC1N-yt8-v1");
        let members = ["Deployment.apps/default/my-app", "Service/other/my-app", "ConfigMap/default/a"];
        let members: Vec<ObjectKey> = members.iter().map(|key| key.parse().unwrap()).collect();
        let annotations = Inventory::of(&parent, &members).annotations(&id);
        assert_eq!(annotations[names::ANNOTATION_GROUP_KINDS], "ConfigMap,Deployment.apps,Service");
        assert_eq!(annotations[names::ANNOTATION_NAMESPACES], "other");
        assert_eq!(
            annotations[names::ANNOTATION_INVENTORY_HASH],
            "sha256:lzwZaJFcGYsQfzNf__jK9QXCq0R9S1zLU8Q211hvj9I="
        );
        let empty = Inventory::default().annotations(&id);
        assert_eq!(empty[names::ANNOTATION_GROUP_KINDS], "");
    }
}
