//! Tags across all kinds of resources.

use std::collections::BTreeMap;

use serde_json::json;

use super::resource::{
    Meta, Resource, check_tag_count, done, filters, find, find_mut, missing, page, read_tag, unknown_filter,
};
use super::{Desk, State};
use crate::simulator::call::{Answer, ApiError, Parameters};

/// The shelves of taggable resources, each named once.
macro_rules! with_shelves {
    ($each:ident) => {
        $each!(
            vpcs,
            subnets,
            internet_gateways,
            egress_gateways,
            addresses,
            nat_gateways,
            route_tables,
            security_groups,
            security_group_rules,
            network_interfaces,
            network_acls,
            dhcp_options,
            peerings,
            launch_templates
        )
    };
}

fn kind_of<T: Resource>(_shelf: &BTreeMap<String, T>) -> (&'static str, &'static str) {
    (T::TYPE, T::PREFIX)
}

/// The part of the resource that has the tags, by the prefix of the id.
fn meta_mut<'a>(state: &'a mut State, id: &str) -> Result<&'a mut Meta, ApiError> {
    let prefix = id.split('-').next().unwrap_or_default();
    macro_rules! search {
        ($($shelf:ident),*) => {
            $(if kind_of(&state.$shelf).1 == prefix {
                return find_mut(&mut state.$shelf, id).map(Resource::meta_mut);
            })*
        };
    }
    with_shelves!(search);
    Err(ApiError::bad("InvalidID", format!("The ID '{id}' is not valid")))
}

/// Checks that a resource is there.
fn check(state: &State, id: &str) -> Result<Meta, ApiError> {
    let prefix = id.split('-').next().unwrap_or_default();
    macro_rules! search {
        ($($shelf:ident),*) => {
            $(if kind_of(&state.$shelf).1 == prefix {
                return find(&state.$shelf, id).map(|resource| resource.meta().clone());
            })*
        };
    }
    with_shelves!(search);
    Err(ApiError::bad("InvalidID", format!("The ID '{id}' is not valid")))
}

/// Answers CreateTags: all resources or none.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let resources = desk.call.texts("ResourceId");
    let tags = desk.call.items("Tag").iter().map(read_tag).collect::<Result<Vec<_>, _>>()?;
    if resources.is_empty() || tags.is_empty() {
        return Err(missing(if resources.is_empty() { "ResourceIdSet" } else { "TagSet" }));
    }
    for id in &resources {
        let mut after = check(desk.state, id)?.tags.current;
        after.extend(tags.iter().cloned());
        check_tag_count(&after)?;
    }
    let (now, seen_from) = (desk.call.now, desk.tags_seen_from());
    for id in resources {
        meta_mut(desk.state, id)?.tags.change(now, seen_from, |current| current.extend(tags.iter().cloned()));
    }
    Ok(done())
}

/// Answers DeleteTags: a tag with a value goes only if it has that value; without any tag, all go.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let resources = desk.call.texts("ResourceId");
    if resources.is_empty() {
        return Err(missing("ResourceIdSet"));
    }
    for id in &resources {
        check(desk.state, id)?;
    }
    let tags = desk.call.items("Tag");
    let (now, seen_from) = (desk.call.now, desk.tags_seen_from());
    for id in resources {
        meta_mut(desk.state, id)?.tags.change(now, seen_from, |current| {
            current.retain(|key, value| {
                let named = tags.iter().any(|tag| {
                    tag.text("Key") == Some(key)
                        && tag.member("Value").as_str().is_none_or(|given| given == value)
                });
                !named && !tags.is_empty()
            });
        });
    }
    Ok(done())
}

/// One line of the answer.
struct Line {
    order: String,
    key: String,
    value: String,
    resource: String,
    kind: &'static str,
}

/// Answers DescribeTags.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    let now = desk.call.now;
    let state = &*desk.state;
    let mut lines: Vec<Line> = Vec::new();
    macro_rules! gather {
        ($($shelf:ident),*) => {
            $(for resource in state.$shelf.values() {
                let meta = resource.meta();
                for (key, value) in meta.tags.seen(now) {
                    lines.push(Line {
                        order: format!("{} {key}", meta.id),
                        key: key.clone(),
                        value: value.clone(),
                        resource: meta.id.clone(),
                        kind: kind_of(&state.$shelf).0,
                    });
                }
            })*
        };
    }
    with_shelves!(gather);
    lines.sort_by(|one, other| one.order.cmp(&other.order));
    let filters = filters(desk.call)?;
    let mut found = Vec::new();
    for line in &lines {
        let mut holds = true;
        for filter in &filters {
            holds &= match filter.name {
                "resource-id" => filter.accepts(&line.resource),
                "resource-type" => filter.accepts(line.kind),
                "key" => filter.accepts(&line.key),
                "value" => filter.accepts(&line.value),
                name => match name.strip_prefix("tag:") {
                    Some(key) => key == line.key && filter.accepts(&line.value),
                    None => return Err(unknown_filter(name)),
                },
            };
        }
        if holds {
            found.push(line);
        }
    }
    page(
        desk.call,
        "tagSet",
        found,
        |line| line.order.as_str(),
        |line| json!({ "key": line.key, "value": line.value, "resourceId": line.resource, "resourceType": line.kind }),
    )
}
