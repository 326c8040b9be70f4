//! `OpenIDConnectProvider`: an issuer of tokens whose bearers may assume roles. Its ARN follows from account and
//! URL; IAM shows the URL without its scheme.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::super::fields::{
    EXTENSION, arn, compact, metadata, owned, partition, text, text_set, texts, timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{GROUP, removed, settled, tag_keys, tag_list, tag_map, tag_steps, unknown_call};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Session};
use crate::plan::{Operation, Step};

/// Reconciles OpenID Connect providers.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenIdConnectProviderManager;

// Spec. ----------------------------------------------------------------------------------------------

fn url(desired: &Desired) -> &str {
    text(&desired.spec, "/url").unwrap_or_default()
}

/// A URL as IAM shows it.
fn bare(url: &str) -> &str {
    url.strip_prefix("https://").unwrap_or(url).trim_end_matches('/')
}

/// The ARN that AWS gave, else the one that it will give.
fn provider_arn(desired: &Desired) -> String {
    match text(&desired.status, "/ackResourceMetadata/arn") {
        Some(arn) => arn.to_owned(),
        None => {
            let partition = partition(&desired.region);
            format!("arn:{partition}:iam::{}:oidc-provider/{}", desired.account, bare(url(desired)))
        }
    }
}

/// Thumbprints as a set: IAM trusts each of them, and writes them in lower case.
fn thumbprints(spec: &Value) -> Option<BTreeSet<String>> {
    texts(spec, "/thumbprints").map(|list| list.iter().map(|print| print.to_ascii_lowercase()).collect())
}

// Observe. -------------------------------------------------------------------------------------------

type Answer = aws_sdk_iam::operation::get_open_id_connect_provider::GetOpenIdConnectProviderOutput;

fn observed(desired: &Desired, arn: &str, provider: &Answer) -> Observed {
    let tags = tag_map(provider.tags());
    Observed {
        spec: compact(json!({
            "url": provider.url().map(|url| format!("https://{}", bare(url))),
            "clientIDs": provider.client_id_list(),
            "thumbprints": provider.thumbprint_list(),
            "tags": tagging::as_pairs(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, Some(arn)),
            EXTENSION: {tagging::MEMORY: tagging::memory(desired, &tags)},
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn create(desired: &Desired) -> Step {
    let field = |name: &str| desired.spec.get(name).cloned().unwrap_or_default();
    let summary = format!("trust tokens of {}", url(desired));
    Step::new(&desired.key, "CreateOpenIDConnectProvider", Operation::Create, summary)
        .with("url", field("url"))
        .with("clientIDs", field("clientIDs"))
        .with("thumbprints", field("thumbprints"))
        .with("tags", tagging::as_pairs(&tagging::wanted(desired)))
}

fn step(arn: &str, desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary).with("arn", arn)
}

/// Adds before it removes: a moment with too many audiences refuses nobody.
fn client_steps(desired: &Desired, observed: &Observed, arn: &str) -> Vec<Step> {
    let Some(wanted) = text_set(&desired.spec, "/clientIDs") else { return Vec::new() };
    let present = text_set(&observed.spec, "/clientIDs").unwrap_or_default();
    let add = wanted.difference(&present).map(|client| {
        let call = "AddClientIDToOpenIDConnectProvider";
        step(arn, desired, call, Operation::Update, format!("add audience {client}"))
            .with("clientID", client.as_str())
    });
    let remove = present.difference(&wanted).map(|client| {
        let call = "RemoveClientIDFromOpenIDConnectProvider";
        step(arn, desired, call, Operation::Delete, format!("remove audience {client}"))
            .with("clientID", client.as_str())
    });
    add.chain(remove).collect()
}

fn thumbprint_step(desired: &Desired, observed: &Observed, arn: &str) -> Option<Step> {
    let wanted = thumbprints(&desired.spec).filter(|wanted| !wanted.is_empty())?;
    (Some(&wanted) != thumbprints(&observed.spec).as_ref()).then(|| {
        let call = "UpdateOpenIDConnectProviderThumbprint";
        step(arn, desired, call, Operation::Update, "change the thumbprints")
            .with("thumbprints", wanted.into_iter().collect::<Vec<_>>())
    })
}

#[async_trait]
impl Manager for OpenIdConnectProviderManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "OpenIDConnectProvider")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    /// The list of IAM gives ARNs alone: each provider that nobody is known to hold is read.
    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        let held: BTreeSet<&str> = held.iter().filter_map(|spec| text(spec, "/url")).map(bare).collect();
        let answer = aws.iam().list_open_id_connect_providers().send().await;
        let answer = answer.map_err(|error| AwsError::from_sdk("ListOpenIDConnectProviders", error))?;
        let arns = answer.open_id_connect_provider_list.unwrap_or_default();
        let mut all = Vec::new();
        for arn in arns.into_iter().filter_map(|entry| entry.arn) {
            if arn.split_once("oidc-provider/").is_some_and(|(_, url)| held.contains(url)) {
                continue;
            }
            let read = async || {
                let answer = aws.iam().get_open_id_connect_provider().open_id_connect_provider_arn(&arn);
                let answer = answer.send().await;
                answer.map_err(|error| AwsError::from_sdk("GetOpenIDConnectProvider", error))
            };
            let provider = match aws.patiently(read).await {
                Ok(provider) => provider,
                // Deleted since it was listed.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            all.push(Owned {
                // It has no id: the moment of its creation tells it from a later one of the same URL.
                life: timestamp(provider.create_date()).unwrap_or_default(),
                spec: json!({"url": provider.url().map(|url| format!("https://{}", bare(url)))}),
                status: json!({"ackResourceMetadata": {"arn": arn}}),
                tags: tag_map(provider.tags()),
                arn,
            });
        }
        all.retain(|provider| provider.is_of(fleet));
        Ok(all)
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let arn = provider_arn(desired);
        let call = aws.iam().get_open_id_connect_provider().open_id_connect_provider_arn(&arn);
        match call.send().await.map_err(|error| AwsError::from_sdk("GetOpenIDConnectProvider", error)) {
            Ok(provider) => Ok(Some(observed(desired, &arn, &provider))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        let present = text(&observed.spec, "/url").unwrap_or_default();
        if bare(url(desired)) != bare(present) {
            return Err(Refusal::ReplacementRequired {
                field: "url".into(),
                observed: present.to_owned(),
                desired: url(desired).to_owned(),
            });
        }
        let arn = arn(observed).map_or_else(|| provider_arn(desired), str::to_owned);
        let mut steps = client_steps(desired, observed, &arn);
        steps.extend(thumbprint_step(desired, observed, &arn));
        let tagged = |call: &str, operation, summary| step(&arn, desired, call, operation, summary);
        steps.extend(tag_steps(desired, observed, "OpenIDConnectProvider", &tagged));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let arn = arn(observed).map_or_else(|| provider_arn(desired), str::to_owned);
        let summary = format!("no longer trust tokens of {}", url(desired));
        vec![step(&arn, desired, "DeleteOpenIDConnectProvider", Operation::Delete, summary)]
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
    }

    async fn perform(
        &self,
        aws: &Session,
        _desired: &Desired,
        step: &Step,
        _token: &str,
    ) -> Result<Value, AwsError> {
        let iam = aws.iam();
        let argument = |name: &str| owned(step.argument(name), "");
        match step.call.as_str() {
            "CreateOpenIDConnectProvider" => {
                let answer = iam
                    .create_open_id_connect_provider()
                    .set_url(argument("url"))
                    .set_client_id_list(texts(step.argument("clientIDs"), ""))
                    .set_thumbprint_list(texts(step.argument("thumbprints"), ""))
                    .set_tags(Some(tag_list("CreateOpenIDConnectProvider", step)?))
                    .send()
                    .await
                    .map_err(|error| settled(AwsError::from_sdk("CreateOpenIDConnectProvider", error)))?;
                Ok(compact(json!({"arn": answer.open_id_connect_provider_arn()})))
            }
            "AddClientIDToOpenIDConnectProvider" => {
                let call = iam
                    .add_client_id_to_open_id_connect_provider()
                    .set_open_id_connect_provider_arn(argument("arn"))
                    .set_client_id(argument("clientID"));
                let result = call.send().await;
                let result =
                    result.map_err(|error| AwsError::from_sdk("AddClientIDToOpenIDConnectProvider", error));
                result.map(|_| Value::Null).map_err(settled)
            }
            "RemoveClientIDFromOpenIDConnectProvider" => {
                let call = iam
                    .remove_client_id_from_open_id_connect_provider()
                    .set_open_id_connect_provider_arn(argument("arn"))
                    .set_client_id(argument("clientID"));
                let result = call.send().await.map(drop);
                removed(
                    result.map_err(|error| {
                        AwsError::from_sdk("RemoveClientIDFromOpenIDConnectProvider", error)
                    }),
                )
            }
            "UpdateOpenIDConnectProviderThumbprint" => {
                let call = iam
                    .update_open_id_connect_provider_thumbprint()
                    .set_open_id_connect_provider_arn(argument("arn"))
                    .set_thumbprint_list(texts(step.argument("thumbprints"), ""));
                let result = call.send().await;
                let result = result
                    .map_err(|error| AwsError::from_sdk("UpdateOpenIDConnectProviderThumbprint", error));
                result.map(|_| Value::Null).map_err(settled)
            }
            "TagOpenIDConnectProvider" => {
                let call = iam
                    .tag_open_id_connect_provider()
                    .set_open_id_connect_provider_arn(argument("arn"))
                    .set_tags(Some(tag_list("TagOpenIDConnectProvider", step)?));
                let result =
                    call.send().await.map_err(|error| AwsError::from_sdk("TagOpenIDConnectProvider", error));
                result.map(|_| Value::Null).map_err(settled)
            }
            "UntagOpenIDConnectProvider" => {
                let call = iam
                    .untag_open_id_connect_provider()
                    .set_open_id_connect_provider_arn(argument("arn"))
                    .set_tag_keys(Some(tag_keys(step)));
                let result = call.send().await.map(drop);
                removed(result.map_err(|error| AwsError::from_sdk("UntagOpenIDConnectProvider", error)))
            }
            "DeleteOpenIDConnectProvider" => {
                let call =
                    iam.delete_open_id_connect_provider().set_open_id_connect_provider_arn(argument("arn"));
                let result = call.send().await.map(drop);
                removed(result.map_err(|error| AwsError::from_sdk("DeleteOpenIDConnectProvider", error)))
            }
            _ => Err(unknown_call(step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_iam::types::Tag;

    use super::*;
    use crate::managers::testing;

    const ISSUER: &str = "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE";

    fn desired(more: Value) -> Desired {
        let mut spec = json!({"url": ISSUER});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        testing::desired(GROUP, "OpenIDConnectProvider", spec)
    }

    fn as_created(desired: &Desired) -> Observed {
        let mut answer = Answer::builder()
            .url(bare(ISSUER))
            .set_client_id_list(texts(&desired.spec, "/clientIDs"))
            .thumbprint_list("06b25927c42a721631c1efd9431e648fa62e1e39");
        for (key, value) in tagging::wanted(desired) {
            answer = answer.tags(Tag::builder().key(key).value(value).build().unwrap());
        }
        observed(desired, &provider_arn(desired), &answer.build())
    }

    fn calls(desired: &Desired, observed: &Observed) -> Vec<String> {
        let steps = OpenIdConnectProviderManager.diff(desired, Some(observed)).unwrap();
        steps.into_iter().map(|step| step.call).collect()
    }

    #[test]
    fn its_arn_follows_from_its_url() {
        assert_eq!(
            provider_arn(&desired(json!({}))),
            "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE"
        );
    }

    #[test]
    fn a_created_provider_needs_nothing_and_keeps_the_thumbprint_that_aws_fetched() {
        let desired = desired(json!({"clientIDs": ["sts.amazonaws.com"]}));
        let steps = OpenIdConnectProviderManager.diff(&desired, None).unwrap();
        assert_eq!(testing::calls(&steps), ["CreateOpenIDConnectProvider"]);
        assert_eq!(calls(&desired, &as_created(&desired)), Vec::<String>::new());
    }

    #[test]
    fn audiences_are_added_before_others_are_removed() {
        let mut desired = desired(json!({"clientIDs": ["a", "b"]}));
        let observed = as_created(&desired);
        desired.spec["clientIDs"] = json!(["c", "b"]);
        assert_eq!(
            calls(&desired, &observed),
            ["AddClientIDToOpenIDConnectProvider", "RemoveClientIDFromOpenIDConnectProvider"]
        );
    }

    #[test]
    fn thumbprints_are_a_set_without_case() {
        let mut desired = desired(json!({}));
        let observed = as_created(&desired);
        desired.spec["thumbprints"] = json!(["06B25927C42A721631C1EFD9431E648FA62E1E39"]);
        assert_eq!(calls(&desired, &observed), Vec::<String>::new());
        desired.spec["thumbprints"] = json!(["1".repeat(40)]);
        assert_eq!(calls(&desired, &observed), ["UpdateOpenIDConnectProviderThumbprint"]);
    }

    #[test]
    fn its_url_is_for_ever_but_a_slash_at_the_end_is_none() {
        let mut desired = desired(json!({}));
        let observed = as_created(&desired);
        desired.spec["url"] = json!(format!("{ISSUER}/"));
        assert_eq!(calls(&desired, &observed), Vec::<String>::new());
        desired.spec["url"] = json!("https://elsewhere.example");
        let refusal = OpenIdConnectProviderManager.diff(&desired, Some(&observed)).unwrap_err();
        assert!(matches!(refusal, Refusal::ReplacementRequired { field, .. } if field == "url"));
    }
}
