//! Commands over WebSocket (`v5.channel.k8s.io`) for kubelets that speak SPDY alone: upstream's `StreamTranslatorHandler`.
//!
//! A message is one byte for its channel and then data; 255 and a channel ends that channel's input. Towards the kubelet
//! each channel is a stream. Nothing is kept between the two but the message or the piece that is being handed on: who
//! does not read stops the other side, and nobody else. It must not know pods, nor how kubelets are dialed.

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
