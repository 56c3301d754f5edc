//! What systems do differently: modes and owners of files, names in folders, Unix sockets.
//!
//! Unix is what Portico is made for. Elsewhere files have no modes or owners of this kind (a folder passes on who may read what is in
//! it), names need not be synced, and there are no Unix sockets; what is asked for all the same is [`io::ErrorKind::Unsupported`]. It
//! must not know what the files are for.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use other::*;
#[cfg(unix)]
pub use unix::*;

#[cfg(doc)]
use std::io;
