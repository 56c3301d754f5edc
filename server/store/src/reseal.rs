//! Renews stale seals of archived states. Independent of SQL.

use crate::codec;
use crate::copy::{ArchiveCursor, ArchivedState, CopySource};
use crate::error::StoreError;
use crate::seal::{Seal, SealError};

/// Result of one step of [`crate::Store::reseal_past_states`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResealProgress {
    /// Number of past states examined.
    pub states: u64,
    /// Number of states whose stale seal was renewed.
    pub resealed: u64,
    /// Number of states that cannot be opened and stay unchanged.
    pub unreadable: u64,
    /// Start of the next step; `None` if all states were examined.
    pub next: Option<ArchiveCursor>,
}

/// Revision of a state and its new value for the database.
pub(crate) type ResealedState = (i64, Vec<u8>);

/// Renews the seals of the next page of an archive after a cursor, for states superseded up to a revision. `replace`
/// gets the new values.
pub(crate) async fn step(
    source: &dyn CopySource,
    seal: &Seal,
    until: i64,
    mut after: ArchiveCursor,
    replace: impl AsyncFnOnce(Vec<ResealedState>) -> Result<(), StoreError>,
) -> Result<ResealProgress, StoreError> {
    let part = source.archive(until, after).await;
    let part = part.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let (mut progress, mut values) = (ResealProgress::default(), Vec::new());
    for state in &part.states {
        progress.states += 1;
        match reseal(seal, state).await {
            Ok(Some(value)) => values.push((state.revision, value)),
            Ok(None) => {}
            Err(SealError::Refused { .. }) => progress.unreadable += 1,
            Err(SealError::Unavailable { text: reason, .. }) => {
                return Err(StoreError::Sealed { key: state.key.clone(), reason });
            }
        }
    }
    progress.resealed = values.len() as u64;
    if !values.is_empty() {
        replace(values).await?;
    }
    after.advance(&part, until).map_err(StoreError::Unavailable)?;
    progress.next = (!part.states.is_empty()).then_some(after);
    Ok(progress)
}

/// Returns the value of a state with a new seal; `None` if it is current. Sealed values without a rule are not opened.
async fn reseal(seal: &Seal, state: &ArchivedState) -> Result<Option<Vec<u8>>, SealError> {
    let stored = codec::decode(&state.value).map_err(SealError::refused)?;
    let opened = seal.open(&state.key, stored).await?;
    if !opened.stale {
        return Ok(None);
    }
    let sealed = seal.seal(&state.key, &opened.json)?;
    Ok(Some(match sealed {
        Some(sealed) => codec::encode_sealed(&sealed),
        None => codec::encode(&opened.json),
    }))
}
