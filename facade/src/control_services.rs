//! The control services that a facade knows: which one is in use, and what becomes of a call when that one is lost.
//!
//! All of them serve one store. Reads are sent again to another one until somebody answers, writes only when it is certain
//! that nobody received them. No answer shows an older state than one before it did: the highest revision that was shown
//! is remembered, and a control service that is behind it is waited for. It must not know what is asked.

mod call_reason;
mod calls;
mod choice;
mod failures;
mod in_use;
mod member;
mod metrics;
mod services;
mod watchdog;

pub(crate) use call_reason::CallReason;
pub(crate) use calls::Repeat;
pub(crate) use failures::{is_answer, was_lost};
pub(crate) use member::{Member, State};
pub use services::ControlServices;
