//! The registry's behaviour, through its door, over a real database.

mod apiservices;
mod deletions;
mod harness;
mod lists;
mod namespaces;
mod routes;
mod services;
mod watches;
mod writes;
