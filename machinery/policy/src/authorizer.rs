//! Authorizer of expressions, which checks the permissions of the requesting user or of a service account.

use std::sync::Arc;

use portico_auth::authz::DeferredAuthorizer;
use portico_auth::{Authorizer, Verdict};
use portico_cel::library::authorization::{self, Decision, Question};
use portico_machinery::{Attributes, RequestInfo, UserInfo, names};

/// Group of all service accounts.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Version in checks of expressions, which do not specify a version.
const ANY_VERSION: &str = "*";

/// Authorizer for one user.
#[derive(Clone)]
pub struct UserAuthorizer {
    user: Arc<UserInfo>,
    authorizer: Arc<DeferredAuthorizer>,
}

impl UserAuthorizer {
    /// Creates the authorizer of expressions for `user`.
    #[must_use]
    pub fn new(user: Arc<UserInfo>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { user, authorizer: Arc::new(DeferredAuthorizer::new(authorizer)) }
    }

    /// Resolves the checks of expressions that need a slow authorizer. Returns `true` if there were any; the expressions must
    /// then be evaluated again.
    pub async fn resolve_pending(&self) -> bool {
        self.authorizer.resolve_pending().await
    }
}

impl authorization::Authorizer for UserAuthorizer {
    fn decide(&self, question: &Question, verb: &str) -> Decision {
        let attributes = attributes(&self.user, question, verb);
        let decision = self.authorizer.authorize(&attributes);
        let allowed = decision.verdict == Verdict::Allow;
        Decision { allowed, reason: decision.reason.into_owned(), error: None }
    }

    fn of_service_account(&self, namespace: &str, name: &str) -> Arc<dyn authorization::Authorizer> {
        let groups = [SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")];
        let user = UserInfo::new(format!("system:serviceaccount:{namespace}:{name}"), groups);
        Arc::new(Self {
            user: Arc::new(user.with_authenticated_group()),
            authorizer: Arc::clone(&self.authorizer),
        })
    }

    fn check_service_account(&self, namespace: &str, name: &str) -> Result<(), &'static str> {
        if !names::dns1123_subdomain(name).is_empty() {
            return Err("Invalid service account name");
        }
        if !names::dns1123_label(namespace).is_empty() {
            return Err("Invalid service account namespace");
        }
        Ok(())
    }
}

fn attributes(user: &Arc<UserInfo>, question: &Question, verb: &str) -> Attributes {
    let request = match question {
        Question::Path(path) => {
            RequestInfo { verb: verb.to_owned(), path: path.clone(), ..RequestInfo::default() }
        }
        Question::Resource {
            group,
            resource,
            subresource,
            namespace,
            name,
            field_selector,
            label_selector,
        } => RequestInfo {
            is_resource_request: true,
            verb: verb.to_owned(),
            api_group: group.clone(),
            api_version: ANY_VERSION.to_owned(),
            resource: resource.clone(),
            subresource: subresource.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            field_selector: field_selector.clone(),
            label_selector: label_selector.clone(),
            ..RequestInfo::default()
        },
    };
    Attributes::new(Arc::clone(user), request)
}
