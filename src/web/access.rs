//! Who may read page and API: the Host check on loopback, the token, and the headers of every answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::{Page, SecretSource};

/// Everything from here, nothing inline, no frames: a value that slipped through unescaped could still do nothing.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// The rules of one listener.
#[derive(Debug, Clone)]
pub(super) struct Access(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    listen: SocketAddr,
    token: Option<SecretSource>,
}

impl Access {
    /// The rules that a configuration asks for.
    pub(super) fn of(page: &Page) -> Self {
        let Page { listen, token } = page;
        Self(Arc::new(Rules { listen: *listen, token: token.clone() }))
    }

    /// Puts every route behind the rules.
    pub(super) fn protect(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(self, check))
    }

    fn refusal(&self, request: &Request) -> Option<Response> {
        let rules = &self.0;
        if rules.listen.ip().is_loopback() && !is_local(request) {
            // A page of another site whose name was rebound to 127.0.0.1 shows its own name here.
            let text = "this page answers to localhost only\n";
            return Some((StatusCode::MISDIRECTED_REQUEST, text).into_response());
        }
        let source = rules.token.as_ref()?;
        let token = match source.read() {
            Ok(token) => token,
            Err(error) => {
                tracing::error!(%error, key = "page.token", "nobody can read the page");
                let text = "the token of this page cannot be read; the log says why\n";
                return Some((StatusCode::SERVICE_UNAVAILABLE, text).into_response());
            }
        };
        if presented(request.headers()).is_some_and(|given| same(&given, token.expose())) {
            return None;
        }
        let challenge = [
            (
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"fleetwright\", charset=\"UTF-8\""),
            ),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        let text = "a token is needed: as bearer token, or as the password with any user name\n";
        Some((StatusCode::UNAUTHORIZED, challenge, text).into_response())
    }
}

async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let mut response = match access.refusal(&request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the request names this machine.
fn is_local(request: &Request) -> bool {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = named.or_else(|| request.uri().authority().map(|authority| authority.as_str()))
    else {
        return false;
    };
    let Ok(authority) = authority.parse::<axum::http::uri::Authority>() else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The token of a request, as bearer token or as the password of HTTP basic.
pub(super) fn presented(headers: &HeaderMap) -> Option<String> {
    let (scheme, value) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

/// Compares in a time that depends on neither of the two.
pub(super) fn same(given: &str, wanted: &str) -> bool {
    Sha256::digest(given.as_bytes()).as_slice().ct_eq(Sha256::digest(wanted.as_bytes()).as_slice()).into()
}
