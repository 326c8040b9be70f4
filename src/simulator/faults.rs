//! Faults on order: which calls go wrong, and how. Chance comes from the seed, so a run replays exactly.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::call::{Call, Doom, Service};
use super::record::parameters_digest;
use super::world::{digest, fraction};
use crate::api::{AccountId, Region};

/// A rule: the calls it means, and what happens to them. Absent conditions hold for every call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRule {
    /// Service.
    pub service: Option<Service>,
    /// Operation, with `*` for any characters, e.g. `Create*`.
    pub operation: Option<String>,
    /// Account.
    pub account: Option<AccountId>,
    /// Region.
    pub region: Option<Region>,
    /// Only calls that change resources, or only those that do not.
    pub mutating: Option<bool>,
    /// Only from this matching call on, counted from 1.
    pub from: Option<u64>,
    /// At most this many times.
    pub times: Option<u64>,
    /// With this probability (0 to 1).
    pub probability: Option<f64>,
    /// Whether `from` and `times` count each distinct call by itself, told by its account, operation and
    /// parameters without tags, and not all of them together.
    pub each: bool,
    /// What happens.
    pub action: FaultAction,
}

/// What happens to a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum FaultAction {
    /// It is refused and has no effect.
    Error {
        /// HTTP status.
        status: u16,
        /// AWS's code.
        code: String,
        /// Message.
        #[serde(default)]
        message: String,
    },
    /// It is throttled, in the words of its service.
    #[default]
    Throttle,
    /// Its answer takes this many seconds of simulated time.
    Latency {
        /// Seconds.
        seconds: f64,
    },
    /// The connection breaks, before or after the call took effect.
    Reset {
        /// Whether the call took effect: the answer is lost.
        after: bool,
    },
    /// It succeeds, but what it creates comes up broken.
    Doom(Doom),
    /// What it writes is seen only after this many seconds.
    Lag {
        /// Seconds.
        seconds: f64,
    },
    /// A process is killed with SIGKILL, before or after the call took effect; the caller gets no answer.
    /// After a call that is refused there is no effect: it is answered, and not counted.
    Kill {
        /// Process id.
        process: u32,
        /// Whether the call took effect.
        after: bool,
    },
}

/// The rules in force.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Armed>,
    added: u64,
}

#[derive(Debug)]
struct Armed {
    number: u64,
    rule: FaultRule,
    /// By the call's digest; one for all where the rule does not count each by itself.
    counts: BTreeMap<String, Count>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    matched: u64,
    fired: u64,
}

impl Faults {
    /// Adds a rule; its number names it.
    pub(crate) fn add(&mut self, rule: FaultRule) -> u64 {
        self.added += 1;
        self.rules.push(Armed { number: self.added, rule, counts: BTreeMap::new() });
        self.added
    }

    /// Gives a rule another content; what it has counted stays. Answers whether there is such a rule.
    pub(crate) fn replace(&mut self, number: u64, rule: FaultRule) -> bool {
        let armed = self.rules.iter_mut().find(|armed| armed.number == number);
        armed.map(|armed| armed.rule = rule).is_some()
    }

    /// Removes all rules, or one.
    pub(crate) fn clear(&mut self, number: Option<u64>) {
        self.rules.retain(|armed| number.is_some_and(|number| armed.number != number));
    }

    /// Rules with their numbers and how often they fired.
    pub(crate) fn list(&self) -> impl Iterator<Item = (u64, &FaultRule, u64)> {
        let fired = |armed: &Armed| armed.counts.values().map(|count| count.fired).sum();
        self.rules.iter().map(move |armed| (armed.number, &armed.rule, fired(armed)))
    }

    /// What happens to this call, in the order of the rules.
    pub(crate) fn strike(&mut self, seed: u64, call: &Call, mutating: bool) -> Vec<FaultAction> {
        let mut actions = Vec::new();
        for armed in &mut self.rules {
            if !armed.rule.means(call, mutating) {
                continue;
            }
            let count = armed.counts.entry(armed.rule.counted_as(call)).or_default();
            count.matched += 1;
            let early = armed.rule.from.is_some_and(|from| count.matched < from);
            let spent = armed.rule.times.is_some_and(|times| count.fired >= times);
            let spared = armed.rule.probability.is_some_and(|probability| {
                let parts = [seed.to_be_bytes(), armed.number.to_be_bytes(), count.matched.to_be_bytes()];
                fraction(&digest(&[&parts[0], &parts[1], &parts[2]])) >= probability
            });
            if !early && !spent && !spared {
                count.fired += 1;
                actions.push(armed.rule.action.clone());
            }
        }
        actions
    }

    /// The call was refused: what was to happen after its effect did not, and waits for the next one.
    pub(crate) fn without_effect(&mut self, call: &Call, mutating: bool) {
        let after = |rule: &FaultRule| matches!(rule.action, FaultAction::Kill { after: true, .. });
        for armed in self.rules.iter_mut().filter(|armed| after(&armed.rule)) {
            if armed.rule.means(call, mutating)
                && let Some(count) = armed.counts.get_mut(&armed.rule.counted_as(call))
                && count.fired > 0
            {
                count.matched -= 1;
                count.fired -= 1;
            }
        }
    }
}

impl FaultRule {
    /// Makes a rule for every call of an operation.
    pub fn on(operation: &str, action: FaultAction) -> Self {
        Self { operation: Some(operation.into()), action, ..Self::default() }
    }

    /// Limits how often it happens.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Under which name this rule counts a call.
    fn counted_as(&self, call: &Call) -> String {
        if !self.each {
            return String::new();
        }
        let mut parameters = call.parameters.clone();
        if let Some(members) = parameters.as_object_mut() {
            members.retain(|name, _| !name.to_ascii_lowercase().starts_with("tag"));
        }
        format!("{} {} {}", call.account, call.operation, parameters_digest(&parameters))
    }

    fn means(&self, call: &Call, mutating: bool) -> bool {
        self.service.is_none_or(|service| service == call.service)
            && self.operation.as_ref().is_none_or(|pattern| wildcard(pattern, &call.operation))
            && self.account.as_ref().is_none_or(|account| *account == call.account)
            && self.region.as_ref().is_none_or(|region| *region == call.region)
            && self.mutating.is_none_or(|wanted| wanted == mutating)
    }
}

/// Whether a text matches a pattern with `*` for any characters and `?` for one.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                retry = Some((at, seen));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || Some(wanted) == text.get(seen) => {
                at += 1;
                seen += 1;
            }
            _ => match retry {
                Some((star, start)) => {
                    retry = Some((star, start + 1));
                    at = star + 1;
                    seen = start + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("Create*", "CreateVpc", true),
            ("Create*", "DeleteVpc", false),
            ("*a*b", "xxaxxbxb", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("*", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(wildcard(pattern, text), expected, "{pattern} {text}");
        }
    }
}
