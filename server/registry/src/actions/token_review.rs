//! TokenReview: whose token is this, asked by those who may know.

use portico_machinery::{Object, Status};

use super::self_review::write_user;
use super::{Acting, Action, Asked, Outcome};
use crate::Result;

pub(super) struct TokenReview;

impl Action for TokenReview {
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a> {
        Box::pin(review(asked))
    }
}

async fn review(asked: Asked<'_>) -> Result<Outcome> {
    let mut review = asked.body;
    let token = review.str_at("spec.token").to_owned();
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(Box::new(Status::bad_request(why)));
    }
    let audiences: Vec<String> =
        review.at(&["spec", "audiences"]).items().map(|a| a.str().to_owned()).collect();
    review.remove(&["status"]);
    answer(&mut review, asked.inner.review(&token, &audiences).await);
    Ok(Outcome::Made(review))
}

fn answer(review: &mut Object, found: Result<crate::identity::Reviewed, String>) {
    match found {
        Ok(found) => {
            review.set(&["status", "authenticated"], true);
            write_user(review, ["status", "user"], &found.user);
            review.set(&["status", "audiences"], found.audiences);
        }
        Err(why) => review.set(&["status", "error"], why),
    }
}
