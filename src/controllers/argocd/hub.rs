//! The hand-over to the API server that Argo CD runs on.

use std::collections::BTreeSet;

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind as KubeKind};

use crate::api::{GroupKind, Object, ObjectKey};
use crate::argocd;

/// Field manager of everything that is written.
const FIELD_MANAGER: &str = "fleetwright";

/// Why the API server did not take it.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A request failed.
    #[error("cannot {action} {object} on the hub: {source}")]
    Request {
        /// What was tried.
        action: &'static str,
        /// On which object or kind.
        object: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object cannot be sent as it is.
    #[error("cannot send {object} to the hub: {source}")]
    Malformed {
        /// Which object.
        object: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

/// The API server.
#[derive(Clone)]
pub struct Hub {
    client: kube::Client,
}

impl Hub {
    /// Works through a client.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Applies what is wanted, and removes of what is `gone` whatever carries this fleet's label. Other
    /// people's labels and annotations stay: server-side apply owns only the fields that it sends.
    ///
    /// # Errors
    /// Stops at the first request that fails.
    pub async fn apply(
        &self,
        wanted: &[Object],
        gone: &BTreeSet<ObjectKey>,
        fleet: &str,
    ) -> Result<(), HubError> {
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        for object in wanted {
            let api = self.api(object);
            let key = object.key().to_string();
            let body: DynamicObject = serde_json::from_value(object.to_value())
                .map_err(|source| HubError::Malformed { object: key.clone(), source })?;
            api.patch(&object.metadata.name, &parameters, &Patch::Apply(body)).await.map_err(|source| {
                HubError::Request { action: "apply", object: key, source: Box::new(source) }
            })?;
        }
        if gone.is_empty() {
            return Ok(());
        }
        for kind in argocd::kinds().into_iter().rev() {
            let resource = resource_of(&kind);
            let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let selector = ListParams::default().labels(&format!("{}={fleet}", argocd::LABEL_FLEET));
            let found = match all.list(&selector).await {
                Ok(found) => found,
                // A hub without Argo CD's kinds holds none of them.
                Err(error) if is_not_found(&error) => continue,
                Err(source) => {
                    let object = kind.to_string();
                    return Err(HubError::Request { action: "list", object, source: Box::new(source) });
                }
            };
            for object in found {
                let namespace = object.metadata.namespace.clone().unwrap_or_default();
                let name = object.metadata.name.clone().unwrap_or_default();
                let key = ObjectKey::new(kind.group.clone(), kind.kind.clone(), &*namespace, &*name);
                if !gone.contains(&key) || object.metadata.deletion_timestamp.is_some() {
                    continue;
                }
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.client.clone(), &namespace, &resource);
                match api.delete(&name, &DeleteParams::default()).await {
                    Ok(_) => tracing::info!(object = %key, "removed from the hub"),
                    Err(error) if is_not_found(&error) => {}
                    Err(source) => {
                        let object = key.to_string();
                        return Err(HubError::Request { action: "delete", object, source: Box::new(source) });
                    }
                }
            }
        }
        Ok(())
    }

    fn api(&self, object: &Object) -> Api<DynamicObject> {
        let resource = resource_of(&object.gvk().group_kind());
        if object.metadata.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &object.metadata.namespace, &resource)
        }
    }
}

fn resource_of(kind: &GroupKind) -> ApiResource {
    let version = if kind.group.is_empty() { "v1" } else { "v1alpha1" };
    ApiResource::from_gvk(&KubeKind::gvk(&kind.group, version, &kind.kind))
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower_test::mock;

    use super::*;

    type Handle = mock::Handle<Request<Body>, Response<Body>>;

    async fn answer(handle: &mut Handle, method: &Method, path: &str, body: Value) -> Request<Body> {
        let (request, send) = handle.next_request().await.expect("a request");
        assert_eq!((request.method(), request.uri().path()), (method, path));
        send.send_response(Response::new(Body::from(serde_json::to_vec(&body).unwrap())));
        request
    }

    fn list(kind: &str, items: Value) -> Value {
        json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {}, "items": items})
    }

    #[tokio::test]
    async fn the_wanted_is_applied_by_our_manager_and_what_is_gone_is_removed_and_nothing_else() {
        let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
        let hub = Hub::new(kube::Client::new(service, "default"));
        let secret = Object::from_value(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "c", "namespace": "argocd", "labels": {argocd::LABEL_FLEET: "acme"}}}))
        .unwrap();
        let server = tokio::spawn(async move {
            let path = "/api/v1/namespaces/argocd/secrets/c";
            let stored = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "namespace": "argocd"}});
            let request = answer(&mut handle, &Method::PATCH, path, stored.clone()).await;
            let query = request.uri().query().unwrap_or_default().to_owned();
            assert!(query.contains("fieldManager=fleetwright") && query.contains("force=true"), "{query}");
            let argo = "/apis/argoproj.io/v1alpha1";
            answer(
                &mut handle,
                &Method::GET,
                &format!("{argo}/applicationsets"),
                list("ApplicationSet", json!([])),
            )
            .await;
            answer(
                &mut handle,
                &Method::GET,
                &format!("{argo}/applications"),
                list("Application", json!([])),
            )
            .await;
            let old = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "old", "namespace": "argocd"}});
            let never_ours = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "namespace": "argocd"}});
            let request = answer(
                &mut handle,
                &Method::GET,
                "/api/v1/secrets",
                list("Secret", json!([stored, never_ours, old])),
            )
            .await;
            assert!(request.uri().query().unwrap_or_default().contains("labelSelector=fleetwright.dev"));
            answer(&mut handle, &Method::DELETE, "/api/v1/namespaces/argocd/secrets/old", old).await;
            answer(&mut handle, &Method::GET, &format!("{argo}/appprojects"), list("AppProject", json!([])))
                .await;
        });
        let gone = BTreeSet::from([ObjectKey::new("", "Secret", "argocd", "old")]);
        hub.apply(&[secret], &gone, "acme").await.unwrap();
        server.await.unwrap();
    }
}
