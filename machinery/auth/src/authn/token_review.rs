//! Status of a TokenReview in the response of a webhook or of the control service (`authentication.k8s.io`).

use std::collections::BTreeMap;

use portico_machinery::UserInfo;
use serde::Deserialize;

/// Status of a TokenReview. All parts are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TokenReviewStatus {
    /// True if the token belongs to a user.
    pub authenticated: bool,
    /// User of the token.
    pub user: ReviewedUser,
    /// Requested audiences for which the token is valid.
    pub audiences: Vec<String>,
    /// Reason why the token is invalid.
    pub error: String,
}

/// User in the form of review APIs.
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
