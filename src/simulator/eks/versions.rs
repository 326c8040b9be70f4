//! The Kubernetes versions that EKS offers, and until when.

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::input::{invalid_parameter, page};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};

/// One minor version in AWS's calendar.
struct Release {
    minor: u32,
    released: Date,
    standard_ends: Date,
    extended_ends: Date,
}

const fn release(minor: u32, released: Date, standard_ends: Date, extended_ends: Date) -> Release {
    Release { minor, released, standard_ends, extended_ends }
}

/// Amazon EKS User Guide, "Kubernetes version lifecycle", as of mid-2026; the dates of 1.36 follow its usual
/// 14 and 26 months.
const CALENDAR: [Release; 7] = [
    release(30, date(2024, 5, 23), date(2025, 7, 23), date(2026, 7, 23)),
    release(31, date(2024, 9, 26), date(2025, 11, 26), date(2026, 11, 26)),
    release(32, date(2025, 1, 23), date(2026, 3, 23), date(2027, 3, 23)),
    release(33, date(2025, 5, 29), date(2026, 7, 29), date(2027, 7, 29)),
    release(34, date(2025, 10, 2), date(2026, 12, 2), date(2027, 12, 2)),
    release(35, date(2026, 1, 27), date(2027, 3, 27), date(2028, 3, 27)),
    release(36, date(2026, 6, 2), date(2027, 8, 2), date(2028, 8, 2)),
];

/// The minor of a cluster that asks for none.
const DEFAULT_MINOR: u32 = 35;

/// The simulator knows no later versions, so its newest three never leave support: it outlives its calendar.
const KEPT: usize = 3;

/// How a version is supported at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    Standard,
    Extended,
    None,
}

impl Support {
    fn name(self) -> &'static str {
        match self {
            Self::Standard => "STANDARD_SUPPORT",
            Self::Extended => "EXTENDED_SUPPORT",
            Self::None => "UNSUPPORTED",
        }
    }
}

fn moment(day: Date) -> Timestamp {
    day.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |zoned| zoned.timestamp())
}

fn support(index: usize, release: &Release, now: Timestamp) -> Support {
    if now < moment(release.standard_ends) || index + KEPT >= CALENDAR.len() {
        Support::Standard
    } else if now < moment(release.extended_ends) {
        Support::Extended
    } else {
        Support::None
    }
}

/// The version of a cluster that asks for none.
pub(super) fn default_version() -> String {
    format!("1.{DEFAULT_MINOR}")
}

/// The minor of a version like `1.34`.
pub(super) fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.parse().ok()
}

/// Refuses a version that cannot be created or upgraded to at this moment.
pub(super) fn check(version: &str, now: Timestamp) -> Result<u32, ApiError> {
    let offered = CALENDAR.iter().enumerate().any(|(index, release)| {
        Some(release.minor) == minor(version) && support(index, release, now) != Support::None
    });
    minor(version)
        .filter(|_| offered)
        .ok_or_else(|| invalid_parameter(format!("unsupported Kubernetes version {version}")))
}

/// EKS's own version of a control plane.
pub(super) fn platform_version(minor: u32) -> String {
    format!("eks.{}", (CALENDAR.last().map_or(36, |newest| newest.minor)).saturating_sub(minor) * 7 + 4)
}

/// The minors that exist in the calendar.
pub(super) fn minors() -> impl DoubleEndedIterator<Item = u32> {
    CALENDAR.iter().map(|release| release.minor)
}

/// `DescribeClusterVersions`.
pub(super) fn describe(call: &Call) -> Answer {
    let wanted = call.texts("clusterVersions");
    let default_only = call.flag("defaultOnly").unwrap_or(false);
    let all = call.flag("includeAll").unwrap_or(false);
    let status = call.text("versionStatus").or_else(|| call.text("status")).map(str::to_ascii_uppercase);
    let rows = CALENDAR.iter().enumerate().rev().filter_map(|(index, release)| {
        let version = format!("1.{}", release.minor);
        let support = support(index, release, call.now);
        let shown = if wanted.is_empty() {
            all || support != Support::None
        } else {
            wanted.contains(&version.as_str())
        };
        let fits = status.as_deref().is_none_or(|status| status == support.name());
        let default = release.minor == DEFAULT_MINOR;
        (shown && fits && (default || !default_only)).then(|| {
            let key = format!("{:04}", 9999 - release.minor);
            (key, row(release, &version, support, default))
        })
    });
    page(call, "clusterVersions", rows)
}

fn row(release: &Release, version: &str, support: Support, default: bool) -> Value {
    json!({
        "clusterVersion": version, "clusterType": "eks", "defaultVersion": default,
        "defaultPlatformVersion": platform_version(release.minor),
        "releaseDate": epoch(moment(release.released)),
        "endOfStandardSupportDate": epoch(moment(release.standard_ends)),
        "endOfExtendedSupportDate": epoch(moment(release.extended_ends)),
        "status": support.name().to_ascii_lowercase(), "versionStatus": support.name(),
        "kubernetesPatchVersion": format!("{version}.3"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn support_ends_by_the_calendar_but_not_for_the_newest() {
        let day = |year, month, day| moment(date(year, month, day));
        assert!(check("1.32", day(2027, 3, 1)).is_ok());
        assert!(check("1.32", day(2027, 4, 1)).is_err());
        assert!(check("1.36", day(2040, 1, 1)).is_ok());
        assert!(check("1.99", day(2026, 1, 1)).is_err());
        assert!(check("2.1", day(2026, 1, 1)).is_err());
    }
}
