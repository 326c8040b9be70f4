//! Regions and their Availability Zones.
//!
//! A zone's name means another place in each account; its id means the same for all. So the names are dealt to
//! the ids by the account, as AWS does.

use serde_json::{Value, json};

use super::Desk;
use super::resource::{filters, unknown_filter};
use crate::api::{AccountId, Region};
use crate::simulator::call::{Answer, ApiError, Parameters};
use crate::simulator::world::{digest, number};

/// Region, prefix of its zone ids, letters of its zones (AWS Regions and Availability Zones, 2026).
const REGIONS: &[(&str, &str, &str)] = &[
    ("af-south-1", "afs1", "abc"),
    ("ap-east-1", "ape1", "abc"),
    ("ap-northeast-1", "apne1", "acd"),
    ("ap-northeast-2", "apne2", "abcd"),
    ("ap-northeast-3", "apne3", "abc"),
    ("ap-south-1", "aps1", "abc"),
    ("ap-south-2", "aps2", "abc"),
    ("ap-southeast-1", "apse1", "abc"),
    ("ap-southeast-2", "apse2", "abc"),
    ("ap-southeast-3", "apse3", "abc"),
    ("ap-southeast-4", "apse4", "abc"),
    ("ca-central-1", "cac1", "abd"),
    ("ca-west-1", "caw1", "abc"),
    ("eu-central-1", "euc1", "abc"),
    ("eu-central-2", "euc2", "abc"),
    ("eu-north-1", "eun1", "abc"),
    ("eu-south-1", "eus1", "abc"),
    ("eu-south-2", "eus2", "abc"),
    ("eu-west-1", "euw1", "abc"),
    ("eu-west-2", "euw2", "abc"),
    ("eu-west-3", "euw3", "abc"),
    ("il-central-1", "ilc1", "abc"),
    ("me-central-1", "mec1", "abc"),
    ("me-south-1", "mes1", "abc"),
    ("sa-east-1", "sae1", "abc"),
    ("us-east-1", "use1", "abcdef"),
    ("us-east-2", "use2", "abc"),
    ("us-west-1", "usw1", "ac"),
    ("us-west-2", "usw2", "abcd"),
];

/// Zones that new accounts are not given any more.
const CLOSED: [&str; 2] = ["usw1-az2", "cac1-az3"];
/// A zone without room, which EKS refuses: every account has it under its last letter.
const FULL: &str = "use1-az3";

/// One Availability Zone as an account sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    pub name: String,
    pub id: String,
}

/// The zones of a Region, by name. A Region that the table does not know has three.
pub(super) fn zones(account: &AccountId, region: &Region) -> Vec<Zone> {
    let unknown = region.as_str().replace('-', "");
    let (prefix, letters) = REGIONS
        .iter()
        .find(|(name, ..)| *name == region.as_str())
        .map_or((unknown.as_str(), "abc"), |(_, prefix, letters)| (*prefix, *letters));
    let mut ids: Vec<String> = (1..)
        .map(|index| format!("{prefix}-az{index}"))
        .filter(|id| !CLOSED.contains(&id.as_str()))
        .take(letters.len())
        .collect();
    ids.sort_by_key(|id| (id == FULL, number(&digest(&[account.as_str().as_bytes(), id.as_bytes()]))));
    letters.chars().zip(ids).map(|(letter, id)| Zone { name: format!("{region}{letter}"), id }).collect()
}

/// Answers DescribeAvailabilityZones.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    let (names, ids) = (desk.call.texts("ZoneName"), desk.call.texts("ZoneId"));
    let zones = zones(&desk.call.account, &desk.call.region);
    for wanted in &names {
        if !zones.iter().any(|zone| zone.name == *wanted) {
            return Err(ApiError::bad(
                "InvalidParameterValue",
                format!("Invalid availability zone: [{wanted}]"),
            ));
        }
    }
    for wanted in &ids {
        if !zones.iter().any(|zone| zone.id == *wanted) {
            return Err(ApiError::bad(
                "InvalidParameterValue",
                format!("Invalid availability zone-id: [{wanted}]"),
            ));
        }
    }
    let filters = filters(desk.call)?;
    let mut found = Vec::new();
    for zone in zones {
        let chosen = (names.is_empty() || names.contains(&zone.name.as_str()))
            && (ids.is_empty() || ids.contains(&zone.id.as_str()));
        let mut holds = chosen;
        for filter in &filters {
            let value = match filter.name {
                "zone-name" => zone.name.as_str(),
                "zone-id" => zone.id.as_str(),
                "region-name" => desk.call.region.as_str(),
                "state" => "available",
                "zone-type" => "availability-zone",
                "opt-in-status" => "opt-in-not-required",
                other => return Err(unknown_filter(other)),
            };
            holds &= filter.accepts(value);
        }
        if holds {
            found.push(json!({
                "zoneName": zone.name,
                "zoneId": zone.id,
                "zoneState": "available",
                "zoneType": "availability-zone",
                "optInStatus": "opt-in-not-required",
                "regionName": desk.call.region,
                "groupName": format!("{}-zg-1", desk.call.region),
                "networkBorderGroup": desk.call.region,
                "messageSet": [],
            }));
        }
    }
    Ok(json!({ "availabilityZoneInfo": found }))
}

/// Answers DescribeRegions.
pub(super) fn describe_regions(desk: &mut Desk<'_>) -> Answer {
    let wanted = desk.call.texts("RegionName");
    let regions: Vec<Value> = REGIONS
        .iter()
        .filter(|(name, ..)| wanted.is_empty() || wanted.contains(name))
        .map(|(name, ..)| {
            json!({
                "regionName": name,
                "regionEndpoint": format!("ec2.{name}.amazonaws.com"),
                "optInStatus": "opt-in-not-required",
            })
        })
        .collect();
    Ok(json!({ "regionInfo": regions }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn accounts_see_the_same_ids_under_their_own_names() {
        let region: Region = "us-east-1".parse().unwrap();
        let deal = |account: &str| zones(&account.parse().unwrap(), &region);
        let (one, other) = (deal("111122223333"), deal("444455556666"));
        let ids = |zones: &[Zone]| zones.iter().map(|zone| zone.id.clone()).collect::<BTreeSet<_>>();
        assert_eq!(ids(&one), ids(&other));
        assert_eq!(one.len(), 6);
        assert_ne!(one, other);
        assert_eq!(one, deal("111122223333"));
    }
}
