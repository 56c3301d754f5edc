//! Candidates for a lease, and the order of preference among them (upstream's `election.go`).

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Object, time};
use semver::Version;

/// Name of the strategy that this controller implements.
pub(super) const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";
/// Time in seconds since the last renewal for which a candidate is valid (`leaseCandidateValidDuration`).
pub(super) const VALID_SECONDS: i64 = 30 * 60;

/// The content of a LeaseCandidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) strategy: String,
    /// Time of the last ping.
    pub(super) ping_time: Option<Timestamp>,
    /// Time of the last renewal, which is the response to a ping.
    pub(super) renew_time: Timestamp,
    binary_version: Option<Version>,
    emulation_version: Option<Version>,
    creation_time: Option<Timestamp>,
}

impl Candidate {
    /// Decodes a LeaseCandidate; `None` if it has never renewed, or if the last renewal is too old (`isLeaseCandidateExpired`).
    pub(super) fn parse_valid(object: &Object, now: Timestamp) -> Option<Self> {
        let spec = |field| object.at(&["spec", field]);
        let renew_time = spec_time(object, "renewTime")?;
        let valid =
            renew_time.checked_add(SignedDuration::from_secs(VALID_SECONDS)).is_ok_and(|end| end >= now);
        valid.then(|| Self {
            name: object.name().to_owned(),
            strategy: spec("strategy").str().to_owned(),
            ping_time: spec_time(object, "pingTime"),
            renew_time,
            binary_version: parse_tolerant(spec("binaryVersion").str()),
            emulation_version: parse_tolerant(spec("emulationVersion").str()),
            creation_time: object.creation_timestamp().and_then(time::parse),
        })
    }

    /// Returns true if the candidate has not responded to the last ping.
    pub(super) fn has_pending_ping(&self) -> bool {
        self.ping_time.is_some_and(|pinged| self.renew_time < pinged)
    }

    /// Orders by emulation version, then binary version, then age: older ones come first.
    fn compare(&self, other: &Self) -> Ordering {
        precedence(self.emulation_version.as_ref(), other.emulation_version.as_ref())
            .then_with(|| precedence(self.binary_version.as_ref(), other.binary_version.as_ref()))
            .then_with(|| {
                if self.creation_time > other.creation_time { Ordering::Greater } else { Ordering::Less }
            })
    }
}

/// Returns true if a LeaseCandidate has not responded to the last ping: an election is in progress.
pub(super) fn is_pending(object: &Object) -> bool {
    match (spec_time(object, "pingTime"), spec_time(object, "renewTime")) {
        (Some(pinged), Some(renewed)) => renewed < pinged,
        _ => false,
    }
}

/// Returns the candidate that the strategy `OldestEmulationVersion` elects (`pickBestLeaderOldestEmulationVersion`).
pub(super) fn oldest<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Option<&'a Candidate> {
    let eligible =
        candidates.into_iter().filter(|c| c.emulation_version.is_some() && c.binary_version.is_some());
    eligible.reduce(|best, next| if best.compare(next) == Ordering::Greater { next } else { best })
}

/// Returns the strategy of the candidates with the newest binary, which must be equal (`pickBestStrategy`).
pub(super) fn strategy<'a>(candidates: &[&'a Candidate]) -> Result<&'a str, String> {
    let Some((first, rest)) = candidates.split_first() else { return Err("no candidates".to_owned()) };
    let mut newest: &Candidate = first;
    for &next in rest {
        match precedence(newest.binary_version.as_ref(), next.binary_version.as_ref()) {
            Ordering::Less => newest = next,
            Ordering::Equal if newest.strategy != next.strategy => {
                return Err(format!(
                    "candidates {:?}, {:?} at same binary version but received differing strategies {}, {}",
                    newest.name, next.name, newest.strategy, next.strategy
                ));
            }
            _ => {}
        }
    }
    Ok(&newest.strategy)
}

/// Returns a time of the spec.
pub(super) fn spec_time(object: &Object, field: &str) -> Option<Timestamp> {
    object.at(&["spec", field]).opt_str().and_then(time::parse)
}

/// Compares versions, ignoring build metadata; a missing version counts as 0.0.0.
fn precedence(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    const ZERO: Version = Version::new(0, 0, 0);
    a.unwrap_or(&ZERO).cmp_precedence(b.unwrap_or(&ZERO))
}

/// Parses a version, also in forms such as `v1.36` and `1.036.0` (upstream's `semver.ParseTolerant`).
fn parse_tolerant(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return None;
    }
    parts.resize(3, "0".to_owned());
    Version::parse(&parts.join(".")).ok()
}

fn without_zeros(part: &str) -> String {
    let bare = part.trim_start_matches('0');
    if part.len() > 1 && !bare.starts_with(|first: char| first.is_ascii_digit()) {
        format!("0{bare}")
    } else if part.len() > 1 {
        bare.to_owned()
    } else {
        part.to_owned()
    }
}

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
