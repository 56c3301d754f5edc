//! The verbs of the API, for any resource: one pipeline for every write, the traits that resources and admission
//! implement, forms, watches, managed fields.
//!
//! Names no kind and no plugin. Knows no SQL, no gRPC, and HTTP only where it calls webhooks.

use portico_machinery::Status;

pub mod action;
pub mod admission;
pub mod answer;
mod apply;
pub mod attempts;
pub mod call;
pub mod condition;
pub mod connection;
mod create;
pub mod custom;
pub mod definition;
pub mod delete;
mod delete_collection;
pub mod draft;
mod expiry;
pub mod failure;
mod follow;
mod forms;
mod frame;
mod get;
pub mod hooks;
mod lifecycle;
mod list;
mod log;
mod long_work;
pub mod managed_fields;
mod modify;
pub mod options;
mod patch;
pub mod preconditions;
mod recent;
mod registry;
mod scheme;
mod selection;
mod serve;
mod served;
mod settings;
pub mod stored;
pub mod strategy;
pub mod system;
pub mod table;
mod token;
mod unreadable;
mod update;
mod views;
mod watch;
mod webhooks;

pub use action::{Acting, Action, ActionRequest, Outcome};
pub use admission::{Admission, AdmitAll, Attributes, Charged, Operation, Options, Write};
pub use answer::{Answer, Body, ListStream};
pub use call::{BODY_LIMIT, Call, Target};
pub use connection::{ConnectRequest, Connected, Connection, Deciding, Registered};
pub use custom::{
    Checked, Conversion, ConversionFailure, ConversionFault, ConversionReview, Facts, Finding, FindingKind,
    MAX_OBJECTS, Names, PrinterColumn, ReviewVersion, ScalePaths, SelectableField, Standing, Subresources,
    Trouble, Version, Webhook,
};
pub use follow::{Change, ChangeStream, Followed};
pub use frame::{EventType, Frame};
pub use hooks::{Beginning, Pending, TransactionHooks, WriteGuard};
pub use log::{Log, LogError, Logged, ObjectRef, Resolved};
pub use long_work::MAX_INLINE_BYTES;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, ListOptions, PatchOptions, Preconditions, Propagation,
    UpdateOptions, VersionMatch,
};
pub use registry::{Context, Deleted, Listed, Part, Patch, Place, Registry, Verbs, Written};
pub use served::{KindIndexer, ResourceIndex, ServedResource};
pub use settings::{Clock, ConnectionSettings, Settings};
pub use stored::Stored;
pub use strategy::{Moment, OwnDelete, Strategy};
pub use table::{Handler, ResourceTable, Row};
pub use views::ScaleSelector;
pub use watch::WatchStream;
pub use webhooks::{ClientConfig, Resolver, WebhookConnectors, WebhookLimits, WebhookService, Webhooks};

/// What a verb gives, or the Status that says why not.
pub type Result<T, E = Box<Status>> = std::result::Result<T, E>;
