//! What has hurt Kubernetes API servers before, by the numbers under which it is known: docs/internals/security.md lists all of them, and
//! the gate finds each one's test.

mod logs;
mod objects;
mod requests;
