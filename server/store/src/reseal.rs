//! Archived states, sealed as they would be if they were written now: which of them are not, and what they become. Knows no SQL.

use crate::codec;
use crate::copy::{ArchiveAt, ArchivedState, CopySource};
use crate::error::StoreError;
use crate::seal::{Seal, SealError};

/// What a step of [`crate::Store::reseal_past`] found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResealedPast {
    /// Past states that it looked at.
    pub states: u64,
    /// Those that were sealed otherwise, and are not any more.
    pub resealed: u64,
    /// Those that cannot be opened; they stay as they are.
    pub unreadable: u64,
    /// Where the next step begins; none: nothing is left to look at.
    pub next: Option<ArchiveAt>,
}

/// A state's revision and its value for the database.
pub(crate) type Resealed = (i64, Vec<u8>);

/// Seals the next part of an archive behind a place, of what was superseded up to a revision: `replace` gets the values to be written.
pub(crate) async fn step(
    source: &dyn CopySource,
    seal: &Seal,
    until: i64,
    mut behind: ArchiveAt,
    replace: impl AsyncFnOnce(Vec<Resealed>) -> Result<(), StoreError>,
) -> Result<ResealedPast, StoreError> {
    let part = source.archive(until, behind).await;
    let part = part.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let (mut done, mut values) = (ResealedPast::default(), Vec::new());
    for state in &part.states {
        done.states += 1;
        match anew(seal, state).await {
            Ok(Some(value)) => values.push((state.revision, value)),
            Ok(None) => {}
            Err(SealError::Refused { .. }) => done.unreadable += 1,
            Err(SealError::Unavailable { text: reason, .. }) => {
                return Err(StoreError::Sealed { key: state.key.clone(), reason });
            }
        }
    }
    done.resealed = values.len() as u64;
    if !values.is_empty() {
        replace(values).await?;
    }
    behind.pass(&part, until).map_err(StoreError::Unavailable)?;
    done.next = (!part.states.is_empty()).then_some(behind);
    Ok(done)
}

/// The value of a state as it would be written now; none: it is so. What is sealed and has no rule any more nobody opens.
async fn anew(seal: &Seal, state: &ArchivedState) -> Result<Option<Vec<u8>>, SealError> {
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
