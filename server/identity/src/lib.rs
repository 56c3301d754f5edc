//! Tokens of service accounts: issuing, and verification against the current objects.
//!
//! Signature and expiration are verified by `portico_auth`; this crate checks the objects to which tokens are bound. Does not
//! read files.

mod bootstrap_token;
mod bound_token;
mod issuer;
mod legacy_token;
mod reviewer;
mod self_review;
mod signer;
mod token_request;
mod token_review;

use std::sync::Arc;

use portico_registry::ResourceTable;

pub use issuer::TokenAuthority;
pub use reviewer::TokenReviewer;
use self_review::SelfReview;
pub use signer::{CurrentKeys, ExternalSigner, RefreshFuture, SignFuture, Signer};
pub use token_request::EXTENDED_LIFETIME;
use token_request::TokenRequest;
use token_review::TokenReview;

/// Adds the actions that issue and review tokens to the table of resources.
pub fn add_actions(table: &mut ResourceTable, authority: &Arc<TokenAuthority>) {
    const GROUP: &str = "authentication.k8s.io";
    table.add_action(("", "serviceaccounts", "token"), TokenRequest::new(Arc::clone(authority)));
    table.add_action((GROUP, "tokenreviews", ""), TokenReview::new(Arc::clone(authority)));
    table.add_action((GROUP, "selfsubjectreviews", ""), SelfReview);
}
