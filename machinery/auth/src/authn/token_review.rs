//! The status of a TokenReview, as whoever has decided about the token answers it (`authentication.k8s.io`).

use std::collections::BTreeMap;

use portico_machinery::UserInfo;
use serde::Deserialize;

/// See the module. Any part may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TokenReviewStatus {
    /// Whether the token is somebody's.
    pub authenticated: bool,
    /// Whose.
    pub user: ReviewedUser,
    /// Those of the audiences that were asked for.
    pub audiences: Vec<String>,
    /// What is wrong with the token.
    pub error: String,
}

/// A user as reviews spell one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReviewedUser {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl From<ReviewedUser> for UserInfo {
    fn from(ReviewedUser { username, uid, groups, extra }: ReviewedUser) -> Self {
        Self { name: username, uid, groups, extra }
    }
}
