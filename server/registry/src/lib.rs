//! API verbs for any resource: one write pipeline, the traits that resources and admission implement, representations,
//! watches and managed fields.
//!
//! Contains no code for single kinds or admission plugins, no SQL and no gRPC. HTTP is used only to call webhooks.

use portico_machinery::Status;

pub mod action;
pub mod admission;
mod admission_steps;
pub mod answer;
mod apply;
pub mod attempts;
mod audit_record;
mod builtin;
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
mod disabled_fields;
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
mod objects;
pub mod options;
mod patch;
pub mod preconditions;
mod recent_states;
mod registry;
mod replace;
mod resource_map;
mod resource_names;
mod scale;
mod scale_error;
mod scheme;
mod selection;
mod serve;
mod served_resource;
mod settings;
pub mod stored_object;
pub mod strategy;
pub mod system;
pub mod table;
mod token;
mod unreadable;
mod update;
mod verb_types;
mod verbs;
mod view;
mod view_verbs;
mod views;
mod watch;
mod webhooks;
pub mod write;

pub use action::{Action, ActionFuture, ActionOutcome, ActionRequest};
pub use admission::{
    Admission, AdmitAll, Attributes, NamespaceRules, Operation, Options, QuotaCommit, VersionError,
};
pub use answer::{Answer, Body, ListStream, Watch, WatchFrame, WatchStream};
pub use audit_record::{AuditDetail, AuditRecord};
pub use builtin::{KindIndexer, ResourceIndex};
pub use call::{BODY_LIMIT, Call, Target};
pub use connection::{BackendAddresses, ConnectOutcome, ConnectRequest, Connection, DialFuture};
pub use consistent_snapshots::ConsistentSnapshots;
pub use custom::{
    CheckReport, Conversion, ConversionFailure, ConversionFault, ConversionReview, ConversionWebhook,
    DefinitionFacts, DefinitionNames, DefinitionVersion, FailingWebhook, Finding, FindingKind, MAX_OBJECTS,
    PrinterColumn, ReviewVersion, ScalePaths, SelectableField, Subresources, VersionStatus,
};
pub use etcd_layout::EtcdLayout;
pub use follow::{Change, ChangeStream, CombinedFeed, ResourceFeed};
pub use frame::{EventType, Frame};
pub use history::{
    DecodedPastState, ObjectHistory, PastList, PastRange, RestoreRequest, RestoreResult, last_change,
    last_manager,
};
pub use hooks::{ResultFuture, TransactionHooks, TxnContext, WriteGuard, WritePermissions};
pub use log::{Log, LogEntry, LogError, ObjectRef, ResolvedKind};
pub use long_work::MAX_INLINE_BYTES;
pub use objects::Objects;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, ListOptions, PatchOptions, Preconditions, Propagation,
    UpdateOptions, VersionMatch,
};
pub use portico_kit::offload::is_abandoned;
pub use portico_store::AgeClock;
pub use registry::Registry;
pub use resource_names::NamedResource;
pub use scale::ScaleSelector;
pub use scale_error::ScaleError;
pub use served_resource::ServedResource;
pub use settings::{Clock, ConnectionSettings, Settings, TranslationSettings};
pub use stored_object::StoredObject;
pub use strategy::{
    ComputedStrategy, DecodeStrategy, DeleteOverride, DeleteStrategy, FieldStrategy, RequestTime, Strategies,
    Strategy, SubresourceStrategy, TableStrategy,
};
pub use table::{ResourceTable, Row};
#[doc(hidden)]
pub use token::Token as ContinueToken;
pub use verb_types::{
    Annotations, Context, DeleteResult, ListResult, ObjectPart, ObjectPath, Patch, WriteResult,
};
pub use verbs::Verbs;
pub use webhooks::{
    Backends, CallError, ClientConfig, Credential, OpenCircuit, Resolver, TransportState, WebhookCall,
    WebhookConnectors, WebhookEndpoint, WebhookLimits, WebhookService, WebhookUser, WebhookUsers, Webhooks,
};
pub use write::Write;

/// Result of a verb; an error is the Status to return.
pub type Result<T, E = Box<Status>> = std::result::Result<T, E>;
