//! Candidates for a lease as the election sees them, and which of two is better (upstream's `election.go`).

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Object, time};
use semver::Version;

/// The strategy that this controller elects by.
pub(super) const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";
/// A candidate that has not renewed for so long does not count (`leaseCandidateValidDuration`).
pub(super) const VALID_SECONDS: i64 = 30 * 60;

/// The content of a LeaseCandidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) strategy: String,
    /// When it was asked whether it is still there.
    pub(super) pinged: Option<Timestamp>,
    /// When it answered that last.
    pub(super) renewed: Timestamp,
    binary: Option<Version>,
    emulation: Option<Version>,
    created: Option<Timestamp>,
}

impl Candidate {
    /// Reads a LeaseCandidate; nothing when it has never renewed, or not for too long (`isLeaseCandidateExpired`).
    pub(super) fn valid(object: &Object, now: Timestamp) -> Option<Self> {
        let spec = |field| object.at(&["spec", field]);
        let renewed = moment(object, "renewTime")?;
        let valid = renewed.checked_add(SignedDuration::from_secs(VALID_SECONDS)).is_ok_and(|end| end >= now);
        valid.then(|| Self {
            name: object.name().to_owned(),
            strategy: spec("strategy").str().to_owned(),
            pinged: moment(object, "pingTime"),
            renewed,
            binary: tolerant(spec("binaryVersion").str()),
            emulation: tolerant(spec("emulationVersion").str()),
            created: object.creation_timestamp().and_then(time::parse),
        })
    }

    /// Whether it was asked and has not answered.
    pub(super) fn owes_an_answer(&self) -> bool {
        self.pinged.is_some_and(|pinged| self.renewed < pinged)
    }

    /// The older emulation version, then the older binary version, then the older object comes first.
    fn compare(&self, other: &Self) -> Ordering {
        precedence(self.emulation.as_ref(), other.emulation.as_ref())
            .then_with(|| precedence(self.binary.as_ref(), other.binary.as_ref()))
            .then_with(|| if self.created > other.created { Ordering::Greater } else { Ordering::Less })
    }
}

/// Whether a LeaseCandidate was asked and has not answered: an election is under way, it needs no other.
pub(super) fn is_pending(object: &Object) -> bool {
    match (moment(object, "pingTime"), moment(object, "renewTime")) {
        (Some(pinged), Some(renewed)) => renewed < pinged,
        _ => false,
    }
}

/// The candidate that the strategy `OldestEmulationVersion` elects (`pickBestLeaderOldestEmulationVersion`).
pub(super) fn oldest<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Option<&'a Candidate> {
    let able = candidates.into_iter().filter(|c| c.emulation.is_some() && c.binary.is_some());
    able.reduce(|best, next| if best.compare(next) == Ordering::Greater { next } else { best })
}

/// The strategy of those with the newest binary; they must agree (`pickBestStrategy`).
pub(super) fn strategy<'a>(candidates: &[&'a Candidate]) -> Result<&'a str, String> {
    let Some((first, rest)) = candidates.split_first() else { return Err("no candidates".to_owned()) };
    let mut newest: &Candidate = first;
    for &next in rest {
        match precedence(newest.binary.as_ref(), next.binary.as_ref()) {
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

/// A time in the spec.
pub(super) fn moment(object: &Object, field: &str) -> Option<Timestamp> {
    object.at(&["spec", field]).opt_str().and_then(time::parse)
}

/// What is no version counts as 0.0.0; what a version was built of does not count.
fn precedence(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    const ZERO: Version = Version::new(0, 0, 0);
    a.unwrap_or(&ZERO).cmp_precedence(b.unwrap_or(&ZERO))
}

/// Reads `v1.36` and `1.036.0` as well (upstream's `semver.ParseTolerant`).
fn tolerant(text: &str) -> Option<Version> {
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
