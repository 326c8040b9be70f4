//! Notices in every answer whether AWS still takes the credentials of a session.
//!
//! The callers see an error that may be tried again, and try again with whatever session they are given
//! then; which must be a new one. So the news travels from the answer to the place where sessions are
//! kept without anybody having to carry it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::AfterDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// The codes with which AWS refuses credentials whose time is over or that were revoked.
const CODES: [&str; 7] = [
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidClientTokenId",
    "InvalidToken",
    "UnrecognizedClientException",
];

/// Whether an error code says that the credentials have ended.
pub(super) fn credentials_ended(code: &str) -> bool {
    CODES.contains(&code)
}

/// Shared by all clients with the same credentials.
#[derive(Debug, Clone, Default)]
pub(super) struct CredentialsWatch {
    ended: Arc<AtomicBool>,
    denied: Arc<AtomicBool>,
}

impl CredentialsWatch {
    /// Whether AWS has refused the credentials.
    pub(super) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether a policy denies something to them, as the one does that revokes sessions (IAM User Guide,
    /// "Revoke IAM role temporary security credentials").
    pub(super) fn denied(&self) -> bool {
        self.denied.load(Ordering::Relaxed)
    }
}

impl Intercept for CredentialsWatch {
    fn name(&self) -> &'static str {
        "CredentialsWatch"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        // Each of the protocols has another place for the code; no answer of these statuses is long.
        if matches!(response.status().as_u16(), 400 | 401 | 403) {
            let header = response.headers().get("x-amzn-errortype").unwrap_or_default();
            let body =
                response.body().bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
            let named = |code: &str| {
                header.split(':').next() == Some(code) || body.contains(&format!("<Code>{code}</Code>"))
            };
            if CODES.iter().any(|code| named(code)) {
                self.ended.store(true, Ordering::Relaxed);
            }
            if body.contains("explicit deny in an identity-based policy") {
                self.denied.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
