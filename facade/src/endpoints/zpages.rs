//! Upstream's z-pages, with information about the process for debugging.

mod flagz;
mod negotiation;
mod statusz;

pub(super) use flagz::flagz;
pub(super) use statusz::statusz;
