//! The control services of a facade: selection of the one in use, and repetition of calls when it is lost.
//!
//! All of them serve one store. Reads are repeated at another control service until one responds; writes are repeated only if
//! certainly no control service received them. No response shows an older state than an earlier one did: the facade remembers the
//! highest revision that was shown, and waits for a control service that is behind it. Does not depend on the kind of call.

mod call_reason;
mod calls;
mod failures;
mod member;
mod member_states;
mod metrics;
mod selection;
mod services;
mod watchdog;

pub(crate) use call_reason::CallReason;
pub(crate) use calls::RetryCondition;
pub(crate) use failures::{is_from_control_service, is_service_lost};
pub(crate) use member::{Member, MemberState};
pub use services::ControlServices;
