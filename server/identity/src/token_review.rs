//! TokenReview: returns the user of a token to callers with permission for reviews.

use std::sync::Arc;

use portico_machinery::{Object, Status};

use crate::issuer::TokenAuthority;
use crate::reviewer::{self, AuthenticatedToken};
use crate::self_review::write_user;
use portico_registry::Result;
use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest, ResultFuture};

/// Action of `POST tokenreviews`.
pub(crate) struct TokenReview {
    authority: Arc<TokenAuthority>,
}

impl TokenReview {
    /// Action that reviews tokens by this authority.
    pub(crate) fn new(authority: Arc<TokenAuthority>) -> Self {
        Self { authority }
    }
}

impl Action for TokenReview {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(async {
            if request.body.str_at("spec.token").is_empty() {
                let message = "token is required for TokenReview in authentication";
                return Err(Box::new(Status::bad_request(message)));
            }
            Ok(())
        })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(review_token(&self.authority, request))
    }
}

async fn review_token(authority: &TokenAuthority, request: ActionRequest<'_>) -> Result<ActionOutcome> {
    let mut review = request.body;
    let token = review.str_at("spec.token").to_owned();
    let audiences: Vec<String> =
        review.at(&["spec", "audiences"]).items().map(|a| a.str().to_owned()).collect();
    review.remove(&["status"]);
    write_status(&mut review, reviewer::authenticate(request.verbs, authority, &token, &audiences).await);
    Ok(ActionOutcome::Created(review))
}

fn write_status(review: &mut Object, outcome: Result<AuthenticatedToken, String>) {
    match outcome {
        Ok(found) => {
            review.set(&["status", "authenticated"], true);
            write_user(review, ["status", "user"], &found.user);
            review.set(&["status", "audiences"], found.audiences);
        }
        Err(reason) => review.set(&["status", "error"], reason),
    }
}
