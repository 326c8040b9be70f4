//! Everything that exists in the simulated AWS: plain values in ordered maps, so that the whole can be copied,
//! saved, compared and replayed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::call::Call;
use super::durations::Durations;
use super::limits::Quotas;
use super::{ec2, eks, iam, kms};
use crate::api::{AccountId, Region};

/// The simulated AWS at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct World {
    /// Source of ids.
    pub ids: Ids,
    /// What shapes the world's behaviour.
    pub settings: Settings,
    /// Accounts; one comes into being with its first call.
    pub accounts: BTreeMap<AccountId, Account>,
    /// Credentials that were issued, by access key.
    pub credentials: BTreeMap<String, Credential>,
}

/// Settings that a replay of the journal must find as they were.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Service quotas.
    pub quotas: Quotas,
    /// How long things take.
    pub durations: Durations,
    /// Seconds until a new object can be described by its id.
    pub lag_ids: f64,
    /// Seconds until tags can be seen and filtered by.
    pub lag_tags: f64,
}

/// One account.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    /// IAM, which has no Region.
    pub iam: iam::State,
    /// The regional services.
    pub regions: BTreeMap<Region, Regional>,
}

/// One Region of one account.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Regional {
    /// Amazon EC2.
    pub ec2: ec2::State,
    /// Amazon EKS.
    pub eks: eks::State,
    /// AWS KMS.
    #[serde(default)]
    pub kms: kms::State,
}

/// Credentials that IAM or STS gave out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Credential {
    /// The account they act in.
    pub account: AccountId,
    /// ARN of the user or the role session.
    pub arn: String,
    /// Session token that must come with them.
    pub session_token: Option<String>,
    /// When they end.
    pub expires: Option<Timestamp>,
}

/// What one call works on, borrowed apart.
pub(crate) struct Scope<'a> {
    /// Source of ids.
    pub ids: &'a mut Ids,
    /// Settings.
    pub settings: &'a Settings,
    /// The caller's IAM.
    pub iam: &'a mut iam::State,
    /// EC2 in the call's Region.
    pub ec2: &'a mut ec2::State,
    /// EKS in the call's Region.
    pub eks: &'a mut eks::State,
    /// KMS in the call's Region.
    pub kms: &'a mut kms::State,
}

impl World {
    /// The parts of the world that a call works on, made if they are not there.
    pub(crate) fn scope(&mut self, call: &Call) -> Scope<'_> {
        let account = self.accounts.entry(call.account.clone()).or_default();
        let regional = account.regions.entry(call.region.clone()).or_default();
        Scope {
            ids: &mut self.ids,
            settings: &self.settings,
            iam: &mut account.iam,
            ec2: &mut regional.ec2,
            eks: &mut regional.eks,
            kms: &mut regional.kms,
        }
    }

    /// Lets time pass in the call's Region: what ended before `call.now` goes. Every transition depends
    /// on its own moment and never on when it is looked at, so a replay may skip the looking.
    pub(crate) fn advance(&mut self, call: &Call) {
        let scope = self.scope(call);
        eks::advance(scope.eks, scope.ec2, call.now);
        scope.ec2.advance(call.now);
    }
}

/// Ids as a function of the seed, the number of the call and the number of the id within it, so a replay
/// of some calls gives the same ids as the run of all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ids {
    seed: u64,
    call: u64,
    used: u32,
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, call: 0, used: 0 }
    }

    /// A sequence of its own for something that has an id.
    pub(crate) fn derived(id: &str) -> Self {
        Self::new(number(&digest(&[id.as_bytes()])))
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self, call: u64) {
        self.call = call;
        self.used = 0;
    }

    fn bytes(&mut self) -> [u8; 32] {
        self.used += 1;
        digest(&[&self.seed.to_be_bytes(), &self.call.to_be_bytes(), &self.used.to_be_bytes()])
    }

    /// Hexadecimal digits, at most 64.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        hex(&self.bytes()).chars().take(digits).collect()
    }

    /// An id in EC2's long form: `vpc-` and seventeen digits.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{}", self.hex(16))
    }

    /// A UUID.
    pub(crate) fn uuid(&mut self) -> String {
        uuid_text(&self.bytes())
    }

    /// Capital letters and digits as in access keys and unique ids.
    pub(crate) fn letters(&mut self, count: usize) -> String {
        const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let mut text = String::with_capacity(count);
        while text.len() < count {
            text.extend(self.bytes().iter().map(|byte| char::from(ALPHABET[usize::from(byte & 31)])));
        }
        text.truncate(count);
        text
    }

    /// A number below a bound (which must not be zero).
    pub(crate) fn number(&mut self, below: u64) -> u64 {
        number(&self.bytes()) % below.max(1)
    }
}

/// SHA-256 over parts, each with its length, so that no two lists of parts run together.
pub(crate) fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first eight bytes as a number.
pub(crate) fn number(bytes: &[u8; 32]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A fraction in `0.0..1.0`.
pub(crate) fn fraction(bytes: &[u8; 32]) -> f64 {
    (number(bytes) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Bytes in the shape of a random UUID.
pub(crate) fn uuid_text(bytes: &[u8; 32]) -> String {
    let text = hex(bytes);
    format!("{}-{}-4{}-a{}-{}", &text[0..8], &text[8..12], &text[13..16], &text[17..20], &text[20..32])
}
