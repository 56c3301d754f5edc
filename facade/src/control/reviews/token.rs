//! TokenReview: identifies the user of a token.

use portico_auth::authn::{self, TokenReviewBackend, TokenReviewFuture, TokenReviewStatus};
use serde::Serialize;

use super::{Review, ReviewClient, ReviewError};

/// Authenticates tokens by reviews.
pub struct TokenReviewClient(pub ReviewClient);

#[derive(Serialize)]
struct TokenReviewSpec<'a> {
    token: &'a str,
}

impl Review for TokenReviewSpec<'_> {
    const GROUP: &'static str = "authentication.k8s.io";
    const KIND: &'static str = "TokenReview";
    const RESOURCE: &'static str = "tokenreviews";
    type Status = TokenReviewStatus;
}

impl TokenReviewBackend for TokenReviewClient {
    fn review<'a>(&'a self, token: &'a str) -> TokenReviewFuture<'a> {
        Box::pin(async move {
            match self.0.review(&TokenReviewSpec { token }).await {
                Ok(status) if status.authenticated => Ok(Ok(status.user.into())),
                Ok(status) => Ok(Err(status.error)),
                Err(ReviewError::Failed(_)) => Err(authn::ReviewError::Failed),
                Err(ReviewError::Unreachable(_)) => Err(authn::ReviewError::Unreachable),
            }
        })
    }
}
