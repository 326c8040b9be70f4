//! EKS over restJson1: which method and path mean which operation, and what the path carries.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Method, path template with the API's member names, operation (Amazon EKS API Reference).
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/access-policies", "ListAccessPolicies"),
    ("GET", "/addons/configuration-schemas", "DescribeAddonConfiguration"),
    ("GET", "/addons/supported-versions", "DescribeAddonVersions"),
    ("POST", "/cluster-registrations", "RegisterCluster"),
    ("DELETE", "/cluster-registrations/{name}", "DeregisterCluster"),
    ("GET", "/cluster-versions", "DescribeClusterVersions"),
    ("GET", "/clusters", "ListClusters"),
    ("POST", "/clusters", "CreateCluster"),
    ("GET", "/clusters/{clusterName}/access-entries", "ListAccessEntries"),
    ("POST", "/clusters/{clusterName}/access-entries", "CreateAccessEntry"),
    ("DELETE", "/clusters/{clusterName}/access-entries/{principalArn}", "DeleteAccessEntry"),
    ("GET", "/clusters/{clusterName}/access-entries/{principalArn}", "DescribeAccessEntry"),
    ("POST", "/clusters/{clusterName}/access-entries/{principalArn}", "UpdateAccessEntry"),
    (
        "GET",
        "/clusters/{clusterName}/access-entries/{principalArn}/access-policies",
        "ListAssociatedAccessPolicies",
    ),
    (
        "POST",
        "/clusters/{clusterName}/access-entries/{principalArn}/access-policies",
        "AssociateAccessPolicy",
    ),
    (
        "DELETE",
        "/clusters/{clusterName}/access-entries/{principalArn}/access-policies/{policyArn}",
        "DisassociateAccessPolicy",
    ),
    ("GET", "/clusters/{clusterName}/addons", "ListAddons"),
    ("POST", "/clusters/{clusterName}/addons", "CreateAddon"),
    ("DELETE", "/clusters/{clusterName}/addons/{addonName}", "DeleteAddon"),
    ("GET", "/clusters/{clusterName}/addons/{addonName}", "DescribeAddon"),
    ("POST", "/clusters/{clusterName}/addons/{addonName}/update", "UpdateAddon"),
    ("GET", "/clusters/{clusterName}/capabilities", "ListCapabilities"),
    ("POST", "/clusters/{clusterName}/capabilities", "CreateCapability"),
    ("DELETE", "/clusters/{clusterName}/capabilities/{capabilityName}", "DeleteCapability"),
    ("GET", "/clusters/{clusterName}/capabilities/{capabilityName}", "DescribeCapability"),
    ("POST", "/clusters/{clusterName}/capabilities/{capabilityName}", "UpdateCapability"),
    ("GET", "/clusters/{clusterName}/certificate-authorities", "ListCertificateAuthorities"),
    ("POST", "/clusters/{clusterName}/certificate-authorities", "CreateCertificateAuthority"),
    (
        "DELETE",
        "/clusters/{clusterName}/certificate-authorities/{certificateAuthorityId}",
        "DeleteCertificateAuthority",
    ),
    (
        "GET",
        "/clusters/{clusterName}/certificate-authorities/{certificateAuthorityId}",
        "DescribeCertificateAuthority",
    ),
    (
        "POST",
        "/clusters/{clusterName}/certificate-authorities/{certificateAuthorityId}/activate",
        "ActivateCertificateAuthority",
    ),
    ("POST", "/clusters/{clusterName}/encryption-config/associate", "AssociateEncryptionConfig"),
    ("GET", "/clusters/{clusterName}/fargate-profiles", "ListFargateProfiles"),
    ("POST", "/clusters/{clusterName}/fargate-profiles", "CreateFargateProfile"),
    ("DELETE", "/clusters/{clusterName}/fargate-profiles/{fargateProfileName}", "DeleteFargateProfile"),
    ("GET", "/clusters/{clusterName}/fargate-profiles/{fargateProfileName}", "DescribeFargateProfile"),
    ("GET", "/clusters/{clusterName}/identity-provider-configs", "ListIdentityProviderConfigs"),
    (
        "POST",
        "/clusters/{clusterName}/identity-provider-configs/associate",
        "AssociateIdentityProviderConfig",
    ),
    ("POST", "/clusters/{clusterName}/identity-provider-configs/describe", "DescribeIdentityProviderConfig"),
    (
        "POST",
        "/clusters/{clusterName}/identity-provider-configs/disassociate",
        "DisassociateIdentityProviderConfig",
    ),
    ("POST", "/clusters/{clusterName}/insights", "ListInsights"),
    ("GET", "/clusters/{clusterName}/insights-refresh", "DescribeInsightsRefresh"),
    ("POST", "/clusters/{clusterName}/insights-refresh", "StartInsightsRefresh"),
    ("GET", "/clusters/{clusterName}/insights/{id}", "DescribeInsight"),
    ("GET", "/clusters/{clusterName}/node-groups", "ListNodegroups"),
    ("POST", "/clusters/{clusterName}/node-groups", "CreateNodegroup"),
    ("DELETE", "/clusters/{clusterName}/node-groups/{nodegroupName}", "DeleteNodegroup"),
    ("GET", "/clusters/{clusterName}/node-groups/{nodegroupName}", "DescribeNodegroup"),
    ("POST", "/clusters/{clusterName}/node-groups/{nodegroupName}/update-config", "UpdateNodegroupConfig"),
    ("POST", "/clusters/{clusterName}/node-groups/{nodegroupName}/update-version", "UpdateNodegroupVersion"),
    ("GET", "/clusters/{clusterName}/pod-identity-associations", "ListPodIdentityAssociations"),
    ("POST", "/clusters/{clusterName}/pod-identity-associations", "CreatePodIdentityAssociation"),
    (
        "DELETE",
        "/clusters/{clusterName}/pod-identity-associations/{associationId}",
        "DeletePodIdentityAssociation",
    ),
    (
        "GET",
        "/clusters/{clusterName}/pod-identity-associations/{associationId}",
        "DescribePodIdentityAssociation",
    ),
    (
        "POST",
        "/clusters/{clusterName}/pod-identity-associations/{associationId}",
        "UpdatePodIdentityAssociation",
    ),
    ("DELETE", "/clusters/{name}", "DeleteCluster"),
    ("GET", "/clusters/{name}", "DescribeCluster"),
    ("POST", "/clusters/{name}/update-config", "UpdateClusterConfig"),
    ("GET", "/clusters/{name}/updates", "ListUpdates"),
    ("POST", "/clusters/{name}/updates", "UpdateClusterVersion"),
    ("GET", "/clusters/{name}/updates/{updateId}", "DescribeUpdate"),
    ("POST", "/clusters/{name}/updates/{updateId}/cancel-update", "CancelUpdate"),
    ("GET", "/eks-anywhere-subscriptions", "ListEksAnywhereSubscriptions"),
    ("POST", "/eks-anywhere-subscriptions", "CreateEksAnywhereSubscription"),
    ("DELETE", "/eks-anywhere-subscriptions/{id}", "DeleteEksAnywhereSubscription"),
    ("GET", "/eks-anywhere-subscriptions/{id}", "DescribeEksAnywhereSubscription"),
    ("POST", "/eks-anywhere-subscriptions/{id}", "UpdateEksAnywhereSubscription"),
    ("DELETE", "/tags/{resourceArn}", "UntagResource"),
    ("GET", "/tags/{resourceArn}", "ListTagsForResource"),
    ("POST", "/tags/{resourceArn}", "TagResource"),
];

/// Query members that are lists, however often they are given.
pub(crate) const QUERY_LISTS: &[&str] =
    &["clusterVersions", "include", "includeStatus", "owners", "publishers", "tagKeys", "types"];

/// The operation that a request means, and the members in its path. A label is one path segment, still encoded.
pub(crate) fn route(method: &str, path: &str) -> Option<(&'static str, Map<String, Value>)> {
    ROUTES
        .iter()
        .filter(|(wanted, ..)| *wanted == method)
        .find_map(|(_, template, operation)| labels(template, path).map(|labels| (*operation, labels)))
}

fn labels(template: &str, path: &str) -> Option<Map<String, Value>> {
    let mut found = Map::new();
    let mut parts = path.strip_suffix('/').unwrap_or(path).split('/');
    for wanted in template.split('/') {
        let part = parts.next()?;
        match wanted.strip_prefix('{').and_then(|label| label.strip_suffix('}')) {
            Some(_) if part.is_empty() => return None,
            Some(label) => {
                let text = percent_decode_str(part).decode_utf8().ok()?;
                found.insert(label.into(), Value::String(text.into_owned()));
            }
            None if wanted == part => {}
            None => return None,
        }
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_hold_an_encoded_arn() {
        let path = "/clusters/blue/access-entries/arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fteam%2Fx/access-policies";
        let (operation, labels) = route("GET", path).unwrap();
        assert_eq!(operation, "ListAssociatedAccessPolicies");
        assert_eq!(labels["clusterName"], "blue");
        assert_eq!(labels["principalArn"], "arn:aws:iam::111122223333:role/team/x");
    }

    #[test]
    fn method_and_whole_path_count() {
        assert_eq!(route("POST", "/clusters").unwrap().0, "CreateCluster");
        assert_eq!(route("GET", "/clusters").unwrap().0, "ListClusters");
        assert!(route("PUT", "/clusters").is_none());
        assert!(route("GET", "/clusters//").is_none());
    }
}
