//! Clusters: created, described, deleted. Their changes are in `cluster_config.rs`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::input::{
    self, cluster_name, in_use, invalid_parameter, invalid_request, limit_exceeded, not_found, page, required,
};
use super::life::{Life, Part, Receipt, Status, Turn};
use super::update::{Target, Update};
use super::{access, cluster_config, network, pod_identity, validate, versions};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

/// A cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cluster {
    pub(super) name: String,
    pub(super) arn: String,
    pub(super) life: Life,
    /// Members as DescribeCluster shows them, except those that follow from the others.
    pub(super) members: Map<String, Value>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) created: Timestamp,
    /// The version it was created with: no rollback goes below.
    pub(super) first_minor: u32,
    /// When it was last upgraded.
    pub(super) upgraded: Option<Timestamp>,
    /// The name in endpoint and issuer.
    domain: String,
    region: String,
    receipt: Receipt,
    pub(super) footprint: network::Footprint,
    pub(super) updates: Vec<Update>,
    pub(super) nodegroups: BTreeMap<String, Part>,
    pub(super) addons: BTreeMap<String, Part>,
    pub(super) fargate_profiles: BTreeMap<String, Part>,
    pub(super) identity_providers: BTreeMap<String, Part>,
    pub(super) capabilities: BTreeMap<String, Part>,
    pub(super) access_entries: BTreeMap<String, access::Entry>,
    pub(super) pod_identities: BTreeMap<String, pod_identity::Association>,
}

pub(super) fn missing(name: &str) -> ApiError {
    not_found(format!("No cluster found for name: {name}.")).with("clusterName", name)
}

/// The cluster that a call names.
pub(super) fn of<'a>(scope: &'a Scope<'_>, call: &Call) -> Result<&'a Cluster, ApiError> {
    scope.eks.cluster(cluster_name(call)?)
}

/// The cluster that a call names, to be changed.
pub(super) fn of_mut<'a>(scope: &'a mut Scope<'_>, call: &Call) -> Result<&'a mut Cluster, ApiError> {
    scope.eks.cluster_mut(cluster_name(call)?)
}

impl Cluster {
    /// Lets time pass; the moment since which the cluster is gone, if it is.
    pub(super) fn settle(&mut self, now: Timestamp) -> Option<Timestamp> {
        if let Turn::Gone(since) = self.life.settle(now) {
            return Some(since);
        }
        self.settle_updates(now);
        for parts in [
            &mut self.nodegroups,
            &mut self.addons,
            &mut self.fargate_profiles,
            &mut self.identity_providers,
            &mut self.capabilities,
        ] {
            parts.retain(|_, part| !matches!(part.life.settle(now), Turn::Gone(_)));
        }
        // An association that an add-on owns goes with it.
        let addons = &self.addons;
        self.pod_identities.retain(|_, association| {
            association.owner().is_none_or(|owner| addons.values().any(|addon| addon.arn == owner))
        });
        None
    }

    pub(super) fn life_of(&mut self, target: &Target) -> Option<&mut Life> {
        match target {
            Target::Cluster => Some(&mut self.life),
            Target::Nodegroup(name) => self.nodegroups.get_mut(name).map(|part| &mut part.life),
            Target::Addon(name) => self.addons.get_mut(name).map(|part| &mut part.life),
            Target::Capability(name) => self.capabilities.get_mut(name).map(|part| &mut part.life),
        }
    }

    pub(super) fn version(&self) -> &str {
        self.members.get("version").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn minor(&self) -> u32 {
        versions::minor(self.version()).unwrap_or_default()
    }

    /// A member's text at a JSON pointer.
    pub(super) fn text(&self, member: &str, pointer: &str) -> Option<&str> {
        self.members.get(member)?.pointer(pointer)?.as_str()
    }

    /// Whether access entries are in force.
    pub(super) fn has_access_entries(&self) -> bool {
        self.text("accessConfig", "/authenticationMode").is_some_and(|mode| mode != "CONFIG_MAP")
    }

    /// The ARN of something inside the cluster: kind, name, and the UUID that tells incarnations apart.
    pub(super) fn part_arn(&self, kind: &str, name: &str, id: &str) -> String {
        let stem = self.arn.replacen(":cluster/", &format!(":{kind}/"), 1);
        format!("{stem}/{name}/{id}")
    }

    /// Refuses what needs a cluster at rest or at least at work.
    pub(super) fn require_active(&self) -> Result<(), ApiError> {
        match self.life.status {
            Status::Active | Status::Updating => Ok(()),
            status => Err(invalid_request(format!(
                "Cluster '{}' is not in ACTIVE status ({})",
                self.name,
                Self::status_name(status)
            ))
            .with("clusterName", self.name.as_str())),
        }
    }

    fn status_name(status: Status) -> &'static str {
        if status == Status::CreateFailed { "FAILED" } else { status.name() }
    }

    fn shape(&self) -> Value {
        let mut shape = self.members.clone();
        let up = !matches!(self.life.status, Status::Creating | Status::CreateFailed);
        shape.insert("name".into(), json!(self.name));
        shape.insert("arn".into(), json!(self.arn));
        shape.insert("createdAt".into(), epoch(self.created));
        shape.insert("status".into(), json!(Self::status_name(self.life.status)));
        shape.insert("tags".into(), json!(self.tags));
        shape.insert("platformVersion".into(), json!(versions::platform_version(self.minor())));
        let issues: Vec<Value> = self
            .life
            .issues
            .iter()
            .map(|issue| json!({ "code": issue.code, "message": issue.message, "resourceIds": [] }))
            .collect();
        shape.insert("health".into(), json!({ "issues": issues }));
        if up {
            shape.insert(
                "endpoint".into(),
                json!(format!("https://{}.gr7.{}.eks.amazonaws.com", self.domain, self.region)),
            );
            shape.insert("certificateAuthority".into(), json!({ "data": self.certificate() }));
            let issuer = format!("https://oidc.eks.{}.amazonaws.com/id/{}", self.region, self.domain);
            shape.insert("identity".into(), json!({ "oidc": { "issuer": issuer } }));
        } else {
            shape.insert("certificateAuthority".into(), json!({}));
        }
        if let Some(Value::Object(vpc)) = shape.get_mut("resourcesVpcConfig") {
            vpc.insert("vpcId".into(), json!(self.footprint.vpc));
            vpc.insert("clusterSecurityGroupId".into(), json!(self.footprint.security_group));
        }
        Value::Object(shape)
    }

    /// Something in the form of a certificate; nothing answers at the endpoint that could present it.
    fn certificate(&self) -> String {
        let body =
            STANDARD.encode(format!("simulated certificate authority of {} ({})", self.arn, self.domain));
        STANDARD.encode(format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"))
    }
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "name")?;
    let receipt = Receipt::of(&call.parameters);
    if let Some(existing) = scope.eks.clusters.get(name) {
        if receipt.repeats(&existing.receipt) {
            return Ok(json!({ "cluster": existing.shape() }));
        }
        return Err(in_use(format!("Cluster already exists with name: {name}")).with("clusterName", name));
    }
    if scope.eks.clusters.values().any(|cluster| receipt.conflicts(&cluster.receipt)) {
        return Err(invalid_parameter("The clientRequestToken was used for another request"));
    }
    validate::cluster_name(name)?;
    let role = required(call, "roleArn")?;
    let version = call.text("version").map_or_else(versions::default_version, str::to_owned);
    let minor = versions::check(&version, call.now)?;
    let tags = input::tags(call)?;
    validate::cluster_role(scope, call, role)?;
    let placement = network::place(scope, call.member("resourcesVpcConfig"))?;

    let mut members = Map::new();
    members.insert("version".into(), json!(version));
    members.insert("roleArn".into(), json!(role));
    cluster_config::initial(scope, call, &placement, &mut members)?;
    let quota = scope.settings.quotas.clusters;
    if scope.eks.clusters.len() >= quota {
        return Err(limit_exceeded(format!("Cluster limit of {quota} reached.")));
    }

    let arn = call.arn(&format!("cluster/{name}"));
    let domain = scope.ids.hex(32).to_ascii_uppercase();
    let partition = call.region.partition();
    scope.iam.ensure_service_linked_role("eks.amazonaws.com", &call.account, partition, call.now);
    let footprint = network::occupy(scope, call, name, &placement);
    let until = scope.settings.durations.end(Span::ClusterCreate, &domain, call.now);
    let mut cluster = Cluster {
        name: name.to_owned(),
        arn,
        life: Life::creating(until, call.doom.clone()),
        members,
        tags,
        created: call.now,
        first_minor: minor,
        upgraded: None,
        domain,
        region: call.region.to_string(),
        receipt,
        footprint,
        updates: Vec::new(),
        nodegroups: BTreeMap::new(),
        addons: BTreeMap::new(),
        fargate_profiles: BTreeMap::new(),
        identity_providers: BTreeMap::new(),
        capabilities: BTreeMap::new(),
        access_entries: BTreeMap::new(),
        pod_identities: BTreeMap::new(),
    };
    access::bootstrap(&mut cluster, scope, call);
    let shape = cluster.shape();
    scope.eks.clusters.insert(name.to_owned(), cluster);
    scope.eks.schedule(until);
    Ok(json!({ "cluster": shape }))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    Ok(json!({ "cluster": of(scope, call)?.shape() }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    page(call, "clusters", scope.eks.clusters.keys().map(|name| (name.clone(), json!(name))))
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let durations = scope.settings.durations.clone();
    let cluster = of_mut(scope, call)?;
    let name = cluster.name.clone();
    let busy = |message: String| in_use(message).with("clusterName", name.as_str());
    match cluster.life.status {
        Status::Deleting => return Ok(json!({ "cluster": cluster.shape() })),
        Status::Creating => return Err(busy(format!("Cluster is currently being created: {name}"))),
        Status::Updating => {
            return Err(busy("Cannot delete because cluster currently has an update in progress".to_owned()));
        }
        _ => {}
    }
    if cluster.members.get("deletionProtection") == Some(&Value::Bool(true))
        && cluster.life.status == Status::Active
    {
        return Err(invalid_request(format!(
            "Cluster {name} has deletion protection enabled. Disable it with UpdateClusterConfig before deleting the cluster."
        ))
        .with("clusterName", name.as_str()));
    }
    if !cluster.nodegroups.is_empty() {
        return Err(busy("Cluster has nodegroups attached".to_owned()));
    }
    if !cluster.fargate_profiles.is_empty() {
        return Err(busy("Cluster has Fargate profiles attached".to_owned()));
    }
    if !cluster.capabilities.is_empty() {
        return Err(busy("Cluster has capabilities attached".to_owned()));
    }
    let until = durations.end(Span::ClusterDelete, &cluster.domain, call.now);
    cluster.life.delete(until, call.doom.clone());
    cluster.footprint.kept_until = Some(durations.end(Span::ClusterRemains, &cluster.domain, until));
    let shape = cluster.shape();
    scope.eks.schedule(until);
    Ok(json!({ "cluster": shape }))
}
