//! A cluster's settings: what it starts with, and UpdateClusterConfig with its rule of one kind per call.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{self, cluster_name, in_use, invalid_parameter, invalid_request, required};
use super::life::Status;
use super::network::{self, Placement};
use super::update::{self, Change, Target};
use super::{access, validate, versions};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

const LOG_TYPES: [&str; 5] = ["api", "audit", "authenticator", "controllerManager", "scheduler"];
const COMPONENTS: [&str; 3] = ["kubeApiServerConfig", "kubeControllerManagerConfig", "kubeSchedulerConfig"];
const TIERS: [&str; 5] = ["standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl"];

/// The settings of a new cluster, defaults included.
pub(super) fn initial(
    scope: &Scope<'_>,
    call: &Call,
    placement: &Placement,
    members: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    let vpc = call.member("resourcesVpcConfig");
    members.insert(
        "resourcesVpcConfig".into(),
        endpoint_access(vpc, &Map::new()).map(|access| placement.merged(access))?,
    );

    let access = call.member("accessConfig");
    let mode = access.text("authenticationMode").unwrap_or("CONFIG_MAP");
    validate::one_of("authenticationMode", mode, &["API", "API_AND_CONFIG_MAP", "CONFIG_MAP"])?;
    let bootstrap = access.flag("bootstrapClusterCreatorAdminPermissions").unwrap_or(true);
    members.insert(
        "accessConfig".into(),
        json!({ "authenticationMode": mode, "bootstrapClusterCreatorAdminPermissions": bootstrap }),
    );

    let auto = AutoMode::of(call)?;
    if auto.as_ref().is_some_and(|auto| auto.enabled) && mode == "CONFIG_MAP" {
        return Err(invalid_parameter("EKS Auto Mode requires authenticationMode API or API_AND_CONFIG_MAP"));
    }
    let network = call.member("kubernetesNetworkConfig");
    let family = network.text("ipFamily").unwrap_or("ipv4");
    validate::one_of("ipFamily", family, &["ipv4", "ipv6"])?;
    let mut network_config = Map::new();
    if let Some(cidr) = network.text("serviceIpv4Cidr") {
        if family == "ipv6" {
            return Err(invalid_parameter("serviceIpv4Cidr cannot be given when ipFamily is ipv6"));
        }
        validate::service_cidr(cidr, &placement.cidrs)?;
        network_config.insert("serviceIpv4Cidr".into(), json!(cidr));
    } else if family == "ipv6" {
        network_config.insert("serviceIpv6Cidr".into(), json!("fd00:c0de::/108"));
    } else {
        let default = if validate::service_cidr("10.100.0.0/16", &placement.cidrs).is_ok() {
            "10.100.0.0/16"
        } else {
            "172.20.0.0/16"
        };
        network_config.insert("serviceIpv4Cidr".into(), json!(default));
    }
    network_config.insert("ipFamily".into(), json!(family));
    network_config.insert("elasticLoadBalancing".into(), json!({ "enabled": false }));
    members.insert("kubernetesNetworkConfig".into(), Value::Object(network_config));
    members.insert("computeConfig".into(), json!({ "enabled": false }));
    members.insert("storageConfig".into(), json!({ "blockStorage": { "enabled": false } }));
    if let Some(auto) = auto {
        auto.check(scope, call)?;
        auto.apply(members);
    }

    members.insert("logging".into(), logging(call.member("logging"), &BTreeSet::new())?);
    members.insert(
        "upgradePolicy".into(),
        upgrade_policy(call)?.unwrap_or_else(|| json!({ "supportType": "EXTENDED" })),
    );
    members.insert(
        "zonalShiftConfig".into(),
        input::member(call, "zonalShiftConfig").unwrap_or_else(|| json!({ "enabled": false })),
    );
    members.insert("deletionProtection".into(), json!(call.flag("deletionProtection").unwrap_or(false)));
    members.insert(
        "controlPlaneScalingConfig".into(),
        scaling(call)?.unwrap_or_else(|| json!({ "tier": "standard" })),
    );
    let encryption = call.items("encryptionConfig");
    if !encryption.is_empty() {
        validate::encryption(scope, call, encryption)?;
        members.insert("encryptionConfig".into(), json!(encryption));
    }
    input::copy(call, &["remoteNetworkConfig", "outpostConfig"], members);
    input::copy(call, &COMPONENTS, members);
    Ok(())
}

/// Auto Mode is one switch in three places.
struct AutoMode {
    enabled: bool,
    pools: Option<Vec<Value>>,
    role: Option<String>,
}

impl AutoMode {
    /// The switch in a request; none if the request does not speak of it.
    fn of(call: &Call) -> Result<Option<Self>, ApiError> {
        let compute = call.member("computeConfig");
        let switches = [
            compute.flag("enabled"),
            call.member("storageConfig").member("blockStorage").flag("enabled"),
            call.member("kubernetesNetworkConfig").member("elasticLoadBalancing").flag("enabled"),
        ];
        if switches.iter().all(Option::is_none) {
            return Ok(None);
        }
        let [Some(compute_on), Some(storage_on), Some(balancing_on)] = switches else {
            return Err(uneven());
        };
        if compute_on != storage_on || compute_on != balancing_on {
            return Err(uneven());
        }
        let pools = compute.get("nodePools").and_then(Value::as_array).cloned();
        for pool in pools.iter().flatten() {
            validate::one_of("nodePools", pool.as_str().unwrap_or_default(), &["general-purpose", "system"])?;
        }
        Ok(Some(Self { enabled: compute_on, pools, role: compute.text("nodeRoleArn").map(str::to_owned) }))
    }

    fn check(&self, scope: &Scope<'_>, call: &Call) -> Result<(), ApiError> {
        let has_pools = self.pools.as_ref().is_some_and(|pools| !pools.is_empty());
        match (&self.role, self.enabled && has_pools) {
            (None, true) => Err(invalid_parameter(
                "When Compute Config nodeRoleArn is null or empty, nodePool value(s) cannot be specified.",
            )),
            (Some(_), false) if self.enabled => Err(invalid_parameter(
                "When Compute Config nodeRoleArn is not null or empty, nodePool value(s) must be provided.",
            )),
            (Some(role), _) => validate::passed_role(scope, call, role, "computeConfig"),
            (None, _) => Ok(()),
        }
    }

    fn apply(&self, members: &mut Map<String, Value>) {
        let mut compute = json!({ "enabled": self.enabled });
        if self.enabled {
            compute["nodePools"] = json!(self.pools.clone().unwrap_or_default());
            compute["nodeRoleArn"] = json!(self.role);
        }
        members.insert("computeConfig".into(), compute);
        members.insert("storageConfig".into(), json!({ "blockStorage": { "enabled": self.enabled } }));
        if let Some(Value::Object(network)) = members.get_mut("kubernetesNetworkConfig") {
            network.insert("elasticLoadBalancing".into(), json!({ "enabled": self.enabled }));
        }
    }
}

fn uneven() -> ApiError {
    invalid_parameter(
        "For EKS Auto Mode, please ensure that all required configs, including computeConfig, kubernetesNetworkConfig, and blockStorage are all either fully enabled or fully disabled.",
    )
}

fn endpoint_access(vpc: &Value, current: &Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let was = |name: &str, default: bool| current.get(name).and_then(Value::as_bool).unwrap_or(default);
    let public = vpc.flag("endpointPublicAccess").unwrap_or_else(|| was("endpointPublicAccess", true));
    let private = vpc.flag("endpointPrivateAccess").unwrap_or_else(|| was("endpointPrivateAccess", false));
    if !public && !private {
        return Err(invalid_parameter("Private and public endpoint access cannot be false"));
    }
    let cidrs = match vpc.items("publicAccessCidrs") {
        [] => current.get("publicAccessCidrs").cloned().unwrap_or_else(|| json!(["0.0.0.0/0"])),
        given => {
            validate::public_cidrs(given)?;
            json!(given)
        }
    };
    let mut access = current.clone();
    access.insert("endpointPublicAccess".into(), json!(public));
    access.insert("endpointPrivateAccess".into(), json!(private));
    access.insert("publicAccessCidrs".into(), if public { cidrs } else { json!([]) });
    Ok(access)
}

/// The types that are written to CloudWatch, in the two-entry form that EKS shows.
fn logging(request: &Value, current: &BTreeSet<String>) -> Result<Value, ApiError> {
    let mut enabled = current.clone();
    for entry in request.items("clusterLogging") {
        let on = entry.flag("enabled").unwrap_or(false);
        for kind in entry.texts("types") {
            validate::one_of("logging type", kind, &LOG_TYPES)?;
            if on {
                enabled.insert(kind.to_owned());
            } else {
                enabled.remove(kind);
            }
        }
    }
    let disabled: Vec<&str> = LOG_TYPES.into_iter().filter(|kind| !enabled.contains(*kind)).collect();
    let mut entries = Vec::new();
    if !enabled.is_empty() {
        entries.push(json!({ "types": enabled, "enabled": true }));
    }
    if !disabled.is_empty() {
        entries.push(json!({ "types": disabled, "enabled": false }));
    }
    Ok(json!({ "clusterLogging": entries }))
}

fn enabled_logs(cluster: &Cluster) -> BTreeSet<String> {
    let logging = cluster.members.get("logging").unwrap_or(&Value::Null);
    let entries = logging.items("clusterLogging").iter().filter(|entry| entry.flag("enabled") == Some(true));
    entries.flat_map(|entry| entry.texts("types")).map(str::to_owned).collect()
}

fn upgrade_policy(call: &Call) -> Result<Option<Value>, ApiError> {
    let Some(policy) = input::member(call, "upgradePolicy") else { return Ok(None) };
    validate::one_of(
        "supportType",
        policy.text("supportType").unwrap_or_default(),
        &["STANDARD", "EXTENDED"],
    )?;
    Ok(Some(policy))
}

fn scaling(call: &Call) -> Result<Option<Value>, ApiError> {
    let Some(scaling) = input::member(call, "controlPlaneScalingConfig") else { return Ok(None) };
    validate::one_of("tier", scaling.text("tier").unwrap_or_default(), &TIERS)?;
    Ok(Some(scaling))
}

/// The kinds of update that a request asks for.
fn kinds(call: &Call) -> Vec<&'static str> {
    let has = |name: &str| input::member(call, name).is_some();
    let vpc = call.member("resourcesVpcConfig");
    let vpc_has = |name: &str| vpc.get(name).is_some_and(|value| !value.is_null());
    let asked = [
        ("LoggingUpdate", has("logging")),
        (
            "EndpointAccessUpdate",
            vpc_has("endpointPublicAccess")
                || vpc_has("endpointPrivateAccess")
                || vpc_has("publicAccessCidrs"),
        ),
        ("VpcConfigUpdate", vpc_has("subnetIds") || vpc_has("securityGroupIds")),
        ("AccessConfigUpdate", has("accessConfig")),
        ("UpgradePolicyUpdate", has("upgradePolicy")),
        ("ZonalShiftConfigUpdate", has("zonalShiftConfig")),
        ("AutoModeUpdate", has("computeConfig") || has("storageConfig") || has("kubernetesNetworkConfig")),
        ("DeletionProtectionUpdate", has("deletionProtection")),
        ("RemoteNetworkConfigUpdate", has("remoteNetworkConfig")),
        ("ControlPlaneScalingConfigUpdate", has("controlPlaneScalingConfig")),
        ("ControlPlaneComponentConfigUpdate", COMPONENTS.iter().any(|component| has(component))),
    ];
    asked.into_iter().filter(|(_, asked)| *asked).map(|(kind, _)| kind).collect()
}

/// Refuses a change while another is under way, or on a cluster that is not at work.
fn require_idle(cluster: &Cluster) -> Result<(), ApiError> {
    let name = cluster.name.as_str();
    match cluster.life.status {
        Status::Active => Ok(()),
        Status::Updating => {
            Err(in_use(format!("Cannot update because cluster {name} currently has an update in progress"))
                .with("clusterName", name))
        }
        status => Err(in_use(format!("Cannot update because cluster {name} is currently {}", status.name()))
            .with("clusterName", name)),
    }
}

pub(super) fn update(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let kind = match kinds(call).as_slice() {
        [] => {
            return Err(invalid_parameter("The type for cluster update was not provided.")
                .with("clusterName", name.as_str()));
        }
        [kind] => *kind,
        _ => {
            return Err(invalid_parameter("Only one type of update can be allowed.")
                .with("clusterName", name.as_str()));
        }
    };
    require_idle(cluster)?;
    let patch = patch(scope, call, cluster, kind)?;
    if patch.iter().all(|(member, value)| cluster.members.get(member) == Some(value)) {
        return Err(no_change(kind).with("clusterName", name.as_str()));
    }
    let params = patch.iter().map(|(member, value)| (param_name(member), value.to_string())).collect();
    if kind == "AutoModeUpdate"
        && let Some(role) = call.member("computeConfig").text("nodeRoleArn").map(str::to_owned)
    {
        access::admit_nodes(scope, call, &name, &role, "EC2");
    }
    if let Some(config) = patch.get("resourcesVpcConfig").filter(|_| kind == "VpcConfigUpdate") {
        let placement = network::place(scope, config)?;
        network::move_interfaces(scope, call, &name, &placement)?;
    }
    update::start(
        scope,
        call,
        &name,
        Change { kind, target: Target::Cluster, span: Span::ClusterConfigUpdate, params, patch },
    )
}

fn no_change(kind: &str) -> ApiError {
    let what = match kind {
        "LoggingUpdate" => "No changes needed for the logging config provided".to_owned(),
        "VpcConfigUpdate" | "EndpointAccessUpdate" => {
            "Cluster is already at the desired configuration with the provided resourcesVpcConfig".to_owned()
        }
        "AccessConfigUpdate" => {
            "Cluster is already at the desired configuration with the provided accessConfig".to_owned()
        }
        "UpgradePolicyUpdate" => {
            "Cluster is already at the desired configuration with the provided upgradePolicy".to_owned()
        }
        other => format!("No changes needed for the {other} provided"),
    };
    invalid_parameter(what)
}

/// AWS names the parameters of an update after the members, in capitals.
fn param_name(member: &str) -> String {
    let mut letters = member.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// The members that the request changes, with their new values.
fn patch(
    scope: &Scope<'_>,
    call: &Call,
    cluster: &Cluster,
    kind: &str,
) -> Result<Map<String, Value>, ApiError> {
    let mut patch = Map::new();
    let vpc =
        || cluster.members.get("resourcesVpcConfig").and_then(Value::as_object).cloned().unwrap_or_default();
    match kind {
        "LoggingUpdate" => {
            patch.insert("logging".into(), logging(call.member("logging"), &enabled_logs(cluster))?);
        }
        "EndpointAccessUpdate" => {
            patch.insert(
                "resourcesVpcConfig".into(),
                Value::Object(endpoint_access(call.member("resourcesVpcConfig"), &vpc())?),
            );
        }
        "VpcConfigUpdate" => {
            let mut wanted = call.member("resourcesVpcConfig").clone();
            // What is not given stays; the new subnets must cover the same zones, in the same VPC.
            for member in ["subnetIds", "securityGroupIds"] {
                if wanted.get(member).is_none_or(Value::is_null) {
                    wanted[member] = network::current(cluster, member);
                }
            }
            let placement = network::place(scope, &wanted)?;
            if placement.vpc != cluster.footprint.vpc {
                return Err(invalid_parameter(format!(
                    "Provided subnets must belong to the cluster's VPC {}",
                    cluster.footprint.vpc
                )));
            }
            patch.insert("resourcesVpcConfig".into(), placement.merged(vpc()));
        }
        "AccessConfigUpdate" => {
            let mode = call.member("accessConfig").text("authenticationMode").unwrap_or_default();
            let current = cluster.text("accessConfig", "/authenticationMode").unwrap_or_default();
            validate::one_of("authenticationMode", mode, &["API", "API_AND_CONFIG_MAP", "CONFIG_MAP"])?;
            let rank = |mode: &str| {
                ["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"].iter().position(|known| *known == mode)
            };
            if rank(mode) < rank(current) {
                return Err(invalid_parameter(format!(
                    "Unsupported authentication mode update from {current} to {mode}"
                )));
            }
            let bootstrap = cluster
                .members
                .get("accessConfig")
                .and_then(|access| access.get("bootstrapClusterCreatorAdminPermissions"));
            patch.insert(
                "accessConfig".into(),
                json!({ "authenticationMode": mode, "bootstrapClusterCreatorAdminPermissions": bootstrap }),
            );
        }
        "UpgradePolicyUpdate" => {
            patch.insert("upgradePolicy".into(), upgrade_policy(call)?.unwrap_or_default());
        }
        "ControlPlaneScalingConfigUpdate" => {
            patch.insert("controlPlaneScalingConfig".into(), scaling(call)?.unwrap_or_default());
        }
        "AutoModeUpdate" => {
            if call.member("kubernetesNetworkConfig").text("serviceIpv4Cidr").is_some()
                || call.member("kubernetesNetworkConfig").text("ipFamily").is_some()
            {
                return Err(invalid_parameter("serviceIpv4Cidr and ipFamily cannot be changed"));
            }
            let mut auto = AutoMode::of(call)?.ok_or_else(uneven)?;
            if auto.enabled && !cluster.has_access_entries() {
                return Err(invalid_parameter(
                    "EKS Auto Mode requires authenticationMode API or API_AND_CONFIG_MAP",
                ));
            }
            if auto.enabled
                && let Some(current) = cluster.text("computeConfig", "/nodeRoleArn")
            {
                match &auto.role {
                    None => auto.role = Some(current.to_owned()),
                    Some(role) if role != current => {
                        return Err(invalid_parameter("The nodeRoleArn of EKS Auto Mode cannot be changed"));
                    }
                    Some(_) => {}
                }
                auto.pools = auto
                    .pools
                    .or_else(|| cluster.members.get("computeConfig")?.get("nodePools")?.as_array().cloned());
            }
            auto.check(scope, call)?;
            if let Some(network) = cluster.members.get("kubernetesNetworkConfig") {
                patch.insert("kubernetesNetworkConfig".into(), network.clone());
            }
            auto.apply(&mut patch);
        }
        "ControlPlaneComponentConfigUpdate" => input::copy(call, &COMPONENTS, &mut patch),
        _ => {
            input::copy(call, &["zonalShiftConfig", "deletionProtection", "remoteNetworkConfig"], &mut patch);
        }
    }
    Ok(patch)
}

/// One minor up; or, within seven days of an upgrade, one down.
pub(super) fn update_version(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = cluster_name(call)?.to_owned();
    let version = required(call, "version")?;
    let cluster = scope.eks.cluster(&name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let refuse = |message: String| invalid_parameter(message).with("clusterName", name.as_str());
    let current = cluster.minor();
    let target =
        versions::check(version, call.now).map_err(|error| error.with("clusterName", name.as_str()))?;
    if target == current {
        return Err(refuse(format!("Cluster is already at the desired Kubernetes version {version}")));
    }
    let rollback = target + 1 == current;
    if target != current + 1 && !rollback {
        return Err(refuse(format!(
            "Unsupported Kubernetes minor version update from 1.{current} to {version}"
        )));
    }
    if rollback {
        let window = SignedDuration::from_hours(7 * 24);
        let recent = cluster.upgraded.is_some_and(|upgraded| call.now.duration_since(upgraded) < window);
        if !recent || target < cluster.first_minor {
            return Err(refuse(format!(
                "Unsupported Kubernetes minor version update from 1.{current} to {version}"
            )));
        }
    }
    let node_minor = |group: &super::life::Part| {
        group.members.get("version").and_then(Value::as_str).and_then(versions::minor)
    };
    let skewed: Vec<&str> = cluster
        .nodegroups
        .iter()
        .filter(|(_, group)| node_minor(group).is_some_and(|node| node > target || node + 3 < target))
        .map(|(name, _)| name.as_str())
        .collect();
    if !skewed.is_empty() {
        return Err(invalid_request(format!(
            "Nodegroups {} must be updated to a version that {version} supports before the cluster",
            skewed.join(", ")
        ))
        .with("clusterName", name.as_str()));
    }
    require_idle(cluster)?;
    let params = vec![
        ("Version".to_owned(), version.to_owned()),
        ("PlatformVersion".to_owned(), versions::platform_version(target)),
    ];
    let patch = Map::from_iter([("version".to_owned(), json!(version))]);
    let kind = if rollback { "VersionRollback" } else { "VersionUpdate" };
    let upgraded = if rollback { None } else { Some(call.now) };
    scope.eks.cluster_mut(&name)?.upgraded = upgraded;
    update::start(
        scope,
        call,
        &name,
        Change { kind, target: Target::Cluster, span: Span::ClusterVersionUpdate, params, patch },
    )
}

/// A customer key can be added once and never changed.
pub(super) fn associate_encryption(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let name = cluster.name.clone();
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    require_idle(cluster)?;
    if cluster.members.contains_key("encryptionConfig") {
        return Err(invalid_parameter("Encryption config is already associated with the cluster")
            .with("clusterName", name.as_str()));
    }
    let config = call.items("encryptionConfig");
    validate::encryption(scope, call, config)?;
    let params = vec![("EncryptionConfig".to_owned(), json!(config).to_string())];
    let patch = Map::from_iter([("encryptionConfig".to_owned(), json!(config))]);
    let change = Change {
        kind: "AssociateEncryptionConfig",
        target: Target::Cluster,
        span: Span::ClusterConfigUpdate,
        params,
        patch,
    };
    update::start(scope, call, &name, change)
}
