//! Behavior of the registry over a real database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod apiservices;
mod connections;
mod custom_lists;
mod custom_resources;
mod custom_subresources;
mod custom_values;
mod custom_writes;
mod default_classes;
mod definitions;
mod deletions;
mod evictions;
mod followers;
mod harness;
mod intercepting_store;
mod lists;
mod long_work;
mod missing_states;
mod namespaces;
mod ownership;
mod pipeline;
mod protobuf;
mod quotas;
mod races;
mod routes;
mod services;
mod test_doubles;
mod upstream_details;
mod watches;
mod workloads;
mod writes;
