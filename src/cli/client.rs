//! Asks a running daemon through its JSON API. It only reads, as the API does.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::{StatusCode, Url};
use serde_json::Value;

use crate::api::definition::DEFINITION_KIND;
use crate::api::{ack, core, names, plural};
use crate::config::{Page, SecretSource};
use crate::diagnostic::nearest;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Where the answer only helps.
const TIMEOUT_BESIDE: Duration = Duration::from_secs(3);

/// Which daemon.
#[derive(Debug, Args)]
pub(super) struct Server {
    /// Address of the daemon's page and API.
    #[arg(long, value_name = "URL", env = "FLEETWRIGHT_SERVER", default_value = "http://127.0.0.1:8080")]
    server: Url,
    /// File with the bearer token, where `page.tokenFile` or `page.tokenEnv` asks for one.
    #[arg(long, value_name = "FILE", env = "FLEETWRIGHT_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// A connection to a daemon.
pub(super) struct Client {
    http: reqwest::Client,
    server: Url,
    token: Option<String>,
}

/// A kind of objects, as the API filters by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    /// API group; empty for the core group.
    pub(super) group: String,
    /// Kind in CamelCase.
    pub(super) kind: String,
}

impl Kind {
    fn filter(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }
}

impl Server {
    pub(super) fn connect(self) -> anyhow::Result<Client> {
        let token = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the token in {}", path.display()))?;
                Some(text.trim().to_owned())
            }
            None => None,
        };
        Client::to(self.server, token, TIMEOUT)
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Client {
    fn to(server: Url, token: Option<String>, timeout: Duration) -> anyhow::Result<Self> {
        let mut builder = reqwest::Client::builder().timeout(timeout);
        if server.host_str().is_some_and(is_loopback) {
            builder = builder.no_proxy();
        }
        Ok(Self { http: builder.build()?, server, token })
    }

    /// A connection to the daemon of a configuration on this machine, which may not run. Nobody waits long for it.
    pub(super) fn beside(page: &Page) -> anyhow::Result<Self> {
        let mut address = page.listen;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                Ipv4Addr::LOCALHOST.into()
            } else {
                Ipv6Addr::LOCALHOST.into()
            });
        }
        let token = page.token.as_ref().map(SecretSource::read).transpose()?;
        let token = token.map(|token| token.expose().to_owned());
        Self::to(format!("http://{address}").parse()?, token, TIMEOUT_BESIDE)
    }

    /// Reads one answer; `None` when the daemon knows no such thing.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Option<Value>> {
        let mut url = self.server.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["api", "v1"]).extend(path);
            }
            Err(()) => bail!("`{}` is no address of a server", self.server),
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.get(url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let server = &self.server;
        let answer = request.send().await.map_err(reqwest::Error::without_url).with_context(|| {
            format!("cannot reach {server}: is a daemon running there? Name it with `--server` or FLEETWRIGHT_SERVER")
        })?;
        let status = answer.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            bail!("{server} wants a token: name its file with `--token-file`");
        }
        let text = answer.text().await.map_err(reqwest::Error::without_url)?;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status == StatusCode::NOT_FOUND && body.pointer("/error/message").is_some() {
            return Ok(None);
        }
        if !status.is_success() {
            let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or(text.trim());
            bail!("{server} answered {status}: {message}");
        }
        anyhow::ensure!(!body.is_null(), "{server} does not answer like a fleetwright daemon");
        Ok(Some(body))
    }

    /// As [`Client::get`], for what every daemon has.
    pub(super) async fn must(&self, path: &[&str]) -> anyhow::Result<Value> {
        let missing = || format!("{} does not answer like a fleetwright daemon", self.server);
        self.get(path, &[]).await?.with_context(missing)
    }

    /// All objects of a kind.
    pub(super) async fn objects(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let filter = kind.filter();
        let mut query = vec![("kind", filter.as_str())];
        query.extend(namespace.map(|namespace| ("namespace", namespace)));
        let list = self.get(&["objects"], &query).await?.unwrap_or_default();
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let named = |item: &Value| {
            let group = item.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let group = group.split_once('/').map_or("", |(group, _)| group);
            group == kind.group
                && name
                    .is_none_or(|name| item.pointer("/metadata/name").and_then(Value::as_str) == Some(name))
        };
        Ok(items.into_iter().filter(named).collect())
    }

    /// The kind that a person means: its name in any case, its plural, `kind.group`.
    pub(super) async fn kind(&self, word: &str) -> anyhow::Result<Kind> {
        let mut known: Vec<(Kind, String)> = Vec::new();
        for kind in ack::kinds() {
            known.push((
                Kind { group: kind.gvk.group.clone(), kind: kind.gvk.kind.clone() },
                plural(&kind.gvk.kind),
            ));
        }
        for kind in core::kinds() {
            known.push((
                Kind { group: kind.gvk.group.clone(), kind: kind.gvk.kind.clone() },
                plural(&kind.gvk.kind),
            ));
        }
        let definition = Kind { group: names::KRO_GROUP.into(), kind: DEFINITION_KIND.into() };
        known.push((definition.clone(), "definitions".into()));
        let approval = Kind { group: names::FLEETWRIGHT_GROUP.into(), kind: "Approval".into() };
        known.push((approval, "approvals".into()));
        if let Some(kind) = find(&known, word) {
            return Ok(kind);
        }
        for object in self.objects(&definition, None, None).await? {
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
            if let Some(kind) = text("/spec/schema/kind") {
                let group = text("/spec/schema/group").unwrap_or(names::KRO_GROUP);
                known.push((Kind { group: group.to_owned(), kind: kind.to_owned() }, plural(kind)));
            }
        }
        if let Some(kind) = find(&known, word) {
            return Ok(kind);
        }
        let plurals = known.iter().map(|(_, plural)| plural.as_str()).chain(["clusters", "sync", "orphans"]);
        match nearest(word, plurals) {
            Some(near) => bail!("nobody knows the kind `{word}`; did you mean `{near}`?"),
            None => bail!("nobody knows the kind `{word}`: it is none of AWS's, and no definition makes it"),
        }
    }
}

fn find(known: &[(Kind, String)], word: &str) -> Option<Kind> {
    let fits = |(kind, plural): &&(Kind, String)| {
        [kind.kind.as_str(), plural, &kind.filter(), &format!("{plural}.{}", kind.group)]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(word))
    };
    known.iter().find(fits).map(|(kind, _)| kind.clone())
}
