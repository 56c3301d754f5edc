//! Floods of HTTP/2 and TLS from unauthenticated clients, on both listeners: they end with the closing of their connection,
//! cost a bounded amount of memory, and other clients are served in the meantime.
//!
//! CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2023-39325, CVE-2023-45288, CVE-2024-27316 (see docs/internals/security.md).

mod bystander;
mod floods;
mod slow;
mod tls;
