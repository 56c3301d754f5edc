//! Translates commands over WebSocket (`v5.channel.k8s.io`) for kubelets that support only SPDY: upstream's
//! `StreamTranslatorHandler`.
//!
//! A WebSocket message consists of the number of a channel (one byte) and data. The byte 255 followed by the number of a channel
//! closes the input of that channel. To the kubelet, each channel is a SPDY stream. Only the message or piece that is being
//! forwarded is buffered: a side that does not read slows down only the other side. This module knows neither pods nor how to
//! connect to kubelets.

mod bounds;
mod channel;
mod ending;
mod from_kubelet;
mod link;
mod session;
mod streams;
mod to_kubelet;
mod version;

pub(crate) use bounds::Bounds;
pub(crate) use ending::Ending;
pub(crate) use session::run;
pub(crate) use streams::greeting;
pub(crate) use to_kubelet::gone;
pub(crate) use version::{OFFERED, Version};
