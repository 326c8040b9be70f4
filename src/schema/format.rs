//! The formats that the API server enforces on strings (`supportedVersionedFormats` of apiextensions);
//! every other format is for people and holds always.

use base64::Engine as _;

use super::pattern::matches;

/// Whether a text has a format.
pub(super) fn holds(format: &str, text: &str) -> bool {
    let is = |pattern: &str| matches(pattern, text) == Some(true);
    match format {
        // Both spellings are registered with OpenAPI's library.
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && is(r"^\d{4}-\d{2}-\d{2}$"),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "duration" => is_duration(text),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => text.parse::<ipnet::IpNet>().is_ok(),
        "mac" => is(
            r"^(?:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2})$",
        ),
        "uuid" => uuid::Uuid::parse_str(text).is_ok(),
        "uuid3" => is_uuid(text, 3),
        "uuid4" => is_uuid(text, 4),
        "uuid5" => is_uuid(text, 5),
        "hostname" => text.len() <= 255 && text.split('.').all(is_host_label),
        // An absolute URL or a path, as `url.ParseRequestURI` takes it.
        "uri" => !text.contains([' ', '"', '<', '>', '\\']) && is(r"^(?:/|[A-Za-z][A-Za-z0-9+.-]*:.)"),
        "email" => is(r"^[^@\s]+@[^@\s]+$"),
        "hexcolor" => is(r"^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "rgbcolor" => is(
            r"^rgb\(\s*(?:(?:[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*,\s*){2}(?:[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*\)$",
        ),
        "bsonobjectid" => is(r"^[0-9a-fA-F]{24}$"),
        "ssn" => is(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
        "creditcard" => is(r"^[\d -]{13,23}$") && luhn(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8s-short-name" => text.len() <= 63 && is(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        "k8s-long-name" => {
            text.len() <= 253 && is(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
        }
        _ => true,
    }
}

/// `1h30m` as Go writes it, or `3 days` as OpenAPI's library reads it besides.
fn is_duration(text: &str) -> bool {
    let go = r"^[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$";
    let words = r"^\d+\s*(?:ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)s?$";
    matches(go, text) == Some(true) || matches(words, text) == Some(true)
}

fn is_uuid(text: &str, version: usize) -> bool {
    uuid::Uuid::parse_str(text).is_ok_and(|uuid| uuid.get_version_num() == version)
}

fn is_host_label(label: &str) -> bool {
    matches(
        r"^[a-zA-Z0-9\x{80}-\x{10FFFF}]([a-zA-Z0-9\x{80}-\x{10FFFF}-]{0,61}[a-zA-Z0-9\x{80}-\x{10FFFF}])?$",
        label,
    ) == Some(true)
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// The check digit of card numbers.
fn luhn(text: &str) -> bool {
    let sum: u32 = digits(text)
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_isbn10(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let value = |(place, c): (usize, char)| {
        let digit = if place == 9 && c == 'X' { Some(10) } else { c.to_digit(10) };
        digit.map(|digit| digit as usize * (10 - place))
    };
    plain.len() == 10
        && plain
            .chars()
            .enumerate()
            .map(value)
            .try_fold(0, |sum, value| Some(sum + value?))
            .is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let digits = digits(&plain);
    let sum: u32 =
        digits.iter().enumerate().map(|(place, digit)| if place % 2 == 0 { *digit } else { digit * 3 }).sum();
    plain.len() == 13 && digits.len() == 13 && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_enforced_format_takes_and_refuses() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05Z", "2026-01-02"),
            ("datetime", "2026-01-02T03:04:05.5+01:00", "now"),
            ("date", "2026-02-28", "2026-02-30"),
            ("byte", "YWI=", "a-b"),
            ("duration", "1h30m", "1 fortnight"),
            ("duration", "3 days", "h"),
            ("duration", "-1.5s", "1"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/16", "10.0.0.0"),
            ("mac", "00:1b:44:11:3a:b7", "00:1b:44:11:3a"),
            ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810"),
            ("uuid4", "9b2a3c4e-0000-4000-8000-000000000000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            ("uuid3", "9b2a3c4e-0000-3000-8000-000000000000", "9b2a3c4e-0000-4000-8000-000000000000"),
            ("uuid5", "9b2a3c4e-0000-5000-8000-000000000000", "9b2a3c4e-0000-4000-8000-000000000000"),
            ("hostname", "db-1.example.com", "-db.example.com"),
            ("uri", "https://example.com/a", "example"),
            ("email", "a@example.com", "a"),
            ("hexcolor", "#fff", "#ffff"),
            ("rgbcolor", "rgb(0, 128, 255)", "rgb(0,0,256)"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
            ("ssn", "111-22-3333", "111"),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("isbn", "0-306-40615-2", "0-306-40615-3"),
            ("isbn10", "080442957X", "978-0-306-40615-7"),
            ("isbn13", "978-0-306-40615-7", "978-0-306-40615-8"),
            ("k8s-short-name", "a-1", "a.b"),
            ("k8s-long-name", "a.b", "A"),
        ] {
            assert!(holds(format, good), "{format}: {good}");
            assert!(!holds(format, bad), "{format}: {bad}");
        }
        assert!(holds("password", "anything") && holds("int-or-whatever", "anything"));
    }
}
