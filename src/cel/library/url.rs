//! URLs, as Kubernetes has them in CEL: read as Go reads them, which leaves everything as it is written.

use std::collections::{BTreeMap, HashMap};

use ::cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelString, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::opaque::opaque;
use super::{Arguments, failed, opaque_argument, text};

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Default)]
struct Url {
    scheme: String,
    /// With its port, IPv6 in brackets.
    host: String,
    path: String,
    query: String,
}
opaque!(Url, URL, "kubernetes.URL");

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(URL.to_owned())?;
    env.add_overload("url", "string_to_url", vec![STRING_TYPE], |args| {
        let url = Url::parse(text("url", &args, 0)?);
        url.map(CowVal::owned).map_err(|message| failed("url", message))
    })?;
    env.add_overload("isURL", "is_url", vec![STRING_TYPE], |args| {
        Ok(CowVal::owned(CelBool::from(Url::parse(text("isURL", &args, 0)?).is_ok())))
    })?;
    env.add_member_overload("getScheme", "url_get_scheme", URL.to_owned(), vec![], |args| {
        answer(&args, |url| &url.scheme)
    })?;
    env.add_member_overload("getHost", "url_get_host", URL.to_owned(), vec![], |args| {
        answer(&args, |url| &url.host)
    })?;
    env.add_member_overload("getHostname", "url_get_hostname", URL.to_owned(), vec![], |args| {
        answer(&args, |url| url.host_and_port().0)
    })?;
    env.add_member_overload("getPort", "url_get_port", URL.to_owned(), vec![], |args| {
        answer(&args, |url| url.host_and_port().1)
    })?;
    env.add_member_overload("getEscapedPath", "url_get_escaped_path", URL.to_owned(), vec![], |args| {
        answer(&args, |url| &url.path)
    })?;
    env.add_member_overload("getQuery", "url_get_query", URL.to_owned(), vec![], |args| {
        Ok(CowVal::owned(opaque_argument::<Url>("getQuery", &args, 0)?.parameters()))
    })
}

fn answer<'b, 'v>(
    args: &Arguments<'_, '_>,
    part: impl Fn(&Url) -> &str,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let url = opaque_argument::<Url>("url", args, 0)?;
    Ok(CowVal::owned(CelString::from(part(url).to_owned())))
}

impl Url {
    fn parse(written: &str) -> Result<Self, &'static str> {
        if written.is_empty() {
            return Err("the URL is empty");
        }
        if written.chars().any(|c| c.is_ascii_control()) {
            return Err("a URL holds no control characters");
        }
        let written = written.split_once('#').map_or(written, |(before, _)| before);
        let (scheme, rest) = scheme(written)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self { scheme, query: query.to_owned(), ..Self::default() };
        if !rest.starts_with('/') {
            // `mailto:somebody` has no parts that are asked for.
            return if url.scheme.is_empty() {
                Err("a URL begins with a scheme or with a slash")
            } else {
                Ok(url)
            };
        }
        let mut path = rest;
        if let Some(authority) = rest.strip_prefix("//").filter(|rest| !rest.starts_with('/')) {
            let (authority, after) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            check_host(host)?;
            host.clone_into(&mut url.host);
            path = after;
        }
        if !escapes_are_whole(path) {
            return Err("the path holds an escape that is none");
        }
        url.path = path.replace(' ', "%20");
        Ok(url)
    }

    fn host_and_port(&self) -> (&str, &str) {
        if let Some((address, after)) = self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            return (address, after.strip_prefix(':').unwrap_or_default());
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }

    fn parameters<'v>(&self) -> CelMap<'v> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(&self.query).unwrap_or_default();
        let mut values = BTreeMap::<String, Vec<Box<dyn Val + 'v>>>::new();
        for (name, value) in pairs {
            values.entry(name).or_default().push(Box::new(CelString::from(value)));
        }
        let entries = values.into_iter().map(|(name, values)| {
            let list: Box<dyn Val + 'v> = Box::new(CelList::from(values));
            (CelMapKey::from(name), list)
        });
        CelMap::from(entries.collect::<HashMap<_, _>>())
    }
}

/// The scheme in lower case, if there is one, and what follows.
fn scheme(written: &str) -> Result<(String, &str), &'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    match written.split_once(':') {
        Some(("", _)) => Err("the scheme is missing"),
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_part) =>
        {
            Ok((scheme.to_ascii_lowercase(), rest))
        }
        _ => Ok((String::new(), written)),
    }
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let port = if let Some(rest) = host.strip_prefix('[') {
        let Some((_, after)) = rest.split_once(']') else { return Err("a bracket is not closed") };
        after
    } else {
        host.find(':').and_then(|at| host.get(at..)).unwrap_or_default()
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !(port.is_empty() || port.starts_with(':')) || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err("the port is no number");
    }
    let is_bad =
        |c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    if host.contains(is_bad) || !escapes_are_whole(host) {
        return Err("the host holds characters that no host has");
    }
    Ok(())
}

/// Whether every `%` is followed by two hexadecimal digits.
fn escapes_are_whole(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}
