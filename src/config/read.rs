//! Each section of the configuration: its keys, defaults and rules.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::Value;

use super::walk::{Section, Walk};
use super::{
    Aws, Config, Fleet, Git, GitAuth, GitRevision, Guard, Kubernetes, Log, LogFormat, Mode, Observe, Page,
    Protection, SecretSource, Source, UnmanagedKinds, Webhook,
};
use crate::diagnostic::{Diagnostic, Location};
use crate::yaml::{self, Document, Limits};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// The configuration of a text, and all keys that were asked for.
pub(super) fn config(file: &str, text: &str) -> (Result<Config, Vec<Diagnostic>>, BTreeSet<String>) {
    let parsed = yaml::parse(file, text, &Limits { max_documents: 2, ..Limits::default() });
    let mut findings = parsed.diagnostics;
    let mut documents = parsed.documents.into_iter();
    let document = documents.next().unwrap_or_else(|| Document::without_positions(Value::Null));
    if let Some(second) = documents.next() {
        let finding =
            Diagnostic::error("bad-config", "the configuration is one document, and this is a second");
        findings.push(finding.at(second.position("").in_file(file)).with_help("remove the `---`"));
    }
    if !matches!(document.value, Value::Object(_) | Value::Null) {
        let whole_file = Location { file: file.to_owned(), line: 1, column: 1 };
        findings.push(Diagnostic::error("bad-config", "the configuration must be a map").at(whole_file));
    }
    let broken = findings.iter().any(Diagnostic::is_error);

    let walk = Walk::new(file, &document);
    let config = root(walk.root());
    let (more, keys) = walk.finish();
    if !broken {
        // What a broken document says is not worth a second complaint.
        findings.extend(more);
    }
    match config {
        Some(config) if !findings.iter().any(Diagnostic::is_error) => (Ok(config), keys),
        _ => (Err(findings), keys),
    }
}

fn root(mut root: Section<'_>) -> Option<Config> {
    if !root.has("fleet") {
        root.error("", "`fleet.id` is missing", "add `fleet:` with an `id:` below it");
    }
    let fleet = fleet(root.section("fleet"));
    if !root.has("source") {
        root.error("", "`source` is missing", "add `source:` with `git:` or `directory:` below it");
    }
    let source = source(root.section("source"));

    let mut data = root.section("data");
    let data_directory = data.path("directory").unwrap_or_else(|| data.relative(".fleetwright"));
    data.finish();

    let aws = aws(root.section("aws"));
    let clock_speed = clock(root.section("clock"), &aws);
    let mode =
        root.choice("mode", &[("reconcile", Mode::Reconcile), ("observe", Mode::Observe)], Mode::Reconcile);
    let observe = observe(root.section("observe"));
    let kinds = [("hold", UnmanagedKinds::Hold), ("store", UnmanagedKinds::Store)];
    let unmanaged_kinds = root.choice("unmanagedKinds", &kinds, UnmanagedKinds::Hold);

    let mut section = root.section("protection");
    let protection = Protection {
        clusters: section.flag("clusters", true),
        vpcs: section.flag("vpcs", true),
        keys: section.flag("keys", true),
    };
    section.finish();

    let mut section = root.section("guard");
    let guard = Guard {
        max_removals: section.whole_number("maxRemovals", 5, 1_000_000) as usize,
        max_percent: section.whole_number("maxPercent", 20, 100) as u8,
    };
    section.finish();

    let mut section = root.section("resync");
    let resync_interval = section.duration("interval", 10 * MINUTE, 10 * SECOND, DAY);
    section.finish();

    let webhook = webhook(root.section("webhook"));
    let page = page(root.section("page"));

    let mut section = root.section("metrics");
    let metrics_listen = listen(&mut section, 9090);
    section.finish();

    let kubernetes = kubernetes(root.section("kubernetes"));

    let mut section = root.section("export");
    let export_directory = section.path("directory");
    section.finish();

    let log = log(root.section("log"));
    distinct_addresses(&root, &webhook, &page, metrics_listen);
    root.finish();
    Some(Config {
        fleet: fleet?,
        source: source?,
        data_directory,
        aws,
        clock_speed,
        mode,
        observe,
        unmanaged_kinds,
        protection,
        guard,
        resync_interval,
        webhook,
        page,
        metrics_listen,
        kubernetes,
        export_directory,
        log,
    })
}

fn observe(mut section: Section<'_>) -> Observe {
    let accounts = section.parsed_list("accounts");
    let paths: Vec<String> = section.parsed_list("paths");
    let paths: Vec<String> = paths.iter().map(|path| path.trim_matches('/').to_owned()).collect();
    for path in &paths {
        if path.is_empty() || path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            let message = "`observe.paths` names no directory or file of the repository";
            let help = "write it as findings do, e.g. clusters/dev or clusters/dev/orders.yaml";
            section.error("paths", message, help);
        }
    }
    section.finish();
    Observe { accounts, paths }
}

fn fleet(mut section: Section<'_>) -> Option<Fleet> {
    section.require("id");
    let id = section.parsed("id");
    let default_namespace = section.text("defaultNamespace").unwrap_or("default").to_owned();
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let sound = (1..=63).contains(&default_namespace.len())
        && default_namespace.bytes().all(inner)
        && !default_namespace.starts_with('-')
        && !default_namespace.ends_with('-');
    if !sound {
        let help = "use up to 63 of a-z, 0-9 and `-`, with a letter or digit at both ends";
        section.error("defaultNamespace", "`fleet.defaultNamespace` is no name of a namespace", help);
    }
    section.finish();
    Some(Fleet { id: id?, default_namespace })
}

fn source(mut section: Section<'_>) -> Option<Source> {
    let git_section = section.section("git");
    let by_git = git_section.is_present();
    let git = git(git_section);
    let mut directory = section.section("directory");
    let by_directory = directory.is_present();
    directory.require("path");
    let path = directory.path("path");
    directory.finish();
    if section.is_present() && by_git == by_directory {
        section.error("", "`source` must hold either `git` or `directory`", "keep one of the two");
    }
    section.finish();
    if by_git { git.map(Source::Git) } else { path.map(Source::Directory) }
}

fn git(mut section: Section<'_>) -> Option<Git> {
    let url = section.required_text("url");
    let transport = url.and_then(|url| transport(&section, url));
    let revision = revision(&mut section);
    let path = section.text("path").unwrap_or_default().trim_matches('/').to_owned();
    if path.split('/').any(|part| part == "..") {
        section.error("path", "`source.git.path` leads out of the repository", "write a path below its root");
    }
    let poll = section.duration("poll", MINUTE, SECOND, DAY);
    let timeout = section.duration("timeout", MINUTE, SECOND, HOUR);
    let auth = git_auth(section.section("auth"), transport);
    section.finish();
    Some(Git { url: url?.to_owned(), revision: revision?, path, poll, timeout, auth: auth? })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Http,
    Ssh,
    Local,
}

/// How a URL is reached. The message never repeats the URL: it may hold a password.
fn transport(section: &Section<'_>, url: &str) -> Option<Transport> {
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
    let authority = rest.split('/').next().unwrap_or(rest);
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let transport = match scheme {
        Some("https" | "http") => Transport::Http,
        Some("ssh") => Transport::Ssh,
        Some("file") => Transport::Local,
        None if url.starts_with('/') => Transport::Local,
        None if authority.contains('@') && authority.contains(':') => Transport::Ssh,
        _ => {
            let help = "write https://host/path, ssh://user@host/path, user@host:path or file:///path";
            section.error("url", "`source.git.url` is no address of a Git remote", help);
            return None;
        }
    };
    let secret_inside = match transport {
        Transport::Http => user.is_some(),
        Transport::Ssh => scheme.is_some() && user.is_some_and(|user| user.contains(':')),
        Transport::Local => false,
    };
    if secret_inside {
        let help = "remove them, and name a file or variable in `source.git.auth`";
        section.error("url", "`source.git.url` holds credentials, which would end up in logs", help);
        return None;
    }
    Some(transport)
}

fn revision(section: &mut Section<'_>) -> Option<GitRevision> {
    let Some(text) = section.text("revision") else { return Some(GitRevision::Default) };
    let (kind, name) = text.split_once(':').unwrap_or(("branch", text));
    let help = "write branch:main, tag:v1, commit:<forty hexadecimal digits> or ref:refs/heads/main";
    let sound =
        !name.is_empty() && !name.contains([' ', '~', '^', ':', '?', '*', '[', '\\']) && !name.contains("..");
    match kind {
        "branch" | "tag" | "ref" if !sound => {
            section.error(
                "revision",
                format!("`source.git.revision`: `{name}` is no name that Git allows"),
                help,
            );
            None
        }
        "branch" => Some(GitRevision::Branch(name.to_owned())),
        "tag" => Some(GitRevision::Tag(name.to_owned())),
        "ref" => Some(GitRevision::Reference(name.to_owned())),
        "commit" => match name.parse() {
            Ok(commit) => Some(GitRevision::Commit(commit)),
            Err(error) => {
                section.error("revision", format!("`source.git.revision`: {error}"), help);
                None
            }
        },
        _ => {
            section.error("revision", format!("`source.git.revision`: there is no kind `{kind}`"), help);
            None
        }
    }
}

fn git_auth(mut section: Section<'_>, transport: Option<Transport>) -> Option<GitAuth> {
    let username = section.path("usernameFile").map(SecretSource::File);
    let token = secret(&mut section, "tokenFile", "tokenEnv");
    let key_file = section.path("sshKeyFile");
    let known_hosts_file = section.path("knownHostsFile");
    let auth = match (token, key_file) {
        (Some(_), Some(_)) => {
            let help = "use a token with https:// and a key with ssh://";
            section.error("sshKeyFile", "`source.git.auth` holds both a token and an SSH key", help);
            None
        }
        (Some(token), None) => {
            if transport.is_some_and(|transport| transport != Transport::Http) {
                let help = "use an https:// address, or `sshKeyFile`";
                section.error("", "a token in `source.git.auth` works with an https:// address only", help);
            }
            Some(GitAuth::Token { username, token })
        }
        (None, Some(key_file)) => {
            if transport.is_some_and(|transport| transport != Transport::Ssh) {
                let help = "use an ssh:// address, or a token";
                section.error(
                    "sshKeyFile",
                    "`source.git.auth.sshKeyFile` works with an ssh:// address only",
                    help,
                );
            }
            // Without known host keys anybody on the way could hand us a fleet of their own.
            section.require("knownHostsFile");
            known_hosts_file.map(|known_hosts_file| GitAuth::SshKey { key_file, known_hosts_file })
        }
        (None, None) => {
            if username.is_some() {
                section.error(
                    "usernameFile",
                    "`source.git.auth.usernameFile` stands without a token",
                    "add `tokenFile`",
                );
            }
            Some(GitAuth::None)
        }
    };
    section.finish();
    auth
}

/// A secret that lies in a file or in an environment variable, but not in both.
fn secret(section: &mut Section<'_>, file_key: &'static str, env_key: &'static str) -> Option<SecretSource> {
    let file = section.path(file_key).map(SecretSource::File);
    let env = section.text(env_key).map(|name| SecretSource::Env(name.to_owned()));
    if file.is_some() && env.is_some() {
        let message = format!("`{}` stands beside `{file_key}`", section.name(env_key));
        section.error(env_key, message, "keep one of the two");
    }
    file.or(env)
}

fn aws(mut section: Section<'_>) -> Aws {
    let endpoint_url = section.text("endpointUrl").map(str::to_owned);
    if endpoint_url.as_deref().is_some_and(|url| host_of(url).is_none()) {
        let help = "write http://host:port or https://host:port";
        section.error("endpointUrl", "`aws.endpointUrl` is no address", help);
    }
    let aws = Aws {
        endpoint_url,
        default_region: section.parsed("defaultRegion"),
        use_own_role_in: section.parsed_list("useOwnRoleIn"),
        sweep_regions: section.parsed_list("sweepRegions"),
        // The bounds of STS AssumeRole's DurationSeconds.
        role_session_duration: section.duration("roleSessionDuration", HOUR, 15 * MINUTE, 12 * HOUR),
    };
    section.finish();
    aws
}

/// Host of an http address, without port and brackets.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.split(':').next()?,
    };
    (!host.is_empty() && !authority.contains('@')).then_some(host)
}

fn clock(mut section: Section<'_>, aws: &Aws) -> f64 {
    let speed = section.number("speed", 1.0, 0.001, 100_000.0);
    let host = aws.endpoint_url.as_deref().and_then(host_of);
    let loopback = host.is_some_and(|host| {
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    });
    if (speed - 1.0).abs() > f64::EPSILON && !loopback {
        let help = "remove it, or point `aws.endpointUrl` at a simulated AWS on this machine";
        section.error("speed", "`clock.speed` other than 1 is for a simulated AWS only", help);
    }
    section.finish();
    speed
}

fn webhook(mut section: Section<'_>) -> Webhook {
    let listen = listen(&mut section, 9080);
    let mut github_section = section.section("github");
    let github = secret(&mut github_section, "secretFile", "secretEnv");
    require_one(&github_section, github.is_some(), "secretFile");
    github_section.finish();
    let mut generic_section = section.section("generic");
    let generic = secret(&mut generic_section, "tokenFile", "tokenEnv");
    require_one(&generic_section, generic.is_some(), "tokenFile");
    generic_section.finish();
    section.finish();
    Webhook { listen, github, generic }
}

/// A receiver without a secret would believe anybody.
fn require_one(section: &Section<'_>, found: bool, key: &str) {
    if !found {
        section.require(key);
    }
}

fn page(mut section: Section<'_>) -> Page {
    let listen = listen(&mut section, 8080);
    let token = secret(&mut section, "tokenFile", "tokenEnv");
    if !listen.ip().is_loopback() && token.is_none() {
        let help = "add `tokenFile` or `tokenEnv`, or listen on 127.0.0.1";
        section.error("listen", format!("`page.listen` on {listen} would show the fleet to everybody"), help);
    }
    section.finish();
    Page { listen, token }
}

fn listen(section: &mut Section<'_>, port: u16) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], port));
    let Some(text) = section.text("listen") else { return default };
    text.parse().unwrap_or_else(|_| {
        let message = format!("`{}` is no address: `{text}`", section.name("listen"));
        section.error("listen", message, format!("write 127.0.0.1:{port}"));
        default
    })
}

/// Each listener has an address of its own (decision 27); port 0 asks for any free one.
fn distinct_addresses(root: &Section<'_>, webhook: &Webhook, page: &Page, metrics: SocketAddr) {
    let listeners = [("webhook", webhook.listen), ("page", page.listen), ("metrics", metrics)];
    for (index, (name, address)) in listeners.iter().enumerate() {
        let taken = listeners.iter().take(index).find(|(_, other)| other == address && address.port() != 0);
        if let Some((other, _)) = taken {
            let message = format!("`{name}.listen` and `{other}.listen` are both {address}");
            root.error(name, message, "give each a port of its own");
        }
    }
}

fn kubernetes(mut section: Section<'_>) -> Option<Kubernetes> {
    let in_cluster = section.flag("inCluster", false);
    let path = section.path("kubeconfig");
    let context = section.text("context").map(str::to_owned);
    let kubernetes = match (in_cluster, path) {
        (true, None) => Some(Kubernetes::InCluster),
        (false, Some(path)) => Some(Kubernetes::Kubeconfig { path, context: context.clone() }),
        (false, None) => None,
        (true, Some(_)) => {
            let message = "`kubernetes` holds both `inCluster` and `kubeconfig`";
            section.error("kubeconfig", message, "keep one of the two");
            None
        }
    };
    if context.is_some() && !matches!(kubernetes, Some(Kubernetes::Kubeconfig { .. })) {
        section.error(
            "context",
            "`kubernetes.context` stands without `kubeconfig`",
            "add it, or remove the context",
        );
    }
    section.finish();
    kubernetes
}

fn log(mut section: Section<'_>) -> Log {
    let formats = [("auto", LogFormat::Auto), ("human", LogFormat::Human), ("json", LogFormat::Json)];
    let format = section.choice("format", &formats, LogFormat::Auto);
    let level = section.text("level").unwrap_or("info").to_owned();
    let sound = level.split(',').all(|directive| {
        let word = directive.rsplit_once('=').map_or(directive, |(_, word)| word).trim();
        ["off", "error", "warn", "info", "debug", "trace"].contains(&word)
    });
    if !sound {
        let help =
            "write error, warn, info, debug or trace, or directives such as info,fleetwright::aws=debug";
        section.error("level", format!("`log.level` is no level: `{level}`"), help);
    }
    section.finish();
    Log { format, level }
}
