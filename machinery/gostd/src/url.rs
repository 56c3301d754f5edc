//! Package `net/url`: URLs, percent escapes and query strings.
//!
//! ```
//! use portico_gostd::url::{Query, Url};
//!
//! let url = Url::parse("https://example.com:8443/api?limit=5&watch=1").unwrap();
//! assert_eq!((url.hostname(), url.port()), ("example.com".to_owned(), "8443".to_owned()));
//! assert_eq!(Query::parse(url.query()).first("limit"), Some("5"));
//! ```

mod escape;
mod parse;
mod part;
mod query;

pub use escape::{escape_into, escapes_are_whole, hex_pair, is_unreserved, unescape};
pub use parse::{Url, check_request_uri};
pub use query::{MAX_QUERY_PARAMETERS, Query, encode_query, escape_query_into, first_value, pairs};
