//! Talking to a remote: credentials, host keys, and texts without secrets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use git2::{CertificateCheckStatus, Cred, CredentialType, RemoteCallbacks};

use crate::config::{Secret, SecretSource};

/// How to authenticate with a remote.
#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// Not at all.
    #[default]
    None,
    /// HTTPS with a token; most hosts take any user name with it.
    Token {
        /// User name, e.g. `x-access-token`.
        username: String,
        /// Where the token lies. It is read at each fetch, so a rotated token needs no restart.
        token: SecretSource,
    },
    /// SSH with a private key. The host must be known.
    Ssh {
        /// File with the private key.
        key: PathBuf,
        /// Passphrase of the key.
        passphrase: Option<Secret>,
        /// File with the keys of known hosts, as OpenSSH writes it.
        known_hosts: PathBuf,
    },
}

/// A URL without user name, password, query and fragment.
pub fn redact_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// The text with everything secret about the remote taken out.
pub(super) fn redact_text(text: &str, url: &str, credentials: &Credentials) -> String {
    let mut secrets: Vec<String> = Vec::new();
    match credentials {
        Credentials::Token { token, .. } => {
            secrets.extend(token.read().map(|token| token.expose().to_owned()));
        }
        Credentials::Ssh { passphrase: Some(passphrase), .. } => secrets.push(passphrase.expose().to_owned()),
        Credentials::None | Credentials::Ssh { .. } => {}
    }
    let mut text = text.replace(url, &redact_url(url));
    if let Some((_, rest)) = url.split_once("://")
        && let Some((userinfo, _)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
    {
        text = text.replace(&format!("{userinfo}@"), "");
        if let Some((_, password)) = userinfo.split_once(':') {
            secrets.push(password.to_owned());
            secrets.push(percent_encoding::percent_decode_str(password).decode_utf8_lossy().into_owned());
        }
    }
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret.as_str(), "<secret>");
    }
    text
}

/// Callbacks that authenticate, check hosts, report progress and stop when told to.
pub(super) fn callbacks<'a>(
    url: &'a str,
    credentials: &'a Credentials,
    stop: &'a Arc<AtomicBool>,
) -> RemoteCallbacks<'a> {
    let mut callbacks = RemoteCallbacks::new();
    let stopped = || stop.load(Ordering::Relaxed);
    let mut received = 0;
    callbacks.transfer_progress(move |progress| {
        if progress.received_objects() >= received + 10_000 {
            received = progress.received_objects();
            tracing::debug!(received, total = progress.total_objects(), "receiving objects");
        }
        !stopped()
    });
    callbacks.sideband_progress(move |_| !stopped());
    callbacks.update_tips(move |_, _, _| !stopped());
    // libgit2 asks again for as long as the host refuses: once is enough.
    let mut offered = false;
    callbacks.credentials(move |_, username, allowed| {
        if stopped() {
            return Err(git2::Error::from_str("stopped"));
        }
        if allowed.contains(CredentialType::USERNAME) {
            return Cred::username(username.unwrap_or("git"));
        }
        if std::mem::replace(&mut offered, true) {
            return Err(git2::Error::from_str("the host refused the configured credentials"));
        }
        match credentials {
            Credentials::Token { username, token }
                if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) =>
            {
                let token = token.read().map_err(|error| git2::Error::from_str(&error.to_string()))?;
                Cred::userpass_plaintext(username, token.expose())
            }
            Credentials::Ssh { key, passphrase, .. } if allowed.contains(CredentialType::SSH_KEY) => {
                Cred::ssh_key(username.unwrap_or("git"), None, key, passphrase.as_ref().map(Secret::expose))
            }
            Credentials::None => {
                Err(git2::Error::from_str("the host asks for credentials and none are configured"))
            }
            Credentials::Token { .. } | Credentials::Ssh { .. } => Err(git2::Error::from_str(
                "the configured kind of credentials is not one that the host takes",
            )),
        }
    });
    callbacks.certificate_check(move |certificate, host| {
        let Some(key) = certificate.as_hostkey() else {
            // TLS: libgit2 has checked the chain against the system's roots.
            return Ok(CertificateCheckStatus::CertificatePassthrough);
        };
        let Credentials::Ssh { known_hosts, .. } = credentials else {
            return Err(git2::Error::from_str("an SSH remote needs an SSH key and known hosts"));
        };
        check_host(known_hosts, url, host, key.hostkey().unwrap_or_default())
            .map(|()| CertificateCheckStatus::CertificateOk)
            .map_err(|message| git2::Error::from_str(&message))
    });
    callbacks
}

fn check_host(file: &Path, url: &str, host: &str, key: &[u8]) -> Result<(), String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let port = url.split_once("://").and_then(|(_, rest)| {
        rest.split('/')
            .next()
            .unwrap_or_default()
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse::<u16>().ok())
    });
    if is_known_host(&text, host, port, key) {
        Ok(())
    } else {
        Err(format!(
            "the key of host {host} is not in {}: verify it and add it there (hashed host names are not read)",
            file.display()
        ))
    }
}

/// Whether a known_hosts file (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT") lists the key for the host.
pub(super) fn is_known_host(text: &str, host: &str, port: Option<u16>, key: &[u8]) -> bool {
    if key.is_empty() {
        return false;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(key);
    let name = match port {
        None | Some(22) => host.to_owned(),
        Some(port) => format!("[{host}]:{port}"),
    };
    let mut known = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let (Some(hosts), Some(_), Some(listed)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if listed != encoded || !hosts.split(',').any(|pattern| pattern == name) {
            continue;
        }
        match marker {
            Some("@revoked") => return false,
            Some(_) => {}
            None => known = true,
        }
    }
    known
}
