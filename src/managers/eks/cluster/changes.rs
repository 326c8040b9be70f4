//! Which settings of a cluster differ, in the groups that EKS changes in one call each.
//!
//! EKS refuses two kinds of change in one UpdateClusterConfig and works on one update at a time; the order
//! is ACK's. Every function answers the arguments of its call, or nothing where there is nothing to do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::super::fields::{differs, flag, list, set_differs, shown, text, text_set, texts};
use super::super::super::{Desired, Observed, Refusal};
use super::super::Version;
use crate::plan::{Operation, Step};

/// Arguments of one call, by name.
type Arguments = Vec<(&'static str, Value)>;

/// The first call that is needed.
pub(super) fn first(desired: &Desired, observed: &Observed) -> Result<Option<Step>, Refusal> {
    let (wanted, present) = (&desired.spec, &observed.spec);
    let config = |summary: &str, arguments: Option<Arguments>| {
        arguments
            .map(|arguments| call(desired, "UpdateClusterConfig", format!("change {summary}"), arguments))
    };
    let step = config("control plane logging", logging(wanted, present))
        .or_else(|| config("endpoint access", endpoints(wanted, present)))
        .or_else(|| config("subnets and security groups", networks(wanted, present)));
    let step = match step {
        None => config("authentication mode", authentication(wanted, present)?)
            .or_else(|| config("upgrade policy", member(wanted, present, "upgradePolicy", "/supportType"))),
        step => step,
    };
    let step = match step {
        None => encryption(wanted, present)?.map(|arguments| {
            call(desired, "AssociateEncryptionConfig", "encrypt secrets with a KMS key".into(), arguments)
        }),
        step => step,
    };
    let step = step.or_else(|| version(desired, present));
    let step = match step {
        None => config("Auto Mode", auto_mode(wanted, present)?),
        step => step,
    };
    Ok(step
        .or_else(|| config("zonal shift", switch(wanted, present, "zonalShiftConfig", "/enabled")))
        .or_else(|| {
            config("control plane tier", member(wanted, present, "controlPlaneScalingConfig", "/tier"))
        })
        .or_else(|| config("control plane components", components(wanted, present)))
        .or_else(|| config("deletion protection", switch(wanted, present, "deletionProtection", "")))
        .or_else(|| config("remote networks", remote_networks(wanted, present))))
}

fn call(desired: &Desired, name: &str, summary: String, arguments: Arguments) -> Step {
    let step = Step::new(&desired.key, name, Operation::Update, summary)
        .with("name", text(&desired.spec, "/name").unwrap_or_default());
    arguments.into_iter().fold(step, |step, (name, value)| step.with(name, value))
}

/// Log types that are on. What the author's list does not turn on is off, as at creation.
fn enabled_logs(spec: &Value) -> BTreeSet<String> {
    list(spec, "/logging/clusterLogging")
        .unwrap_or_default()
        .iter()
        .filter(|setup| flag(setup, "/enabled") == Some(true))
        .flat_map(|setup| texts(setup, "/types").unwrap_or_default())
        .collect()
}

fn logging(wanted: &Value, present: &Value) -> Option<Arguments> {
    list(wanted, "/logging/clusterLogging")?;
    let (wanted, present) = (enabled_logs(wanted), enabled_logs(present));
    let on: Vec<&String> = wanted.difference(&present).collect();
    let off: Vec<&String> = present.difference(&wanted).collect();
    let setups: Vec<Value> = [(true, on), (false, off)]
        .into_iter()
        .filter(|(_, types)| !types.is_empty())
        .map(|(enabled, types)| json!({"enabled": enabled, "types": types}))
        .collect();
    (!setups.is_empty()).then(|| vec![("logging", json!({"clusterLogging": setups}))])
}

fn endpoints(wanted: &Value, present: &Value) -> Option<Arguments> {
    const PUBLIC: &str = "/resourcesVPCConfig/endpointPublicAccess";
    const PRIVATE: &str = "/resourcesVPCConfig/endpointPrivateAccess";
    const CIDRS: &str = "/resourcesVPCConfig/publicAccessCIDRs";
    // Without a public endpoint the list means nothing, and EKS may answer none.
    let public = flag(wanted, PUBLIC).or_else(|| flag(present, PUBLIC)).unwrap_or(true);
    let cidrs_differ =
        public && set_differs(wanted, present, CIDRS) && text_set(wanted, CIDRS) != Some(BTreeSet::new());
    (differs(wanted, present, PUBLIC) || differs(wanted, present, PRIVATE) || cidrs_differ).then(|| {
        let config = json!({
            "endpointPublicAccess": wanted.pointer(PUBLIC),
            "endpointPrivateAccess": wanted.pointer(PRIVATE),
            "publicAccessCIDRs": wanted.pointer(CIDRS).filter(|_| public),
        });
        vec![("resourcesVPCConfig", super::compact(config))]
    })
}

fn networks(wanted: &Value, present: &Value) -> Option<Arguments> {
    const SUBNETS: &str = "/resourcesVPCConfig/subnetIDs";
    const GROUPS: &str = "/resourcesVPCConfig/securityGroupIDs";
    (set_differs(wanted, present, SUBNETS) || set_differs(wanted, present, GROUPS)).then(|| {
        let config =
            json!({"subnetIDs": wanted.pointer(SUBNETS), "securityGroupIDs": wanted.pointer(GROUPS)});
        vec![("resourcesVPCConfig", super::compact(config))]
    })
}

/// The mode moves towards API only, one step at a time (EKS User Guide, "Change authentication mode").
fn authentication(wanted: &Value, present: &Value) -> Result<Option<Arguments>, Refusal> {
    const MODE: &str = "/accessConfig/authenticationMode";
    const MODES: [&str; 3] = ["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"];
    if !differs(wanted, present, MODE) {
        return Ok(None);
    }
    let rank = |spec: &Value| text(spec, MODE).and_then(|mode| MODES.iter().position(|known| *known == mode));
    let wanted_rank = rank(wanted).ok_or_else(|| Refusal::Invalid {
        message: format!(
            "accessConfig.authenticationMode {} is not one of {}",
            shown(wanted.pointer(MODE)),
            MODES.join(", ")
        ),
    })?;
    let present_rank = rank(present).unwrap_or(0);
    if wanted_rank < present_rank {
        return Err(Refusal::Invalid {
            message: format!(
                "accessConfig.authenticationMode cannot go back from {} to {}: EKS changes it towards API only; \
                 write {} into the manifest",
                MODES[present_rank], MODES[wanted_rank], MODES[present_rank]
            ),
        });
    }
    Ok(Some(vec![(
        "accessConfig",
        json!({"authenticationMode": MODES[(present_rank + 1).min(wanted_rank)]}),
    )]))
}

/// Encryption with a key of one's own is added once and stays.
fn encryption(wanted: &Value, present: &Value) -> Result<Option<Arguments>, Refusal> {
    let Some(configs) = list(wanted, "/encryptionConfig").filter(|configs| !configs.is_empty()) else {
        return Ok(None);
    };
    if configs.len() > 1 {
        return Err(Refusal::Invalid {
            message: format!("encryptionConfig has {} entries; EKS takes one", configs.len()),
        });
    }
    let Some([existing, ..]) = list(present, "/encryptionConfig") else {
        return Ok(Some(vec![("encryptionConfig", json!(configs))]));
    };
    let key = |config: &Value| text(config, "/provider/keyARN").map(str::to_owned);
    let wanted_key = configs.first().and_then(key);
    // An alias is answered as the key that it stands for.
    let same =
        wanted_key == key(existing) || wanted_key.as_deref().is_some_and(|key| key.contains(":alias/"));
    if same {
        return Ok(None);
    }
    Err(Refusal::ReplacementRequired {
        field: "encryptionConfig".into(),
        observed: key(existing).unwrap_or_default(),
        desired: wanted_key.unwrap_or_default(),
    })
}

/// One minor version per update, never back (EKS User Guide, "Update existing cluster to new Kubernetes version").
fn version(desired: &Desired, present: &Value) -> Option<Step> {
    let wanted = text(&desired.spec, "/version").and_then(Version::parse)?;
    let present = text(present, "/version").and_then(Version::parse)?;
    if wanted <= present {
        return None;
    }
    let next = present.next().min(wanted).to_string();
    let target = if wanted.to_string() == next { String::new() } else { format!(" on the way to {wanted}") };
    let force = desired.annotation("eks.services.k8s.aws/force-upgrade") == Some("true");
    let mut arguments = vec![("version", json!(next))];
    if force {
        arguments.push(("force", json!(true)));
    }
    Some(call(desired, "UpdateClusterVersion", format!("upgrade {present} to {next}{target}"), arguments))
}

/// What is held back, for people: a control plane ahead of Git is left alone.
pub(super) fn held(desired: &Desired, present: &Value) -> Option<String> {
    let wanted = text(&desired.spec, "/version").and_then(Version::parse)?;
    let present = text(present, "/version").and_then(Version::parse)?;
    (wanted < present).then(|| {
        format!(
            "the control plane runs {present}, newer than {wanted} in the manifest: left alone; \
             write {present} into the manifest"
        )
    })
}

const COMPUTE: &str = "/computeConfig/enabled";
const BALANCING: &str = "/kubernetesNetworkConfig/elasticLoadBalancing/enabled";
const STORAGE: &str = "/storageConfig/blockStorage/enabled";

/// The three switches of Auto Mode, on or off in one request (EKS User Guide, "Enable EKS Auto Mode").
fn auto_mode(wanted: &Value, present: &Value) -> Result<Option<Arguments>, Refusal> {
    let switches: BTreeSet<bool> =
        [COMPUTE, BALANCING, STORAGE].iter().filter_map(|switch| flag(wanted, switch)).collect();
    if switches.len() > 1 {
        return Err(Refusal::Invalid {
            message: "computeConfig.enabled, kubernetesNetworkConfig.elasticLoadBalancing.enabled and \
                      storageConfig.blockStorage.enabled must agree: EKS Auto Mode has all three or none"
                .into(),
        });
    }
    let Some(enabled) = switches.first().copied() else { return Ok(None) };
    let is = |switch: &str| flag(present, switch).unwrap_or(false);
    let was_enabled = is(COMPUTE);
    let role_differs = differs(wanted, present, "/computeConfig/nodeRoleARN");
    if enabled && was_enabled && role_differs && text(present, "/computeConfig/nodeRoleARN").is_some() {
        return Err(Refusal::Invalid {
            message: format!(
                "computeConfig.nodeRoleARN cannot change while Auto Mode is on: it is {}, wanted {}; \
                 turn Auto Mode off first, or restore the role",
                shown(present.pointer("/computeConfig/nodeRoleARN")),
                shown(wanted.pointer("/computeConfig/nodeRoleARN"))
            ),
        });
    }
    let switched = [COMPUTE, BALANCING, STORAGE].iter().any(|switch| is(switch) != enabled);
    let pools_differ = enabled && (set_differs(wanted, present, "/computeConfig/nodePools") || role_differs);
    Ok((switched || pools_differ).then(|| {
        let pools = wanted
            .pointer("/computeConfig/nodePools")
            .or_else(|| present.pointer("/computeConfig/nodePools"));
        let role = wanted
            .pointer("/computeConfig/nodeRoleARN")
            .or_else(|| present.pointer("/computeConfig/nodeRoleARN"));
        let compute = json!({
            "enabled": enabled,
            "nodePools": pools.filter(|_| enabled),
            "nodeRoleARN": role.filter(|_| enabled),
        });
        vec![
            ("computeConfig", super::compact(compute)),
            ("kubernetesNetworkConfig", json!({"elasticLoadBalancing": {"enabled": enabled}})),
            ("storageConfig", json!({"blockStorage": {"enabled": enabled}})),
        ]
    }))
}

/// One value inside an object of its own.
fn member(wanted: &Value, present: &Value, field: &'static str, inner: &str) -> Option<Arguments> {
    differs(wanted, present, &format!("/{field}{inner}"))
        .then(|| vec![(field, wanted.get(field).cloned().unwrap_or_default())])
}

/// The same for a switch, which is off where AWS says nothing.
fn switch(wanted: &Value, present: &Value, field: &'static str, inner: &str) -> Option<Arguments> {
    let pointer = format!("/{field}{inner}");
    let state = flag(wanted, &pointer)?;
    (flag(present, &pointer).unwrap_or(false) != state)
        .then(|| vec![(field, wanted.get(field).cloned().unwrap_or_default())])
}

/// Settings of the control plane's programs: what the author gives must hold, the rest is AWS's.
fn components(wanted: &Value, present: &Value) -> Option<Arguments> {
    const FIELDS: [&str; 3] = ["kubeAPIServerConfig", "kubeSchedulerConfig", "kubeControllerManagerConfig"];
    let changed: Arguments = FIELDS
        .into_iter()
        .filter_map(|field| {
            let wanted = wanted.get(field).filter(|value| !value.is_null())?;
            let present = present.get(field).unwrap_or(&Value::Null);
            (!holds(wanted, present)).then(|| (field, overlaid(present, wanted)))
        })
        .collect();
    (!changed.is_empty()).then_some(changed)
}

/// Whether everything in `wanted` is so in `present`. The order of lists means nothing here.
fn holds(wanted: &Value, present: &Value) -> bool {
    match (wanted, present) {
        (Value::Null, _) => true,
        (Value::Object(members), _) => {
            members.iter().all(|(key, value)| holds(value, present.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(wanted), Value::Array(present)) => {
            wanted.len() == present.len()
                && wanted.iter().all(|item| present.iter().any(|other| holds(item, other)))
        }
        _ => wanted == present,
    }
}

/// `wanted` over `present`, so that a sibling which the author leaves out keeps its value.
fn overlaid(present: &Value, wanted: &Value) -> Value {
    match (present, wanted) {
        (present, Value::Null) => present.clone(),
        (Value::Object(present), Value::Object(wanted)) => {
            let mut result = present.clone();
            for (key, value) in wanted {
                let merged = overlaid(present.get(key).unwrap_or(&Value::Null), value);
                result.insert(key.clone(), merged);
            }
            Value::Object(result)
        }
        _ => wanted.clone(),
    }
}

fn remote_networks(wanted: &Value, present: &Value) -> Option<Arguments> {
    let config = wanted.get("remoteNetworkConfig").filter(|value| !value.is_null())?;
    let cidrs = |spec: &Value, kind: &str| -> BTreeSet<String> {
        list(spec, &format!("/remoteNetworkConfig/{kind}"))
            .unwrap_or_default()
            .iter()
            .flat_map(|network| texts(network, "/cidrs").unwrap_or_default())
            .collect()
    };
    ["remoteNodeNetworks", "remotePodNetworks"]
        .iter()
        .any(|kind| cidrs(wanted, kind) != cidrs(present, kind))
        .then(|| vec![("remoteNetworkConfig", config.clone())])
}
