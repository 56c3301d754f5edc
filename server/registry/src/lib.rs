//! API verbs for any resource: one write pipeline, the traits that resources and admission implement, representations,
//! watches and managed fields.
//!
//! Contains no code for single kinds or admission plugins, no SQL and no gRPC. HTTP is used only to call webhooks.

use portico_machinery::Status;

pub mod action;
pub mod admission;
mod admit;
pub mod answer;
mod apply;
pub mod attempts;
mod builtin;
mod by_resource;
pub mod call;
pub mod condition;
pub mod connection;
mod consistent_snapshots;
mod create;
pub mod custom;
pub mod definition;
pub mod delete;
mod delete_collection;
mod delete_unreadable;
pub mod encoding;
mod etcd_layout;
mod expiry;
pub mod failure;
mod follow;
mod forms;
mod frame;
mod get;
mod handlers;
mod history;
pub mod hooks;
pub mod latencies;
mod lifecycle;
mod list;
mod log;
mod long_work;
pub mod managed_fields;
mod modify;
mod named;
mod objects;
mod off_fields;
pub mod options;
mod patch;
pub mod preconditions;
mod recent;
mod recorded;
mod registry;
mod replace;
mod scale;
mod scale_error;
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
mod typed;
mod unreadable;
mod update;
mod verbs;
mod view;
mod view_verbs;
mod views;
mod watch;
mod webhooks;
pub mod write;

pub use action::{Acting, Action, ActionRequest, Outcome};
pub use admission::{
    Admission, AdmitAll, Attributes, Charged, NamespaceRules, Operation, Options, VersionError,
};
pub use answer::{Answer, Body, ListStream, Watch, WatchFrame, WatchStream};
pub use builtin::{KindIndexer, ResourceIndex};
pub use call::{BODY_LIMIT, Call, Target};
pub use connection::{ConnectRequest, Connected, Connection, Deciding, Registered};
pub use consistent_snapshots::ConsistentSnapshots;
pub use custom::{
    Checked, Conversion, ConversionFailure, ConversionFault, ConversionReview, Facts, FailingWebhook,
    Finding, FindingKind, MAX_OBJECTS, Names, PrinterColumn, ReviewVersion, ScalePaths, SelectableField,
    Subresources, Version, VersionStatus, Webhook,
};
pub use etcd_layout::EtcdLayout;
pub use follow::{Change, ChangeStream, Followed, FollowedTogether};
pub use frame::{EventType, Frame};
pub use history::{Past, PastList, PastObject, PastRange, Restoration, Restored, last_change, last_manager};
pub use hooks::{Beginning, Pending, TransactionHooks, WriteGuard, WritePermissions};
pub use log::{Log, LogError, Logged, ObjectRef, Resolved};
pub use long_work::MAX_INLINE_BYTES;
pub use named::NamedResource;
pub use objects::Objects;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, ListOptions, PatchOptions, Preconditions, Propagation,
    UpdateOptions, VersionMatch,
};
pub use portico_kit::offload::is_abandoned;
pub use portico_store::AgeClock;
pub use recorded::{Record, Recorded};
pub use registry::Registry;
pub use scale::ScaleSelector;
pub use scale_error::ScaleError;
pub use served::ServedResource;
pub use settings::{Clock, ConnectionSettings, Settings, TranslationSettings};
pub use stored::Stored;
pub use strategy::{
    ComputedStrategy, DecodeStrategy, DeleteStrategy, FieldStrategy, Moment, OwnDelete, Strategies, Strategy,
    SubresourceStrategy, TableStrategy,
};
pub use table::{ResourceTable, Row};
#[doc(hidden)]
pub use token::Token as ContinueToken;
pub use typed::{Annotations, Context, Deleted, Listed, Part, Patch, Place, Written};
pub use verbs::Verbs;
pub use webhooks::{
    Backends, CallError, ClientConfig, Credential, OpenCircuit, Resolver, TransportState, WebhookCall,
    WebhookConnectors, WebhookEndpoint, WebhookLimits, WebhookService, WebhookUser, WebhookUsers, Webhooks,
};
pub use write::Write;

/// Result of a verb; an error is the Status to return.
pub type Result<T, E = Box<Status>> = std::result::Result<T, E>;
