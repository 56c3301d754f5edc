//! Text formats of Go's standard library and of Kubernetes.
//!
//! A program that exchanges text with Go programs must parse and print it as they do. Each module is named after the Go package
//! whose behavior it implements. No IO, no clock, no panics; errors have Go's messages.
//!
//! ```
//! use portico_gostd::time::{format_duration, parse_duration};
//!
//! assert_eq!(format_duration(parse_duration("90m").unwrap()), "1h30m0s");
//! ```
//!
//! # Features
//!
//! All features are enabled by default.
//!
//! - `apimachinery`: resource quantities ([`apimachinery::Quantity`]) and validation of names.
//! - `json`: `encoding/json` over `serde_json`.
//! - `regexp`: RE2's syntax over `regex`.
//! - `time`: durations, times and `strfmt` over `jiff`.

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
#[cfg(feature = "time")]
pub mod strfmt;
#[cfg(feature = "time")]
pub mod time;
pub mod url;

/// Examples of README.md, run as doctests.
#[cfg(all(doctest, feature = "apimachinery", feature = "time"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
