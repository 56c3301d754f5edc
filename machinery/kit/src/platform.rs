//! Operating system differences: modes and owners of files, syncing of folders, Unix sockets.
//!
//! Unix is the main target. On other systems files have no Unix modes or owners (a folder passes its access rules on to its
//! contents), folders need not be synced, and Unix sockets do not exist. Using an unsupported feature returns
//! [`io::ErrorKind::Unsupported`]. Does not depend on the purpose of the files.

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
