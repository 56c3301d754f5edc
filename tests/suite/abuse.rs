//! Floods of HTTP/2 and TLS from clients that nobody knows, on both listeners: they end with the connection that makes them,
//! cost a bounded amount of memory, and others are served meanwhile.
//!
//! CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2023-39325, CVE-2023-45288, CVE-2024-27316 (see docs/internals/security.md).

mod bystander;
mod floods;
mod slow;
mod tls;
