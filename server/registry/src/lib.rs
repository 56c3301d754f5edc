//! What may be written and its forms: the one door to objects.
//!
//! Generic verbs name no kind; `strategies/` does. Knows no SQL, no gRPC, and HTTP only
//! where it asks webhooks.

use portico_machinery::Status;

mod actions;
mod admission;
mod allocation;
mod answer;
mod apply;
mod attempts;
mod call;
pub mod condition;
mod connections;
mod create;
mod custom;
pub mod definition;
mod delete;
mod delete_collection;
mod door;
mod draft;
mod escalation;
mod expiry;
mod failure;
mod follow;
mod forms;
mod frame;
mod get;
mod identity;
mod involved;
mod list;
mod log;
mod long_work;
mod managed_fields;
mod modify;
mod options;
mod patch;
mod pod_spec;
mod preconditions;
mod recent;
mod registry;
mod scheme;
mod selection;
mod served;
mod settings;
mod stored;
mod strategies;
mod system;
mod token;
mod unreadable;
mod update;
mod validation;
mod views;
mod watch;
mod webhooks;

pub use allocation::HeldPort;
pub use answer::{Answer, Body, ListStream};
pub use call::{BODY_LIMIT, Call, Target};
pub use connections::{Connected, Registered};
pub use custom::{
    Checked, Conversion, ConversionFailure, ConversionFault, ConversionReview, Facts, Finding, FindingKind,
    MOST_OBJECTS, Names, PrinterColumn, ReviewVersion, ScalePaths, SelectableField, Standing, Subresources,
    Trouble, Version, Webhook,
};
pub use follow::{Change, ChangeStream, Followed};
pub use frame::{EventType, Frame};
pub use identity::Identity;
pub use log::{Log, LogError, Logged, ObjectRef, Resolved};
pub use long_work::MAX_INLINE_BYTES;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, ListOptions, PatchOptions, Preconditions, Propagation,
    UpdateOptions, VersionMatch,
};
pub use registry::{Context, Deleted, Listed, Part, Patch, Place, Registry, Written};
pub use served::KindIndexer;
pub use settings::{Clock, ConnectionSettings, Settings};
pub use stored::Stored;
pub use strategies::{FlowObject, flow_objects};
pub use watch::WatchStream;
pub use webhooks::{ClientConfig, Resolver, Ways, WebhookLimits, WebhookService, Webhooks};

/// What a verb gives, or the Status that says why not.
pub type Result<T, E = Box<Status>> = std::result::Result<T, E>;

#[cfg(test)]
mod growth_tests;
