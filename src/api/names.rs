//! Labels, annotations, finalizers and tags, each written once.

/// Group of ACK's shared kinds and prefix of its annotations.
pub const ACK_GROUP: &str = "services.k8s.aws";
/// Group of every kind that a definition creates unless it names another.
pub const KRO_GROUP: &str = "kro.run";
/// Group of this program's own kinds.
pub const FLEETWRIGHT_GROUP: &str = "fleetwright.dev";

/// Region of an ACK resource.
pub const ANNOTATION_REGION: &str = "services.k8s.aws/region";
/// Region for all ACK resources of a namespace.
pub const ANNOTATION_DEFAULT_REGION: &str = "services.k8s.aws/default-region";
/// `delete` (default) or `retain`.
pub const ANNOTATION_DELETION_POLICY: &str = "services.k8s.aws/deletion-policy";
/// `adopt` or `adopt-or-create`.
pub const ANNOTATION_ADOPTION_POLICY: &str = "services.k8s.aws/adoption-policy";
/// JSON object of identifiers for adoption.
pub const ANNOTATION_ADOPTION_FIELDS: &str = "services.k8s.aws/adoption-fields";
/// "true": observe only.
pub const ANNOTATION_READ_ONLY: &str = "services.k8s.aws/read-only";
/// kro: `suspended` or `disabled` stops reconciling an instance.
pub const ANNOTATION_RECONCILE: &str = "kro.run/reconcile";
/// Where in Git an object was written: `path:line:column`.
pub const ANNOTATION_SOURCE: &str = "fleetwright.dev/source";
/// The commit that set the object's present content.
pub const ANNOTATION_REVISION: &str = "fleetwright.dev/revision";
/// The instance that a child belongs to, as an object key: survives names that no label value holds.
pub const ANNOTATION_INSTANCE: &str = "fleetwright.dev/instance";
/// What a controller is about to create, written before it does.
pub const ANNOTATION_INTENT: &str = "fleetwright.dev/intent";
/// "true": a namespace that nobody declared; it goes when it is empty.
pub const ANNOTATION_IMPLICIT: &str = "fleetwright.dev/implicit";
/// `allowed`: an immutable difference may be solved by delete and create.
pub const ANNOTATION_REPLACE: &str = "fleetwright.dev/replace";
/// The revision in which Git stopped stating an object that stays, because it is used or its removal is held.
pub const ANNOTATION_REMOVED: &str = "fleetwright.dev/removed-in";
/// What an approval must name, on an object whose removal is held.
pub const ANNOTATION_HELD: &str = "fleetwright.dev/removal-held";
/// How often the removal of an object was held and taken back: each time the digest of its set is another.
pub const ANNOTATION_TAKEN_BACK: &str = "fleetwright.dev/removals-taken-back";
/// JSON list of pointers to the object's values that may come from Secrets: they are never printed.
pub const ANNOTATION_SENSITIVE: &str = "fleetwright.dev/sensitive";

/// kro: who made a child.
pub const LABEL_OWNED: &str = "kro.run/owned";
/// kro: node of the graph.
pub const LABEL_NODE_ID: &str = "kro.run/node-id";
/// kro: name of the instance.
pub const LABEL_INSTANCE_NAME: &str = "kro.run/instance-name";
/// kro: namespace of the instance.
pub const LABEL_INSTANCE_NAMESPACE: &str = "kro.run/instance-namespace";
/// kro: kind of the instance.
pub const LABEL_INSTANCE_KIND: &str = "kro.run/instance-kind";
/// kro: version of the API of the instance.
pub const LABEL_INSTANCE_VERSION: &str = "kro.run/instance-version";
/// kro: uid of the instance.
pub const LABEL_INSTANCE_ID: &str = "kro.run/instance-id";
/// kro: version of the engine.
pub const LABEL_KRO_VERSION: &str = "kro.run/kro-version";
/// What stands in [`LABEL_KRO_VERSION`]: the version of this program, which is the engine.
pub const KRO_VERSION: &str = env!("CARGO_PKG_VERSION");
/// kro: name of the definition, on instances.
pub const LABEL_DEFINITION_NAME: &str = "kro.run/resource-graph-definition-name";
/// kro: uid of the definition, on instances.
pub const LABEL_DEFINITION_ID: &str = "kro.run/resource-graph-definition-id";
/// kro: group of the instance.
pub const LABEL_INSTANCE_GROUP: &str = "kro.run/instance-group";
/// ApplySet (KEP-3659): the id of the set whose parent the object is.
pub const LABEL_APPLY_SET_ID: &str = "applyset.kubernetes.io/id";
/// ApplySet (KEP-3659): the tool that keeps the set.
pub const ANNOTATION_TOOLING: &str = "applyset.kubernetes.io/tooling";
/// ApplySet (KEP-3659): kinds of the members, as sorted `Kind.group`.
pub const ANNOTATION_GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// ApplySet (KEP-3659): namespaces of the members other than the parent's, sorted.
pub const ANNOTATION_NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
/// kro: digest of the inventory.
pub const ANNOTATION_INVENTORY_HASH: &str = "internal.kro.run/applyset-inventory-hash";
/// ApplySet (KEP-3659): the set that a child belongs to.
pub const LABEL_PART_OF: &str = "applyset.kubernetes.io/part-of";
/// Kubernetes: who manages the object.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Finalizer on instances, and on definitions while they may have any.
pub const FINALIZER_INSTANCE: &str = "kro.run/finalizer";

/// Tag with the fleet's id. An AWS object with another fleet's id is never touched.
pub const TAG_FLEET: &str = "fleetwright.dev/fleet";
/// Tag with the object's identity.
pub const TAG_OBJECT: &str = "fleetwright.dev/object";
/// Tag with the life of the object: rises only when the previous one was seen gone.
pub const TAG_INCARNATION: &str = "fleetwright.dev/incarnation";
/// "true" on the policy by which a second daemon of the fleet is noticed: no object, and no orphan.
pub const TAG_MARKER: &str = "fleetwright.dev/marker";
/// On that policy: id of the store whose daemon changes the account.
pub const TAG_STORE: &str = "fleetwright.dev/store";
/// On that policy: the store's term, which rises with each start and each take-over.
pub const TAG_TERM: &str = "fleetwright.dev/term";

/// Owner of fields that Git states.
pub const OWNER_GIT: &str = "fleetwright.dev/git";
/// Owner of fields that an instance's graph states.
pub const OWNER_GRAPH: &str = "kro.run/applyset";
/// Owner of the labels of an instance.
pub const OWNER_LABELLER: &str = "kro.run/labeller";
/// Owner of the inventory on an instance.
pub const OWNER_INVENTORY: &str = "kro.run/applyset-parent";
/// Owner of the marks on an object that Git no longer states and that stays, or did so once.
pub const OWNER_REMOVAL: &str = "fleetwright.dev/removal";
/// Owner of the record of what was handed over.
pub const OWNER_HAND_OVER: &str = "fleetwright.dev/hand-over";
/// Owner of namespaces that nobody declared.
pub const OWNER_IMPLICIT: &str = "fleetwright.dev/implicit";
