//! Whose token is it: a TokenReview.

use std::collections::BTreeMap;

use portico_auth::authn::{Reviewer, Reviewing};
use portico_machinery::UserInfo;
use serde::{Deserialize, Serialize};

use super::{Asker, Review};

/// Asks whose tokens are.
pub struct TokenAsker(pub Asker);

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    authenticated: bool,
    user: User,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Review for Spec<'_> {
    const GROUP: &'static str = "authentication.k8s.io";
    const KIND: &'static str = "TokenReview";
    const RESOURCE: &'static str = "tokenreviews";
    type Answered = Said;
}

impl Reviewer for TokenAsker {
    fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a> {
        Box::pin(async move {
            let said = self.0.review(&Spec { token }).await?;
            if !said.authenticated {
                return Some(Err(said.error));
            }
            let User { username, uid, groups, extra } = said.user;
            Some(Ok(UserInfo { name: username, uid, groups, extra }))
        })
    }
}
