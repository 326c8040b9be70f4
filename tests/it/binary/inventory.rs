//! What an account really holds, by AWS's own Describe and List calls: owned objects by the tag that names
//! their object in the store, everything else apart.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_ec2::types::Tag;
use fleetwright::api::names;
use serde_json::Value;

use super::Bench;

/// Roles that the tests make themselves: the daemon's, and the one of people.
pub const ROLES_OF_THE_TEST: [&str; 2] = ["fleet", "Admin"];

/// All that carries tags of the fleet in a snapshot of the simulated AWS: account, object and incarnation, with
/// the places in the snapshot. Other than by Describe calls, nothing is left out for its lag; only what AWS still
/// shows after its deletion is.
pub fn owned_in(snapshot: &Value) -> BTreeMap<String, Vec<String>> {
    fn walk(value: &Value, account: &str, place: &str, found: &mut BTreeMap<String, Vec<String>>) {
        let Some(fields) = value.as_object() else {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                walk(item, account, &format!("{place}/{index}"), found);
            }
            return;
        };
        if fields.get("deletion").is_some_and(|deletion| !deletion.is_null()) {
            return;
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        if fields.contains_key(names::TAG_OBJECT) {
            let identity = format!("{account} {} {}", text(names::TAG_OBJECT), text(names::TAG_INCARNATION));
            found.entry(identity).or_default().push(place.to_owned());
            return;
        }
        for (name, inner) in fields.iter().filter(|(name, _)| *name != "previous") {
            walk(inner, account, &format!("{place}/{name}"), found);
        }
    }
    let mut found = BTreeMap::new();
    for (account, content) in snapshot["accounts"].as_object().unwrap() {
        walk(content, account, "", &mut found);
    }
    found
}

/// All that one account holds in the tests' Region.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// AWS ids by the `fleetwright.dev/object` tag. Two ids under one tag are a duplicate.
    pub owned: BTreeMap<String, Vec<String>>,
    /// What carries no tag of the fleet, as `kind id`; what AWS makes along with something else is left out.
    pub others: Vec<String>,
}

impl Inventory {
    /// Asks AWS.
    pub async fn of(bench: &Bench, account: &str) -> Self {
        let mut inventory = Self::default();
        let sdk = bench.sdk(account);
        inventory.network(&aws_sdk_ec2::Client::new(&sdk)).await;
        inventory.roles(&aws_sdk_iam::Client::new(&sdk)).await;
        inventory.clusters(&aws_sdk_eks::Client::new(&sdk)).await;
        inventory
    }

    /// How many objects each kind has, by the kind in the tag.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for (tag, ids) in &self.owned {
            *counts.entry(tag.split('.').next().unwrap()).or_insert(0) += ids.len();
        }
        counts
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty() && self.others.is_empty()
    }

    fn add<'a>(&mut self, kind: &str, id: &str, tags: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let tags: BTreeMap<&str, &str> = tags.into_iter().collect();
        match (tags.get(names::TAG_FLEET), tags.get(names::TAG_OBJECT)) {
            (Some(&"e2e"), Some(object)) => {
                assert!(
                    tags.contains_key(names::TAG_INCARNATION),
                    "{kind} {id} has no incarnation: {tags:?}"
                );
                self.owned.entry((*object).to_owned()).or_default().push(id.to_owned());
            }
            _ => self.others.push(format!("{kind} {id}")),
        }
    }

    fn add_ec2(&mut self, kind: &str, id: Option<&str>, tags: &[Tag]) {
        let tags = tags.iter().map(|tag| (tag.key().unwrap_or_default(), tag.value().unwrap_or_default()));
        self.add(kind, id.unwrap(), tags);
    }

    fn add_tagged(&mut self, kind: &str, id: &str, tags: Option<&HashMap<String, String>>) {
        self.add(kind, id, tags.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())));
    }

    async fn network(&mut self, ec2: &aws_sdk_ec2::Client) {
        for vpc in ec2.describe_vpcs().send().await.unwrap().vpcs() {
            self.add_ec2("vpc", vpc.vpc_id(), vpc.tags());
        }
        for subnet in ec2.describe_subnets().send().await.unwrap().subnets() {
            self.add_ec2("subnet", subnet.subnet_id(), subnet.tags());
        }
        for gateway in ec2.describe_internet_gateways().send().await.unwrap().internet_gateways() {
            self.add_ec2("internet gateway", gateway.internet_gateway_id(), gateway.tags());
        }
        for gateway in ec2.describe_nat_gateways().send().await.unwrap().nat_gateways() {
            // A deleted one is shown for an hour.
            if gateway.state().is_none_or(|state| state.as_str() != "deleted") {
                self.add_ec2("NAT gateway", gateway.nat_gateway_id(), gateway.tags());
            }
        }
        for address in ec2.describe_addresses().send().await.unwrap().addresses() {
            self.add_ec2("address", address.allocation_id(), address.tags());
        }
        for table in ec2.describe_route_tables().send().await.unwrap().route_tables() {
            // The main one comes and goes with its VPC.
            if !table.associations().iter().any(|association| association.main() == Some(true)) {
                self.add_ec2("route table", table.route_table_id(), table.tags());
            }
        }
        for group in ec2.describe_security_groups().send().await.unwrap().security_groups() {
            // The default one belongs to its VPC, the cluster's own to its cluster.
            let by_eks = group.tags().iter().any(|tag| tag.key() == Some("aws:eks:cluster-name"));
            if group.group_name() != Some("default") && !by_eks {
                self.add_ec2("security group", group.group_id(), group.tags());
            }
        }
    }

    async fn roles(&mut self, iam: &aws_sdk_iam::Client) {
        let roles = iam.list_roles().send().await.unwrap();
        for role in roles.roles() {
            let name = role.role_name();
            // Service-linked roles are AWS's.
            if ROLES_OF_THE_TEST.contains(&name) || role.path().starts_with("/aws-service-role/") {
                continue;
            }
            let tags = iam.list_role_tags().role_name(name).send().await.unwrap();
            self.add("role", name, tags.tags().iter().map(|tag| (tag.key(), tag.value())));
        }
    }

    async fn node_groups(&mut self, eks: &aws_sdk_eks::Client, cluster: &str) {
        let groups = eks.list_nodegroups().cluster_name(cluster).send().await.unwrap();
        for group in groups.nodegroups() {
            let described = eks.describe_nodegroup().cluster_name(cluster).nodegroup_name(group);
            let described = described.send().await.unwrap();
            self.add_tagged(
                "node group",
                &format!("{cluster}/{group}"),
                described.nodegroup().unwrap().tags(),
            );
        }
    }

    async fn clusters(&mut self, eks: &aws_sdk_eks::Client) {
        let clusters = eks.list_clusters().send().await.unwrap();
        for name in clusters.clusters() {
            let cluster = eks.describe_cluster().name(name).send().await.unwrap();
            let cluster = cluster.cluster().unwrap();
            self.add_tagged("cluster", name, cluster.tags());
            self.node_groups(eks, name).await;
            let addons = eks.list_addons().cluster_name(name).send().await.unwrap();
            for addon in addons.addons() {
                let described =
                    eks.describe_addon().cluster_name(name).addon_name(addon).send().await.unwrap();
                self.add_tagged("add-on", &format!("{name}/{addon}"), described.addon().unwrap().tags());
            }
            let entries = eks.list_access_entries().cluster_name(name).send().await.unwrap();
            for principal in entries.access_entries() {
                let described = eks
                    .describe_access_entry()
                    .cluster_name(name)
                    .principal_arn(principal)
                    .send()
                    .await
                    .unwrap();
                let entry = described.access_entry().unwrap();
                // Those of the creator and of nodes come with the cluster and its node groups.
                let by_eks = entry.tags().is_none_or(HashMap::is_empty)
                    && (principal.ends_with(":role/fleet")
                        || matches!(entry.r#type(), Some("EC2" | "EC2_LINUX")));
                if !by_eks {
                    self.add_tagged("access entry", &format!("{name}/{principal}"), entry.tags());
                }
            }
            let identities = eks.list_pod_identity_associations().cluster_name(name).send().await.unwrap();
            for identity in identities.associations() {
                let id = identity.association_id().unwrap();
                let described = eks
                    .describe_pod_identity_association()
                    .cluster_name(name)
                    .association_id(id)
                    .send()
                    .await
                    .unwrap();
                self.add_tagged(
                    "pod identity",
                    &format!("{name}/{id}"),
                    described.association().unwrap().tags(),
                );
            }
        }
    }
}
