//! What Go's standard library reads and prints, once for all crates.
//!
//! Clients and kube-apiserver agree on texts because both use Go's packages. Each module here is named after the Go
//! package whose behaviour it implements, and is the only implementation of it in the workspace. Two packages outside
//! the standard library are here for the same reason: [`strfmt`] and the part of [`apimachinery`] that has no
//! dependency of its own. Pure: no IO and no clock.
//!
//! ```
//! use portico_gostd::time::{format_duration, parse_duration};
//!
//! assert_eq!(format_duration(parse_duration("90m").unwrap()), "1h30m0s");
//! ```
//!
//! # Features
//!
//! All are on by default: `apimachinery` (quantities and names), `json` (`encoding/json` over `serde_json`) and
//! `regexp` (RE2's syntax over `regex`).

#[cfg(feature = "apimachinery")]
pub mod apimachinery;
#[cfg(feature = "json")]
pub mod json;
pub mod mime;
pub mod netip;
pub mod os;
#[cfg(feature = "regexp")]
pub mod regexp;
pub mod strconv;
pub mod strfmt;
pub mod time;
pub mod url;
