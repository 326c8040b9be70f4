//! The mark of a daemon in an account that it changes: by it a second one with another store is noticed.
//!
//! It is a customer managed policy that is attached to nothing. IAM makes a policy of one name once, whoever
//! asks, answers it with its tags in one read, and keeps both until somebody takes them away. The document
//! allows what AWS allows everybody (GetCallerIdentity needs no permission).

use aws_sdk_iam::types::Tag;

use super::{AwsError, ErrorClass, Session};
use crate::api::{FleetId, names};

/// Path of the policies, so that permissions can be given for it.
const PATH: &str = "/fleetwright/";
const DOCUMENT: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:GetCallerIdentity","Resource":"*"}]}"#;
const DESCRIPTION: &str =
    "Says which Fleetwright store changes this account. Attached to nothing; do not delete.";

/// Which store changes an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Id of the store; empty when the policy says none.
    pub store: String,
    /// Its term.
    pub term: u64,
}

/// ARN of a fleet's marker in the account of a session.
pub fn marker_arn(session: &Session, fleet: &FleetId) -> String {
    format!("arn:{}:iam::{}:policy{PATH}{fleet}", session.region().partition(), session.account())
}

/// Reads the marker.
///
/// # Errors
/// Those of GetPolicy, other than that there is none.
pub async fn read_marker(session: &Session, fleet: &FleetId) -> Result<Option<Marker>, AwsError> {
    let answer = session.iam().get_policy().policy_arn(marker_arn(session, fleet)).send().await;
    let answer = match answer.map_err(|error| AwsError::from_sdk("GetPolicy", error)) {
        Err(error) if error.is_not_found() => return Ok(None),
        answer => answer?,
    };
    let tags = answer.policy().map(|policy| policy.tags()).unwrap_or_default();
    let tag = |name: &str| tags.iter().find(|tag| tag.key() == name).map(Tag::value);
    Ok(Some(Marker {
        store: tag(names::TAG_STORE).unwrap_or_default().to_owned(),
        term: tag(names::TAG_TERM).and_then(|term| term.parse().ok()).unwrap_or_default(),
    }))
}

/// Makes the marker. Answers whether it did: false when somebody was faster.
///
/// # Errors
/// Those of CreatePolicy, other than that there is one already.
pub async fn create_marker(session: &Session, fleet: &FleetId, marker: &Marker) -> Result<bool, AwsError> {
    let fixed = [(names::TAG_FLEET, fleet.to_string()), (names::TAG_MARKER, "true".to_owned())];
    let answer = session
        .iam()
        .create_policy()
        .policy_name(fleet.as_str())
        .path(PATH)
        .description(DESCRIPTION)
        .policy_document(DOCUMENT)
        .set_tags(Some(tags("CreatePolicy", fixed.into_iter().chain(own_tags(marker)))?))
        .send()
        .await;
    match answer.map_err(|error| AwsError::from_sdk("CreatePolicy", error)) {
        Ok(_) => Ok(true),
        Err(error) if error.class == ErrorClass::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Names another store in the marker.
///
/// # Errors
/// Those of TagPolicy.
pub async fn name_store(session: &Session, fleet: &FleetId, marker: &Marker) -> Result<(), AwsError> {
    tag(session, fleet, own_tags(marker)).await
}

/// Raises the term in the marker and nothing else: a store that was named meanwhile stays named.
///
/// # Errors
/// Those of TagPolicy.
pub async fn raise_term(session: &Session, fleet: &FleetId, term: u64) -> Result<(), AwsError> {
    tag(session, fleet, [(names::TAG_TERM, term.to_string())]).await
}

async fn tag<const N: usize>(
    session: &Session,
    fleet: &FleetId,
    pairs: [(&'static str, String); N],
) -> Result<(), AwsError> {
    let request = session.iam().tag_policy().policy_arn(marker_arn(session, fleet));
    let request = request.set_tags(Some(tags("TagPolicy", pairs)?));
    request.send().await.map_err(|error| AwsError::from_sdk("TagPolicy", error))?;
    Ok(())
}

fn own_tags(marker: &Marker) -> [(&'static str, String); 2] {
    [(names::TAG_STORE, marker.store.clone()), (names::TAG_TERM, marker.term.to_string())]
}

fn tags(
    operation: &'static str,
    pairs: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<Vec<Tag>, AwsError> {
    let tag = |(key, value)| {
        let tag = Tag::builder().key(key).value(value).build();
        tag.map_err(|error| AwsError::invalid(operation, error.to_string()))
    };
    pairs.into_iter().map(tag).collect()
}
