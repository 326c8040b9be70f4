//! What a Region holds of a fleet in EKS. Its lists give names only; whose something is, its tags say, one read
//! each. What objects of the store hold by name is not read again here: its own observation reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use aws_sdk_eks::types::{
    AddonStatus, CapabilityStatus, ClusterStatus, ConfigStatus, FargateProfileStatus, IdentityProviderConfig,
    NodegroupStatus,
};
use aws_smithy_types::DateTime;
use serde_json::{Value, json};

use super::super::Owned;
use super::super::fields::{text, timestamp};
use super::tag_map;
use crate::api::FleetId;
use crate::aws::{AwsError, Session};

/// One thing in a list: the name that a spec gives it, and what it is read by.
#[derive(Debug, Clone)]
struct Listed {
    name: String,
    id: String,
}

impl Listed {
    fn named(name: String) -> Self {
        Self { id: name.clone(), name }
    }
}

fn found(
    arn: Option<&str>,
    created: Option<&DateTime>,
    tags: BTreeMap<String, String>,
    spec: Value,
    status: Value,
) -> Option<Owned> {
    Some(Owned { arn: arn?.to_owned(), life: timestamp(created).unwrap_or_default(), spec, status, tags })
}

/// Nothing, when what was asked about is gone.
fn unless_gone<T>(answer: Result<T, AwsError>) -> Result<Option<T>, AwsError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn cluster_names(aws: &Session) -> Result<Vec<String>, AwsError> {
    let names: Result<Vec<String>, _> =
        aws.eks().list_clusters().into_paginator().items().send().collect().await;
    names.map_err(|error| AwsError::from_sdk("ListClusters", error))
}

/// Clusters.
pub(super) async fn clusters(aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
    let held: BTreeSet<&str> = held.iter().filter_map(|spec| text(spec, "/name")).collect();
    let mut all = Vec::new();
    for name in cluster_names(aws).await?.into_iter().filter(|name| !held.contains(name.as_str())) {
        let read = async || send!("DescribeCluster", aws.eks().describe_cluster().name(&name));
        let cluster = unless_gone(aws.patiently(read).await)?.and_then(|answer| answer.cluster);
        let Some(cluster) = cluster.filter(|one| one.status() != Some(&ClusterStatus::Deleting)) else {
            continue;
        };
        let tags = tag_map(cluster.tags());
        all.extend(found(cluster.arn(), cluster.created_at(), tags, json!({"name": name}), Value::Null));
    }
    all.retain(|one| one.is_of(fleet));
    Ok(all)
}

/// What lives inside the clusters of a Region, whoever's they are. `held` are cluster and name of what is known.
async fn children<List, Listing, Read, Reading>(
    aws: &Session,
    fleet: &FleetId,
    held: BTreeSet<(String, String)>,
    list: List,
    read: Read,
) -> Result<Vec<Owned>, AwsError>
where
    List: Fn(Session, String) -> Listing + Send + Sync,
    Listing: Future<Output = Result<Vec<Listed>, AwsError>> + Send,
    Read: Fn(Session, String, Listed) -> Reading + Send + Sync,
    Reading: Future<Output = Result<Option<Owned>, AwsError>> + Send,
{
    let mut all = Vec::new();
    for cluster in cluster_names(aws).await? {
        let listed = aws.patiently(|| list(aws.clone(), cluster.clone())).await;
        for listed in unless_gone(listed)?.unwrap_or_default() {
            if held.contains(&(cluster.clone(), listed.name.clone())) {
                continue;
            }
            let answer = aws.patiently(|| read(aws.clone(), cluster.clone(), listed.clone())).await;
            let read = unless_gone(answer)?.flatten();
            all.extend(read.filter(|one| one.is_of(fleet)));
        }
    }
    Ok(all)
}

/// Cluster and name of specs.
fn held_by(held: &[Value], name: impl Fn(&Value) -> Option<String>) -> BTreeSet<(String, String)> {
    held.iter().filter_map(|spec| Some((text(spec, "/clusterName")?.to_owned(), name(spec)?))).collect()
}

/// Add-ons.
pub(super) async fn addons(aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
    let held = held_by(held, |spec| text(spec, "/name").map(str::to_owned));
    let list = async |aws: Session, cluster: String| {
        let pages = aws.eks().list_addons().cluster_name(cluster).into_paginator().items().send();
        let names: Result<Vec<String>, _> = pages.collect().await;
        let names = names.map_err(|error| AwsError::from_sdk("ListAddons", error))?;
        Ok(names.into_iter().map(Listed::named).collect())
    };
    let read = async |aws: Session, cluster: String, Listed { name, .. }: Listed| {
        let call = aws.eks().describe_addon().cluster_name(&cluster).addon_name(&name);
        let addon = send!("DescribeAddon", call)?.addon;
        Ok(addon.filter(|one| one.status() != Some(&AddonStatus::Deleting)).and_then(|one| {
            let spec = json!({"clusterName": cluster, "name": name});
            found(one.addon_arn(), one.created_at(), tag_map(one.tags()), spec, Value::Null)
        }))
    };
    children(aws, fleet, held, list, read).await
}

/// Node groups.
pub(super) async fn nodegroups(
    aws: &Session,
    fleet: &FleetId,
    held: &[Value],
) -> Result<Vec<Owned>, AwsError> {
    let held = held_by(held, |spec| text(spec, "/name").map(str::to_owned));
    let list = async |aws: Session, cluster: String| {
        let pages = aws.eks().list_nodegroups().cluster_name(cluster).into_paginator().items().send();
        let names: Result<Vec<String>, _> = pages.collect().await;
        let names = names.map_err(|error| AwsError::from_sdk("ListNodegroups", error))?;
        Ok(names.into_iter().map(Listed::named).collect())
    };
    let read = async |aws: Session, cluster: String, Listed { name, .. }: Listed| {
        let call = aws.eks().describe_nodegroup().cluster_name(&cluster).nodegroup_name(&name);
        let group = send!("DescribeNodegroup", call)?.nodegroup;
        Ok(group.filter(|one| one.status() != Some(&NodegroupStatus::Deleting)).and_then(|one| {
            let spec = json!({"clusterName": cluster, "name": name});
            found(one.nodegroup_arn(), one.created_at(), tag_map(one.tags()), spec, Value::Null)
        }))
    };
    children(aws, fleet, held, list, read).await
}

/// Fargate profiles.
pub(super) async fn fargate_profiles(
    aws: &Session,
    fleet: &FleetId,
    held: &[Value],
) -> Result<Vec<Owned>, AwsError> {
    let held = held_by(held, |spec| text(spec, "/name").map(str::to_owned));
    let list = async |aws: Session, cluster: String| {
        let pages = aws.eks().list_fargate_profiles().cluster_name(cluster).into_paginator().items().send();
        let names: Result<Vec<String>, _> = pages.collect().await;
        let names = names.map_err(|error| AwsError::from_sdk("ListFargateProfiles", error))?;
        Ok(names.into_iter().map(Listed::named).collect())
    };
    let read = async |aws: Session, cluster: String, Listed { name, .. }: Listed| {
        let call = aws.eks().describe_fargate_profile().cluster_name(&cluster).fargate_profile_name(&name);
        let profile = send!("DescribeFargateProfile", call)?.fargate_profile;
        Ok(profile.filter(|one| one.status() != Some(&FargateProfileStatus::Deleting)).and_then(|one| {
            let spec = json!({"clusterName": cluster, "name": name});
            found(one.fargate_profile_arn(), one.created_at(), tag_map(one.tags()), spec, Value::Null)
        }))
    };
    children(aws, fleet, held, list, read).await
}

/// Capabilities.
pub(super) async fn capabilities(
    aws: &Session,
    fleet: &FleetId,
    held: &[Value],
) -> Result<Vec<Owned>, AwsError> {
    let held = held_by(held, |spec| text(spec, "/name").map(str::to_owned));
    let list = async |aws: Session, cluster: String| {
        let pages = aws.eks().list_capabilities().cluster_name(cluster).into_paginator().items().send();
        let capabilities: Result<Vec<_>, _> = pages.collect().await;
        let capabilities = capabilities.map_err(|error| AwsError::from_sdk("ListCapabilities", error))?;
        Ok(capabilities.into_iter().filter_map(|one| one.capability_name).map(Listed::named).collect())
    };
    let read = async |aws: Session, cluster: String, Listed { name, .. }: Listed| {
        let call = aws.eks().describe_capability().cluster_name(&cluster).capability_name(&name);
        let capability = send!("DescribeCapability", call)?.capability;
        Ok(capability.filter(|one| one.status() != Some(&CapabilityStatus::Deleting)).and_then(|one| {
            let spec = json!({"clusterName": cluster, "name": name});
            found(one.arn(), one.created_at(), tag_map(one.tags()), spec, Value::Null)
        }))
    };
    children(aws, fleet, held, list, read).await
}

/// Identity provider configurations.
pub(super) async fn identity_provider_configs(
    aws: &Session,
    fleet: &FleetId,
    held: &[Value],
) -> Result<Vec<Owned>, AwsError> {
    let held = held_by(held, |spec| text(spec, "/oidc/identityProviderConfigName").map(str::to_owned));
    let list = async |aws: Session, cluster: String| {
        let pages =
            aws.eks().list_identity_provider_configs().cluster_name(cluster).into_paginator().items().send();
        let configs: Result<Vec<IdentityProviderConfig>, _> = pages.collect().await;
        let configs = configs.map_err(|error| AwsError::from_sdk("ListIdentityProviderConfigs", error))?;
        Ok(configs.into_iter().map(|one| Listed { id: one.r#type, name: one.name }).collect())
    };
    let read = async |aws: Session, cluster: String, Listed { name, id }: Listed| {
        let config = IdentityProviderConfig::builder().r#type(id).name(&name).build();
        let config =
            config.map_err(|error| AwsError::invalid("DescribeIdentityProviderConfig", error.to_string()))?;
        let call = aws
            .eks()
            .describe_identity_provider_config()
            .cluster_name(&cluster)
            .identity_provider_config(config);
        let answer = send!("DescribeIdentityProviderConfig", call)?.identity_provider_config;
        let config = answer.and_then(|answer| answer.oidc);
        Ok(config.filter(|one| one.status() != Some(&ConfigStatus::Deleting)).and_then(|one| {
            let spec = json!({"clusterName": cluster, "oidc": {"identityProviderConfigName": name}});
            let arn = one.identity_provider_config_arn()?;
            // EKS tells no moment of its creation, but its ARN ends in an id of its own.
            let life = arn.rsplit('/').next().unwrap_or(arn).to_owned();
            Some(Owned { arn: arn.to_owned(), life, spec, status: Value::Null, tags: tag_map(one.tags()) })
        }))
    };
    children(aws, fleet, held, list, read).await
}

/// Access entries.
pub(super) async fn access_entries(
    aws: &Session,
    fleet: &FleetId,
    held: &[Value],
) -> Result<Vec<Owned>, AwsError> {
    let held = held_by(held, |spec| text(spec, "/principalARN").map(str::to_owned));
    let list = async |aws: Session, cluster: String| {
        let pages = aws.eks().list_access_entries().cluster_name(cluster).into_paginator().items().send();
        let principals: Result<Vec<String>, _> = pages.collect().await;
        match principals.map_err(|error| AwsError::from_sdk("ListAccessEntries", error)) {
            Ok(principals) => Ok(principals.into_iter().map(Listed::named).collect()),
            // A cluster that keeps its access in a ConfigMap has none.
            Err(error) if error.message.contains("authentication mode") => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    };
    let read = async |aws: Session, cluster: String, Listed { name, .. }: Listed| {
        let call = aws.eks().describe_access_entry().cluster_name(&cluster).principal_arn(&name);
        Ok(send!("DescribeAccessEntry", call)?.access_entry.and_then(|one| {
            let spec = json!({"clusterName": cluster, "principalARN": name});
            found(one.access_entry_arn(), one.created_at(), tag_map(one.tags()), spec, Value::Null)
        }))
    };
    children(aws, fleet, held, list, read).await
}

/// Pod identity associations.
pub(super) async fn pod_identities(
    aws: &Session,
    fleet: &FleetId,
    held: &[Value],
) -> Result<Vec<Owned>, AwsError> {
    let subject = |namespace: &str, account: &str| format!("{namespace}/{account}");
    let held = held_by(held, |spec| Some(subject(text(spec, "/namespace")?, text(spec, "/serviceAccount")?)));
    let list = async |aws: Session, cluster: String| {
        let pages =
            aws.eks().list_pod_identity_associations().cluster_name(cluster).into_paginator().items().send();
        let summaries: Result<Vec<_>, _> = pages.collect().await;
        let summaries =
            summaries.map_err(|error| AwsError::from_sdk("ListPodIdentityAssociations", error))?;
        let listed = |one: aws_sdk_eks::types::PodIdentityAssociationSummary| {
            let name = format!("{}/{}", one.namespace?, one.service_account?);
            Some(Listed { name, id: one.association_id? })
        };
        Ok(summaries.into_iter().filter_map(listed).collect())
    };
    let read = async |aws: Session, cluster: String, Listed { id, .. }: Listed| {
        let call = aws.eks().describe_pod_identity_association().cluster_name(&cluster).association_id(&id);
        Ok(send!("DescribePodIdentityAssociation", call)?.association.and_then(|one| {
            let spec = json!({
                "clusterName": cluster, "namespace": one.namespace(), "serviceAccount": one.service_account(),
            });
            let status = json!({"associationID": id});
            found(one.association_arn(), one.created_at(), tag_map(one.tags()), spec, status)
        }))
    };
    children(aws, fleet, held, list, read).await
}
