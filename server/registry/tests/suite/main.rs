//! Behavior of the registry over a real database.

#![expect(clippy::unwrap_used, reason = "what a test expects may fail it")]

mod access;
mod apiservices;
mod connects;
mod custom_lists;
mod custom_resources;
mod custom_subresources;
mod custom_values;
mod custom_writes;
mod defaults_of_others;
mod definitions;
mod deletions;
mod doubles;
mod evictions;
mod exactness;
mod followers;
mod harness;
mod interposed;
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
mod watches;
mod workloads;
mod writes;
