//! What the process shows of itself to people and programs that debug it: upstream's z-pages.

mod flagz;
mod negotiation;
mod statusz;

pub(super) use flagz::flagz;
pub(super) use statusz::statusz;
