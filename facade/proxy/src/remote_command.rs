//! Translates commands over WebSocket (`v5.channel.k8s.io`) for kubelets that support only SPDY: upstream's
//! `StreamTranslatorHandler`.
//!
//! A WebSocket message consists of the number of a channel (one byte) and data. The byte 255 followed by the number of a channel
//! closes the input of that channel. To the kubelet, each channel is a SPDY stream. Only the message or piece that is being
//! forwarded is buffered: a side that does not read slows down only the other side. This module knows neither pods nor how to
//! connect to kubelets.

mod channel;
mod from_kubelet;
mod link;
mod outcome;
mod session;
mod session_limits;
mod streams;
mod to_kubelet;
mod version;

pub(crate) use outcome::CommandOutcome;
pub(crate) use session::run;
pub(crate) use session_limits::SessionLimits;
pub(crate) use streams::greeting;
pub(crate) use to_kubelet::wait_disconnected;
pub(crate) use version::{OFFERED, Version};
