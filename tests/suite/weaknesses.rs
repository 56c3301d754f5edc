//! Known vulnerabilities of Kubernetes API servers, by number: docs/internals/security.md lists all of them, and
//! the gate checks that each has a test.

mod logs;
mod objects;
mod requests;
