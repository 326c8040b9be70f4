//! What EKS checks before it takes a request, beyond single values: names, roles, CIDRs.

use ipnet::Ipv4Net;
use serde_json::Value;

use super::input::invalid_parameter;
use crate::simulator::call::{ApiError, Call, Parameters as _};
use crate::simulator::iam::Role;
use crate::simulator::world::Scope;

/// `^[0-9A-Za-z][A-Za-z0-9\-_]*`, at most 100 characters.
pub(super) fn cluster_name(name: &str) -> Result<(), ApiError> {
    let valid = name.len() <= 100
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if valid {
        Ok(())
    } else {
        Err(invalid_parameter(format!(
            "The cluster name {name:?} must begin with a letter or digit and hold at most 100 letters, digits, '-' and '_'"
        )))
    }
}

/// A role of this account that EKS can see by now.
pub(super) fn visible_role<'a>(scope: &'a Scope<'_>, call: &Call, arn: &str) -> Option<&'a Role> {
    scope.iam.visible_role(arn, call.now, &scope.settings.durations)
}

fn role_syntax(arn: &str) -> Result<(), ApiError> {
    let mut parts = arn.splitn(6, ':');
    let valid = parts.next() == Some("arn")
        && parts.nth(1) == Some("iam")
        && parts.nth(1).is_some_and(|account| account.len() == 12)
        && parts.next().is_some_and(|resource| resource.len() > 5 && resource.starts_with("role/"));
    if valid { Ok(()) } else { Err(invalid_parameter(format!("Invalid roleArn: {arn}"))) }
}

/// The role of a control plane: EKS assumes it while it takes the request.
pub(super) fn cluster_role(scope: &Scope<'_>, call: &Call, arn: &str) -> Result<(), ApiError> {
    role_syntax(arn)?;
    match visible_role(scope, call, arn) {
        Some(role) if role.trusts_service("eks.amazonaws.com") => Ok(()),
        _ => Err(invalid_parameter(format!(
            "Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct"
        ))),
    }
}

/// A role that nodes or pods will have: it must exist, and EKS passes it on.
pub(super) fn passed_role(scope: &Scope<'_>, call: &Call, arn: &str, what: &str) -> Result<(), ApiError> {
    role_syntax(arn)?;
    match visible_role(scope, call, arn) {
        Some(_) => Ok(()),
        None => {
            Err(invalid_parameter(format!("{what}: the role {arn} does not exist or cannot be used yet")))
        }
    }
}

/// The range of service addresses: private, between /24 and /12, apart from the VPC.
pub(super) fn service_cidr(cidr: &str, vpc: &[Ipv4Net]) -> Result<(), ApiError> {
    let refuse = |why: &str| invalid_parameter(format!("The service CIDR {cidr} {why}"));
    let net: Ipv4Net = cidr.parse().map_err(|_| refuse("is not an IPv4 CIDR block"))?;
    if net.trunc() != net {
        return Err(refuse("has host bits set"));
    }
    if !(12..=24).contains(&net.prefix_len()) {
        return Err(refuse("must have a netmask between /12 and /24"));
    }
    let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
    if !private.iter().filter_map(|range| range.parse::<Ipv4Net>().ok()).any(|range| range.contains(&net)) {
        return Err(refuse("must lie in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16"));
    }
    match vpc.iter().find(|block| block.contains(&net) || net.contains(*block)) {
        Some(block) => Err(refuse(&format!("must not overlap the VPC's {block}"))),
        None => Ok(()),
    }
}

/// Those that may reach the public endpoint.
pub(super) fn public_cidrs(cidrs: &[Value]) -> Result<(), ApiError> {
    if cidrs.len() > 40 {
        return Err(invalid_parameter("A maximum of 40 CIDR blocks can be given in publicAccessCidrs"));
    }
    for cidr in cidrs {
        let text = cidr.as_str().unwrap_or_default();
        if text.parse::<ipnet::IpNet>().is_err() {
            return Err(invalid_parameter(format!("The following CIDR is not valid: {text}")));
        }
    }
    Ok(())
}

/// One of several words.
pub(super) fn one_of(what: &str, value: &str, allowed: &[&str]) -> Result<(), ApiError> {
    if allowed.contains(&value) {
        Ok(())
    } else {
        Err(invalid_parameter(format!("{what} {value} is not one of {}", allowed.join(", "))))
    }
}

/// A customer key for the secrets: one entry, and the key must exist and be enabled.
pub(super) fn encryption(scope: &Scope<'_>, call: &Call, config: &[Value]) -> Result<(), ApiError> {
    let [entry] = config else {
        return Err(invalid_parameter("Only one encryptionConfig entry is supported"));
    };
    if entry.texts("resources") != ["secrets"] {
        return Err(invalid_parameter("encryptionConfig resources must be [\"secrets\"]"));
    }
    let key = entry.member("provider").text("keyArn").unwrap_or_default();
    scope.kms.usable(key, &call.account, &call.region).map_err(|why| {
        invalid_parameter(format!("The keyArn in encryptionConfig provider, {key}, is invalid: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_ranges_are_private_apart_and_of_a_size() {
        let vpc = ["10.40.0.0/16".parse().unwrap()];
        assert!(service_cidr("172.20.0.0/16", &vpc).is_ok());
        for bad in ["8.8.8.0/24", "10.40.1.0/24", "10.0.0.0/8", "172.20.0.0/25", "172.20.0.1/16", "x"] {
            assert!(service_cidr(bad, &vpc).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_follow_the_pattern() {
        assert!(cluster_name("a_b-9").is_ok());
        for bad in ["-a", "a b", "", "a!"] {
            assert!(cluster_name(bad).is_err(), "{bad}");
        }
    }
}
