//! How EC2 objects are found: by the id in the status, else by the ownership tags that their create call
//! carried. Reads that come together go out as one call.

use std::collections::BTreeMap;
use std::future::Future;

use aws_sdk_ec2::types::Filter;
use serde_json::{Value, json};

use super::{Tags, text};
use crate::api::{FleetId, names};
use crate::aws::{AwsError, Batch, ErrorClass, Finder, Reads, Session};
use crate::managers::{Desired, Owned};

/// What has to be known about an object to find it.
pub(super) struct Identity {
    /// AWS's id.
    pub(super) id: String,
    /// Its tags.
    pub(super) tags: Tags,
}

/// A kind of object that EC2 describes.
pub(super) trait Described: Clone + Send + Sync + 'static {
    /// Field of the ACK status that holds AWS's id.
    const ID_FIELD: &'static str;
    /// Filter that finds objects by their ids.
    const ID_FILTER: &'static str;
    /// The last part of the ARN before its slash.
    const RESOURCE: &'static str;

    /// The reads that go out together.
    fn reads(reads: &Reads) -> &Finder<Self>;

    /// Describes all objects that pass the filters.
    fn describe(
        aws: Session,
        filters: Vec<Filter>,
    ) -> impl Future<Output = Result<Vec<Self>, AwsError>> + Send + 'static;

    /// Id and tags.
    fn identity(&self) -> Identity;

    /// Whether it only lingers: AWS takes it down or has done so.
    fn is_ending(&self) -> bool {
        false
    }

    /// Of several objects under the same tags those that count.
    fn standing(found: Vec<Self>) -> Vec<Self> {
        found
    }
}

/// A filter with one value.
pub(super) fn filter(name: impl Into<String>, value: impl Into<String>) -> Filter {
    Filter::builder().name(name).values(value).build()
}

/// A filter with any number of values up to EC2's 200.
pub(super) fn filter_any(name: impl Into<String>, values: Vec<String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values)).build()
}

/// Finds objects by one value of a filter; `keys` are the values of that filter that an object has.
pub(super) async fn find_by<T: Described>(
    aws: &Session,
    batch: &Batch<T>,
    filter: &'static str,
    value: &str,
    keys: fn(&T) -> Vec<String>,
) -> Result<Vec<T>, AwsError> {
    let session = aws.clone();
    let read = move |values: Vec<String>| async move {
        let found = T::describe(session, vec![filter_any(filter, values)]).await?;
        let keyed = |one: T| keys(&one).into_iter().map(move |key| (key, one.clone()));
        Ok(found.into_iter().flat_map(keyed).collect())
    };
    batch.get(value, read).await
}

/// Finds the one AWS object of a desired state: by the id in its status, else by the ownership tags.
///
/// An id that AWS does not know (any more) is no answer yet: after a restored store the object may live
/// under a younger id, and a second one must not be made.
pub(super) async fn find<T: Described>(aws: &Session, desired: &Desired) -> Result<Option<T>, AwsError> {
    let reads = T::reads(aws.reads());
    if let Some(id) = text(&desired.status, T::ID_FIELD) {
        let found = find_by(aws, &reads.by_id, T::ID_FILTER, id, |one: &T| vec![one.identity().id]).await?;
        if let Some(found) = found.into_iter().next() {
            refuse_foreign(desired, &found.identity())?;
            return Ok(Some(found));
        }
    }
    let session = aws.clone();
    let read = move |owners: Vec<String>| async move {
        let (fleets, objects) = owners
            .iter()
            .filter_map(|owner| owner.split_once(' '))
            .map(|(f, o)| (f.to_owned(), o.to_owned()))
            .unzip();
        let filters = vec![
            filter_any(format!("tag:{}", names::TAG_FLEET), fleets),
            filter_any(format!("tag:{}", names::TAG_OBJECT), objects),
        ];
        let found = T::describe(session, filters).await?;
        Ok(found.into_iter().filter_map(|one| Some((owner(&one.identity().tags)?, one))).collect())
    };
    let Some(owner) = owner(&desired.ownership_tags()) else { return Ok(None) };
    let mut found = T::standing(reads.by_owner.get(&owner, read).await?);
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|one| one.identity().id).collect();
        let message = format!(
            "{} carry the tags of {}: delete or untag all but one of them",
            ids.join(" and "),
            desired.key
        );
        return Err(blocked("AmbiguousOwnership", message));
    }
    Ok(found.pop())
}

/// Fleet and object, by which an object is found again. No fleet's id holds a space.
fn owner(tags: &BTreeMap<String, String>) -> Option<String> {
    Some(format!("{} {}", tags.get(names::TAG_FLEET)?, tags.get(names::TAG_OBJECT)?))
}

/// Everything of a kind that carries the fleet's tag and does not merely linger.
pub(super) async fn owned<T: Described>(aws: &Session, fleet: &FleetId) -> Result<Vec<Owned>, AwsError> {
    let by_fleet = filter(format!("tag:{}", names::TAG_FLEET), fleet.as_str());
    let mut found = T::describe(aws.clone(), vec![by_fleet]).await?;
    found.retain(|one| !one.is_ending());
    let owned = |one: &T| {
        let Identity { id, tags } = one.identity();
        let (region, account) = (aws.region(), aws.account());
        Owned {
            arn: format!("arn:{}:ec2:{region}:{account}:{}/{id}", region.partition(), T::RESOURCE),
            spec: Value::Null,
            status: json!({ T::ID_FIELD: id }),
            life: id,
            tags,
        }
    };
    Ok(found.iter().map(owned).filter(|one| one.is_of(fleet)).collect())
}

/// An object under another fleet's or another object's tags is never read as ours (decisions 1 and 2).
fn refuse_foreign(desired: &Desired, found: &Identity) -> Result<(), AwsError> {
    let ownership = desired.ownership_tags();
    for key in [names::TAG_FLEET, names::TAG_OBJECT] {
        if let (Some(ours), Some(theirs)) = (ownership.get(key), found.tags.get(key))
            && ours != theirs
        {
            let message =
                format!("{} belongs to another: its tag {key} is {theirs}, ours would be {ours}", found.id);
            return Err(blocked("ForeignOwner", message));
        }
    }
    Ok(())
}

fn blocked(code: &str, message: String) -> AwsError {
    AwsError {
        class: ErrorClass::Blocked,
        operation: "Describe",
        code: code.into(),
        message,
        request_id: None,
    }
}
