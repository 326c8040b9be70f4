//! The way into the simulator without a socket: an HTTP client for the AWS SDK.

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt as _;

use super::{ConnectionReset, Simulator};

#[derive(Debug)]
struct InProcess(Simulator);

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let simulator = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(ConnectorError::user)?.to_bytes();
            let response = simulator.handle(http::Request::from_parts(parts, body)).await;
            if response.extensions().get::<ConnectionReset>().is_some() {
                return Err(ConnectorError::io("connection reset by the simulated AWS".into()));
            }
            HttpResponse::try_from(response.map(SdkBody::from))
                .map_err(|error| ConnectorError::user(error.into()))
        })
    }
}

/// An HTTP client whose every request goes to the simulator.
pub(crate) fn client(simulator: &Simulator) -> SharedHttpClient {
    let connector = SharedHttpConnector::new(InProcess(simulator.clone()));
    http_client_fn(move |_, _| connector.clone())
}
