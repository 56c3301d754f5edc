//! Stored states in transfer: in blocks of a backup, and in responses of a control service.

use prost::Message;

use crate::codec;
use crate::key::{Key, Resource};
use crate::seal::StoredValue;

/// Row of the log, as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// Key of the object.
    pub key: Key,
    /// Revision that wrote the state.
    pub revision: i64,
    /// UID of the object.
    pub uid: String,
    /// Revision that it superseded, 0 for a creation.
    pub previous: i64,
    /// True for a tombstone.
    pub deleted: bool,
    /// Format byte and content of the value, sealed if it is sealed in the database.
    pub value: Vec<u8>,
    /// UIDs of the owners; `None` if not known.
    pub owners: Option<Vec<String>>,
}

/// Protocol buffer of a state. Tags never change.
#[derive(Clone, PartialEq, Message)]
struct State {
    #[prost(string, tag = "1")]
    group: String,
    #[prost(string, tag = "2")]
    resource: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(int64, tag = "5")]
    revision: i64,
    #[prost(string, tag = "6")]
    uid: String,
    #[prost(int64, tag = "7")]
    previous: i64,
    #[prost(bool, tag = "8")]
    deleted: bool,
    #[prost(bytes = "vec", tag = "9")]
    value: Vec<u8>,
    #[prost(string, repeated, tag = "10")]
    owners: Vec<String>,
    #[prost(bool, tag = "11")]
    owners_unknown: bool,
}

#[derive(Clone, PartialEq, Message)]
struct States {
    #[prost(message, repeated, tag = "1")]
    states: Vec<State>,
}

impl StoredState {
    /// Returns the JSON of the value; `None` if it is sealed or damaged.
    #[must_use]
    pub fn json(&self) -> Option<&[u8]> {
        match codec::decode(&self.value) {
            Ok(StoredValue::Plain(json)) => Some(json),
            _ => None,
        }
    }

    /// Encodes states.
    pub fn encode_all(states: Vec<Self>) -> Vec<u8> {
        let states = states.into_iter().map(State::from).collect();
        States { states }.encode_to_vec()
    }

    /// Decodes states. Returns the reason if the bytes are invalid.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let States { states } = States::decode(bytes).map_err(|error| error.to_string())?;
        states.into_iter().map(Self::try_from).collect()
    }
}

impl From<StoredState> for State {
    fn from(state: StoredState) -> Self {
        let StoredState { key, revision, uid, previous, deleted, value, owners } = state;
        Self {
            group: key.resource().group.clone(),
            resource: key.resource().resource.clone(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            revision,
            uid,
            previous,
            deleted,
            value,
            owners_unknown: owners.is_none(),
            owners: owners.unwrap_or_default(),
        }
    }
}

impl TryFrom<State> for StoredState {
    type Error = String;

    fn try_from(state: State) -> Result<Self, String> {
        let key = Key::new(&Resource::new(state.group, state.resource), &state.namespace, &state.name);
        if state.name.contains('/') || state.namespace.contains('/') || state.name.is_empty() {
            return Err(format!("{key}: invalid namespace or name"));
        }
        if state.revision <= 0 || state.previous < 0 || state.previous >= state.revision {
            return Err(format!("{key}: revision {} cannot follow {}", state.revision, state.previous));
        }
        if state.value.is_empty() {
            return Err(format!("{key}: the state has no value"));
        }
        Ok(Self {
            key,
            revision: state.revision,
            uid: state.uid,
            previous: state.previous,
            deleted: state.deleted,
            value: state.value,
            owners: (!state.owners_unknown).then_some(state.owners),
        })
    }
}
