//! Modes of impersonation, in upstream's order, and the authorization checks of each.

use std::sync::Arc;

use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, GroupResource, RequestInfo, Status, UserInfo};

use super::identity::{self, node_name, service_account};
use super::request::ImpersonationRequest;
use crate::authz::{Authorizer, forbidden};

const AUTHENTICATION: &str = "authentication.k8s.io";
/// Extra field in which the token of a service account names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// Number of groups or extra values from which a check of all values precedes the individual checks.
const MANY: usize = 4;

/// Mode of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The node on which the calling service account runs.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Any other user, with groups, uid and extra fields.
    UserInfo,
    /// The single verb `impersonate`, independent of the request.
    Legacy,
}

/// Modes in the order in which they are tried.
pub(super) const ALL: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

type Checked<T> = Result<T, Box<Status>>;

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn constrained(self) -> bool {
        self != Self::Legacy
    }

    fn verb(self) -> String {
        if self.constrained() { format!("impersonate:{}", self.name()) } else { "impersonate".to_owned() }
    }

    /// Returns the constraint for audit events; empty for the legacy mode.
    pub(super) fn constraint(self) -> String {
        if self.constrained() { self.verb() } else { String::new() }
    }

    /// True if the mode can turn this caller into the requested user.
    pub(super) fn applies(self, wanted: &ImpersonationRequest, caller: &UserInfo) -> bool {
        let node = node_name(&wanted.user);
        match self {
            Self::AssociatedNode => wanted.only_user() && node.is_some_and(|node| runs_on(caller, node)),
            Self::ArbitraryNode => wanted.only_user() && node.is_some(),
            Self::ServiceAccount => wanted.only_user() && service_account(&wanted.user).is_some(),
            Self::UserInfo => node.is_none() && service_account(&wanted.user).is_none(),
            Self::Legacy => true,
        }
    }

    /// Performs all authorization checks of the mode.
    pub(super) fn check(
        self,
        authorizer: &dyn Authorizer,
        caller: &UserInfo,
        request: &RequestInfo,
        wanted: &ImpersonationRequest,
    ) -> Checked<UserInfo> {
        let ask = Ask { mode: self, authorizer, caller: Arc::new(self.asking(caller)) };
        if self.constrained() {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            let on = Attributes::new(ask.caller.clone(), RequestInfo { verb, ..request.clone() });
            authorizer.check(&on)?;
        }
        ask.user(&wanted.user)?;
        ask.uid(&wanted.uid)?;
        ask.groups(&wanted.groups)?;
        ask.extra(wanted)?;
        Ok(UserInfo {
            name: wanted.user.clone(),
            uid: wanted.uid.clone(),
            groups: self.groups_of(wanted),
            extra: wanted.extra.clone(),
        })
    }

    /// Returns the caller used in the checks. For the associated node, it excludes values that differ between pods.
    fn asking(self, caller: &UserInfo) -> UserInfo {
        let mut asking = caller.clone();
        if self == Self::AssociatedNode {
            let keys = caller.extra.keys().cloned().collect();
            asking.extra = [("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]
                .into_iter()
                .collect();
        }
        asking
    }

    fn groups_of(self, wanted: &ImpersonationRequest) -> Vec<String> {
        match self {
            Self::AssociatedNode | Self::ArbitraryNode => vec!["system:nodes".to_owned()],
            _ => match service_account(&wanted.user) {
                Some((namespace, _)) if wanted.groups.is_empty() => {
                    identity::service_account_groups(namespace)
                }
                _ => wanted.groups.clone(),
            },
        }
    }
}

fn runs_on(caller: &UserInfo, node: &str) -> bool {
    let named = caller.extra.get(NODE_NAME).is_some_and(|v| v.as_slice() == [node]);
    named && service_account(&caller.name).is_some()
}

/// Identity checks of one mode.
struct Ask<'a> {
    mode: Mode,
    authorizer: &'a dyn Authorizer,
    caller: Arc<UserInfo>,
}

impl Ask<'_> {
    fn about(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        name: &str,
    ) -> Attributes {
        let resource = GroupResource::new(group, resource);
        Attributes::resource(self.caller.clone(), &self.mode.verb(), &resource, namespace, name)
            .with_subresource(subresource)
            .with_version("v1")
    }

    /// Returns the API group of users, groups and service accounts, which is the core group in the legacy mode.
    fn group(&self) -> &'static str {
        if self.mode.constrained() { AUTHENTICATION } else { "" }
    }

    fn user(&self, name: &str) -> Checked<()> {
        let group = self.group();
        let question = match (self.mode, node_name(name), service_account(name)) {
            (Mode::AssociatedNode, Some(_), _) => self.about(group, "nodes", "", "", "*"),
            (Mode::ArbitraryNode, Some(node), _) => self.about(group, "nodes", "", "", node),
            (_, _, Some((namespace, account))) => {
                self.about(group, "serviceaccounts", "", namespace, account)
            }
            _ => self.about(group, "users", "", "", name),
        };
        self.authorizer.check(&question)
    }

    fn uid(&self, uid: &str) -> Checked<()> {
        if uid.is_empty() {
            return Ok(());
        }
        self.authorizer.check(&self.about(AUTHENTICATION, "uids", "", "", uid))
    }

    fn groups(&self, groups: &[String]) -> Checked<()> {
        let question = |name: &str| self.about(self.group(), "groups", "", "", name);
        if self.mode.constrained() {
            if groups.iter().any(String::is_empty) {
                return refuse(&question(""), "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|g| g == MASTERS) {
                return refuse(&question(MASTERS), "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY && self.authorizer.authorize(&question("*")).allowed() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.authorizer.check(&question(group)))
    }

    fn extra(&self, wanted: &ImpersonationRequest) -> Checked<()> {
        let question = |key: &str, value: &str| self.about(AUTHENTICATION, "userextras", key, "", value);
        let mut values = wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
        if self.mode.constrained() && !wanted.extra.is_empty() {
            if let Err(why) = identity::check_extra(&wanted.extra) {
                return refuse(&question("", ""), &why);
            }
            let many = wanted.extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.authorizer.authorize(&question("*", "*")).allowed() {
                return Ok(());
            }
        }
        values.try_for_each(|(key, value)| self.authorizer.check(&question(key, value)))
    }
}

fn refuse(question: &Attributes, why: &str) -> Checked<()> {
    Err(Box::new(forbidden(question, why)))
}
