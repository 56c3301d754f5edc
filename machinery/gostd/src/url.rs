//! Package `net/url`: URLs, percent escapes and query strings.
//!
//! Authorization, decoding of options, and forwarding to a backend must see the same parameters, so all of them read a
//! query through [`pairs`] or what is built on it.

mod escape;
mod parse;
mod part;
mod query;

pub use escape::{escape_into, escapes_are_whole, hex_pair, is_unreserved, unescape};
pub use parse::{Url, check_request_uri};
pub use query::{MAX_QUERY_PARAMETERS, Query, encode_query, escape_query_into, first_value, pairs};
