//! Behaviour of the whole system, a module per topic; every test starts real processes on ports 0.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod availability;
mod binder;
mod certificates;
mod command_line;
mod connections;
mod control_listeners;
mod control_service;
mod controllers;
mod conversions;
mod definitions;
mod durability;
mod endpoints;
mod http_api;
mod kube_client;
mod kube_derived;
mod kube_leases;
mod kube_runtime;
mod kubectl;
mod kubectl_custom;
mod kubectl_workloads;
mod load;
mod malformed;
mod nodes;
mod policies;
mod proxying;
mod query_authorization;
mod readme;
mod real_definitions;
mod service_accounts;
mod split;
mod storage_versions;
mod store_faults;
mod texts;
mod webhooks;
mod websocket_watches;
