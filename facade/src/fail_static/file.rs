//! Format of the file: one line of JSON that describes the rest, then the entries, then the documents. The mark is a separate
//! file: the last time at which the same content was known to be current.

use bytes::Bytes;
use portico_machinery::digest::sha256_hex;
use portico_proto::convert::Version;
use serde::{Deserialize, Serialize};

/// Format version that this build reads and writes.
const FORMAT: u32 = 2;

/// Saved configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// Version of the configuration.
    pub version: Version,
    /// Time at which it was known to be current, in Unix seconds: a copy of the file is as old as its original.
    pub current_at: i64,
    /// Encoded entries.
    pub entries: Bytes,
    /// Documents by hash.
    pub documents: Vec<(String, Bytes)>,
}

/// Error of a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read.
    #[error("{}", portico_gostd::os::error_text(.0))]
    Io(#[from] std::io::Error),
    /// The first line is not a header.
    #[error("not a state file: {0}")]
    Header(String),
    /// The file was written by a newer build.
    #[error("unsupported format version {0}")]
    Format(u32),
    /// The file is truncated or modified.
    #[error("the content does not match its checksum")]
    Checksum,
    /// The file belongs to another store.
    #[error("the file belongs to another store")]
    OtherStore,
    /// The time in the file is in the future, so the clock or the file is wrong and its age is unknown.
    #[error("the time in the file is in the future: check the clock of this machine")]
    Future,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    store_id: String,
    epoch: String,
    revision: i64,
    current_at: i64,
    /// Hash of everything after the first line.
    sha256: String,
    entries: usize,
    documents: Vec<(String, usize)>,
}

impl SavedState {
    /// Encodes the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut content = self.entries.to_vec();
        for (_, document) in &self.documents {
            content.extend_from_slice(document);
        }
        let header = Header {
            format: FORMAT,
            store_id: self.version.store_id.clone(),
            epoch: self.version.epoch.clone(),
            revision: self.version.revision,
            current_at: self.current_at,
            sha256: sha256_hex(&content),
            entries: self.entries.len(),
            documents: self.documents.iter().map(|(hash, bytes)| (hash.clone(), bytes.len())).collect(),
        };
        // Serialization of strings and numbers does not fail.
        let mut file = serde_json::to_vec(&header).unwrap_or_default();
        file.push(b'\n');
        file.append(&mut content);
        file
    }

    /// Decodes the file.
    ///
    /// # Errors
    /// [`StateError`] for anything but a complete file in this format.
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let end = bytes.iter().position(|b| *b == b'\n').ok_or(StateError::Checksum)?;
        let header: Header =
            serde_json::from_slice(&bytes[..end]).map_err(|e| StateError::Header(e.to_string()))?;
        if header.format != FORMAT {
            return Err(StateError::Format(header.format));
        }
        let mut content = Bytes::copy_from_slice(&bytes[end + 1..]);
        let lengths = header.documents.iter().map(|(_, n)| *n).chain([header.entries]);
        let total = lengths.into_iter().try_fold(0usize, usize::checked_add);
        if total != Some(content.len()) || sha256_hex(&content) != header.sha256 {
            return Err(StateError::Checksum);
        }
        let entries = content.split_to(header.entries);
        let documents = header.documents.into_iter().map(|(hash, n)| (hash, content.split_to(n))).collect();
        let Header { store_id, epoch, revision, current_at, .. } = header;
        Ok(Self { version: Version { store_id, epoch, revision }, current_at, entries, documents })
    }
}

/// Record that a state was current later than at the time it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Store of the state; a mark does not apply to other states.
    pub store_id: String,
    /// Epoch of the state, see [`Version::epoch`].
    pub epoch: String,
    /// [`SavedState::current_at`] of the state when it was written.
    pub written_at: i64,
    /// Time at which the state was known to be current.
    pub current_at: i64,
}

impl Mark {
    /// Latest time at which the state was known to be current; the mark counts only if it belongs to the state.
    #[must_use]
    pub fn current_at(&self, state: &SavedState) -> i64 {
        let belongs_to_state = self.store_id == state.version.store_id
            && self.epoch == state.version.epoch
            && self.written_at == state.current_at;
        if belongs_to_state { self.current_at.max(state.current_at) } else { state.current_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state() -> SavedState {
        SavedState {
            version: Version { store_id: "s".into(), epoch: "e".into(), revision: 7 },
            current_at: 1_700_000_000,
            entries: Bytes::from_static(b"entries\n"),
            documents: vec![("aa".into(), Bytes::from_static(b"{}")), ("bb".into(), Bytes::new())],
        }
    }

    #[test]
    fn encoded_states_are_decoded() {
        assert_eq!(SavedState::decode(&state().encode()).unwrap(), state());
    }

    #[test]
    fn a_mark_applies_to_its_own_state_only() {
        let mark = Mark {
            store_id: "s".into(),
            epoch: "e".into(),
            written_at: 1_700_000_000,
            current_at: 1_700_000_060,
        };
        assert_eq!(mark.current_at(&state()), 1_700_000_060);
        let older = SavedState { current_at: 1_600_000_000, ..state() };
        assert_eq!(mark.current_at(&older), 1_600_000_000);
        let other = SavedState { version: Version { store_id: "t".into(), ..state().version }, ..state() };
        assert_eq!(mark.current_at(&other), 1_700_000_000);
    }

    #[test]
    fn a_newer_format_is_refused_with_its_version() {
        let file = String::from_utf8(state().encode()).unwrap().replace("\"format\":2", "\"format\":9");
        assert!(matches!(SavedState::decode(file.as_bytes()), Err(StateError::Format(9))));
    }

    proptest! {
        #[test]
        fn a_file_cut_or_changed_anywhere_is_refused(at in 0usize..1000, change in 1u8..) {
            let whole = state().encode();
            let at = at % whole.len();
            prop_assert!(SavedState::decode(&whole[..at]).is_err());
            let mut changed = whole;
            changed[at] ^= change;
            if let Ok(read) = SavedState::decode(&changed) {
                // The checksum covers everything but the names in the header.
                prop_assert_eq!(read.entries, state().entries);
            }
        }
    }
}
