//! Documents that are written and sent in pieces.

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::task::yield_now;

use crate::Result;
use crate::answer::Body;

/// Approximate size of a piece in bytes.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// Writes a list piece by piece.
pub(super) trait PieceWriter: Sized + Send + 'static {
    /// True once the last piece is written.
    fn is_done(&self) -> bool;
    /// Returns the next piece and the rest of the list; `None` after the last piece.
    fn next(self) -> impl Future<Output = Result<Option<(Bytes, Self)>>> + Send;
}

/// List as a body: complete if it fits into one piece. The first piece is written immediately.
pub(super) async fn body<P: PieceWriter>(list: P) -> Result<Body> {
    let (first, rest) = match list.next().await? {
        Some((whole, rest)) if rest.is_done() => return Ok(Body::Bytes(whole)),
        Some((first, rest)) => (first, rest),
        None => return Ok(Body::Bytes(Bytes::new())),
    };
    let rest = stream::try_unfold(rest, |rest| async {
        // Yields to other requests of this thread between two pieces.
        yield_now().await;
        rest.next().await
    });
    Ok(Body::List(Box::pin(stream::iter([Ok(first)]).chain(rest))))
}
