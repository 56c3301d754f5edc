//! Controllers, which use the same verbs of the API as users.
//!
//! Each controller consists of pure decisions (values in, values out) and a reconcile loop. Controllers serve no requests and
//! write only through the registry. The assembly starts the loops under upstream's hook names.

mod account;
pub mod auto_register;
pub mod availability;
pub mod bootstrap;
pub mod certificates;
pub mod crd;
pub mod disruption;
pub mod events;
pub mod expiry;
pub mod flow_config;
pub mod flow_feed;
pub mod flow_status;
pub mod garbage;
pub mod identity;
pub mod leader_election;
pub mod leader_lease;
pub mod legacy_token_cleaner;
pub mod log;
pub mod names;
pub mod namespace;
pub mod object_counts;
pub mod per_namespace;
mod periodic;
pub mod policy_status;
pub mod priority_classes;
pub mod rbac;
mod recorder;
pub mod resource_quota;
mod selectors;
pub mod service_account_tokens;
pub mod service_endpoints;
pub mod service_repair;
pub mod settings;
pub mod storage_migration;
pub mod storage_versions;
pub mod system_namespaces;
pub mod system_objects;
pub mod ttl_after_finished;
pub mod volume_protection;
mod write_result;
