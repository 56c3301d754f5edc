//! TokenReview: identifies the user of a token.

use portico_auth::authn::{self, Reviewer, Reviewing, TokenReviewStatus};
use serde::Serialize;

use super::{Asker, NoReview, Review};

/// Authenticates tokens by reviews.
pub struct TokenAsker(pub Asker);

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
}

impl Review for Spec<'_> {
    const GROUP: &'static str = "authentication.k8s.io";
    const KIND: &'static str = "TokenReview";
    const RESOURCE: &'static str = "tokenreviews";
    type Answered = TokenReviewStatus;
}

impl Reviewer for TokenAsker {
    fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a> {
        Box::pin(async move {
            match self.0.review(&Spec { token }).await {
                Ok(status) if status.authenticated => Ok(Ok(status.user.into())),
                Ok(status) => Ok(Err(status.error)),
                Err(NoReview::Failed(_)) => Err(authn::NoReview::Failed),
                Err(NoReview::Unreachable(_)) => Err(authn::NoReview::Unreachable),
            }
        })
    }
}
