//! One module per bench: prepares the servers, measures in interleaved rounds, reports figures and their targets.

pub(crate) mod admission;
pub(crate) mod ca_memory;
pub(crate) mod chain;
pub(crate) mod create;
pub(crate) mod custom_resources;
pub(crate) mod dead_backends;
pub(crate) mod definitions;
pub(crate) mod dispatch;
pub(crate) mod fairness;
pub(crate) mod first_request;
pub(crate) mod first_responses;
pub(crate) mod hostile;
pub(crate) mod list;
pub(crate) mod memory;
pub(crate) mod objects;
pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod quota;
pub(crate) mod scale;
pub(crate) mod split;
pub(crate) mod startup;
pub(crate) mod watch;
