//! What EC2 offers rather than what an account has: instance types, images, AWS's own prefix lists.

use serde_json::{Value, json};

use super::Desk;
use super::resource::{filters, invalid, unknown_filter};
use super::zone::zones;
use crate::simulator::call::{Answer, ApiError, Parameters};

/// Type, vCPUs, memory in MiB, architecture: the types that node groups are commonly made of.
const TYPES: &[(&str, u32, u32, &str)] = &[
    ("t3.medium", 2, 4096, "x86_64"),
    ("t3.large", 2, 8192, "x86_64"),
    ("t4g.medium", 2, 4096, "arm64"),
    ("m5.large", 2, 8192, "x86_64"),
    ("m5.xlarge", 4, 16384, "x86_64"),
    ("m6i.large", 2, 8192, "x86_64"),
    ("m6i.xlarge", 4, 16384, "x86_64"),
    ("m6i.2xlarge", 8, 32768, "x86_64"),
    ("m7i.large", 2, 8192, "x86_64"),
    ("m7i.xlarge", 4, 16384, "x86_64"),
    ("m6g.large", 2, 8192, "arm64"),
    ("m7g.large", 2, 8192, "arm64"),
    ("m7g.xlarge", 4, 16384, "arm64"),
    ("c6i.large", 2, 4096, "x86_64"),
    ("c7g.large", 2, 4096, "arm64"),
    ("r6i.large", 2, 16384, "x86_64"),
];

/// Answers DescribeInstances: the account has none, nodes are EKS's own affair.
pub(super) fn instances(desk: &mut Desk<'_>) -> Answer {
    if let Some(id) = desk.call.texts("InstanceId").first() {
        let message = format!("The instance ID '{id}' does not exist");
        return Err(ApiError::bad("InvalidInstanceID.NotFound", message));
    }
    Ok(json!({ "reservationSet": [] }))
}

/// Answers DescribeInstanceTypes.
pub(super) fn instance_types(desk: &mut Desk<'_>) -> Answer {
    let wanted = desk.call.texts("InstanceType");
    if let Some(unknown) = wanted.iter().find(|name| !TYPES.iter().any(|(known, ..)| known == *name)) {
        let message = format!("The following supplied instance types do not exist: [{unknown}]");
        return Err(ApiError::bad("InvalidInstanceType", message));
    }
    let filters = filters(desk.call)?;
    let mut found = Vec::new();
    for (name, cpus, memory, architecture) in TYPES {
        let mut holds = wanted.is_empty() || wanted.contains(name);
        for filter in &filters {
            holds &= match filter.name {
                "instance-type" => filter.accepts(name),
                "processor-info.supported-architecture" => filter.accepts(architecture),
                "vcpu-info.default-vcpus" => filter.accepts(&cpus.to_string()),
                "current-generation" => filter.accepts("true"),
                other => return Err(unknown_filter(other)),
            };
        }
        if holds {
            found.push(json!({
                "instanceType": name,
                "currentGeneration": true,
                "hypervisor": "nitro",
                "vCpuInfo": { "defaultVCpus": cpus, "defaultCores": cpus.div_ceil(2), "defaultThreadsPerCore": 2 },
                "memoryInfo": { "sizeInMiB": memory },
                "processorInfo": { "supportedArchitectures": [architecture] },
            }));
        }
    }
    Ok(json!({ "instanceTypeSet": found }))
}

/// Answers DescribeInstanceTypeOfferings: every type in every zone.
pub(super) fn instance_type_offerings(desk: &mut Desk<'_>) -> Answer {
    let kind = desk.call.text("LocationType").unwrap_or("region");
    let locations: Vec<String> = match kind {
        "region" => vec![desk.call.region.to_string()],
        "availability-zone" => {
            zones(&desk.call.account, &desk.call.region).into_iter().map(|zone| zone.name).collect()
        }
        "availability-zone-id" => {
            zones(&desk.call.account, &desk.call.region).into_iter().map(|zone| zone.id).collect()
        }
        other => return Err(invalid(format!("Value ({other}) for parameter locationType is invalid."))),
    };
    let filters = filters(desk.call)?;
    let mut found: Vec<Value> = Vec::new();
    for location in &locations {
        for (name, ..) in TYPES {
            let mut holds = true;
            for filter in &filters {
                holds &= match filter.name {
                    "instance-type" => filter.accepts(name),
                    "location" => filter.accepts(location),
                    other => return Err(unknown_filter(other)),
                };
            }
            if holds {
                found.push(json!({ "instanceType": name, "locationType": kind, "location": location }));
            }
        }
    }
    Ok(json!({ "instanceTypeOfferingSet": found }))
}

/// Answers DescribeImages: no image is simulated.
pub(super) fn images(desk: &mut Desk<'_>) -> Answer {
    if let Some(id) = desk.call.texts("ImageId").first() {
        return Err(ApiError::bad("InvalidAMIID.NotFound", format!("The image id '[{id}]' does not exist")));
    }
    Ok(json!({ "imagesSet": [] }))
}

/// Answers DescribeManagedPrefixLists: AWS's own lists of a Region.
pub(super) fn prefix_lists(desk: &mut Desk<'_>) -> Answer {
    let region = &desk.call.region;
    let lists = [("pl-63a5400a", "s3"), ("pl-02cd2c6b", "dynamodb")];
    let wanted = desk.call.texts("PrefixListId");
    if let Some(unknown) = wanted.iter().find(|id| !lists.iter().any(|(known, _)| known == *id)) {
        let message = format!("The prefix list ID '{unknown}' does not exist");
        return Err(ApiError::bad("InvalidPrefixListID.NotFound", message));
    }
    let filters = filters(desk.call)?;
    let mut found = Vec::new();
    for (id, service) in lists {
        let name = format!("com.amazonaws.{region}.{service}");
        let mut holds = wanted.is_empty() || wanted.contains(&id);
        for filter in &filters {
            holds &= match filter.name {
                "prefix-list-id" => filter.accepts(id),
                "prefix-list-name" => filter.accepts(&name),
                "owner-id" => filter.accepts("AWS"),
                other => return Err(unknown_filter(other)),
            };
        }
        if holds {
            found.push(json!({
                "prefixListId": id,
                "prefixListName": name,
                "prefixListArn": format!("arn:{}:ec2:{region}:aws:prefix-list/{id}", region.partition()),
                "addressFamily": "IPv4",
                "ownerId": "AWS",
                "state": "create-complete",
            }));
        }
    }
    Ok(json!({ "prefixListSet": found }))
}
