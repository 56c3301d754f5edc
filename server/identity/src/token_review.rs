//! TokenReview: returns the user of a token to callers with permission for reviews.

use std::sync::Arc;

use portico_machinery::{Object, Status};

use crate::issuer::Identity;
use crate::review::{self, Reviewed};
use crate::self_review::write_user;
use portico_registry::Result;
use portico_registry::{Acting, Action, ActionRequest, Outcome, Pending};

/// Action of `POST tokenreviews`.
pub(crate) struct TokenReview {
    identity: Arc<Identity>,
}

impl TokenReview {
    /// Action that reviews tokens by this authority.
    pub(crate) fn new(identity: Arc<Identity>) -> Self {
        Self { identity }
    }
}

impl Action for TokenReview {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> Pending<'a, ()> {
        Box::pin(async {
            if request.body.str_at("spec.token").is_empty() {
                let why = "token is required for TokenReview in authentication";
                return Err(Box::new(Status::bad_request(why)));
            }
            Ok(())
        })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> Acting<'a> {
        Box::pin(review_token(&self.identity, request))
    }
}

async fn review_token(identity: &Identity, request: ActionRequest<'_>) -> Result<Outcome> {
    let mut review = request.body;
    let token = review.str_at("spec.token").to_owned();
    let audiences: Vec<String> =
        review.at(&["spec", "audiences"]).items().map(|a| a.str().to_owned()).collect();
    review.remove(&["status"]);
    answer(&mut review, review::review(request.verbs, identity, &token, &audiences).await);
    Ok(Outcome::Created(review))
}

fn answer(review: &mut Object, found: Result<Reviewed, String>) {
    match found {
        Ok(found) => {
            review.set(&["status", "authenticated"], true);
            write_user(review, ["status", "user"], &found.user);
            review.set(&["status", "audiences"], found.audiences);
        }
        Err(why) => review.set(&["status", "error"], why),
    }
}
