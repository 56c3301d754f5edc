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
const BULK_CHECK_MIN: usize = 4;

/// Mode of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImpersonationMode {
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
pub(super) const MODES: [ImpersonationMode; 5] = [
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

type ImpersonationResult<T> = Result<T, Box<Status>>;

impl ImpersonationMode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn is_constrained(self) -> bool {
        self != Self::Legacy
    }

    fn verb(self) -> String {
        if self.is_constrained() { format!("impersonate:{}", self.name()) } else { "impersonate".to_owned() }
    }

    /// Returns the constraint for audit events; empty for the legacy mode.
    pub(super) fn constraint(self) -> String {
        if self.is_constrained() { self.verb() } else { String::new() }
    }

    /// True if the mode can turn this caller into the requested user.
    pub(super) fn applies(self, requested: &ImpersonationRequest, caller: &UserInfo) -> bool {
        let node = node_name(&requested.user);
        match self {
            Self::AssociatedNode => {
                requested.has_only_user() && node.is_some_and(|node| runs_on(caller, node))
            }
            Self::ArbitraryNode => requested.has_only_user() && node.is_some(),
            Self::ServiceAccount => requested.has_only_user() && service_account(&requested.user).is_some(),
            Self::UserInfo => node.is_none() && service_account(&requested.user).is_none(),
            Self::Legacy => true,
        }
    }

    /// Performs all authorization checks of the mode.
    pub(super) fn check(
        self,
        authorizer: &dyn Authorizer,
        caller: &UserInfo,
        request: &RequestInfo,
        requested: &ImpersonationRequest,
    ) -> ImpersonationResult<UserInfo> {
        let checks =
            IdentityChecks { mode: self, authorizer, caller: Arc::new(self.caller_for_checks(caller)) };
        if self.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            let attributes = Attributes::new(checks.caller.clone(), RequestInfo { verb, ..request.clone() });
            authorizer.check(&attributes)?;
        }
        checks.check_user(&requested.user)?;
        checks.check_uid(&requested.uid)?;
        checks.check_groups(&requested.groups)?;
        checks.check_extra_fields(requested)?;
        Ok(UserInfo {
            name: requested.user.clone(),
            uid: requested.uid.clone(),
            groups: self.resulting_groups(requested),
            extra: requested.extra.clone(),
        })
    }

    /// Returns the caller used in the checks. For the associated node, it excludes values that differ between pods.
    fn caller_for_checks(self, caller: &UserInfo) -> UserInfo {
        let mut checked_caller = caller.clone();
        if self == Self::AssociatedNode {
            let keys = caller.extra.keys().cloned().collect();
            checked_caller.extra = [("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]
                .into_iter()
                .collect();
        }
        checked_caller
    }

    fn resulting_groups(self, requested: &ImpersonationRequest) -> Vec<String> {
        match self {
            Self::AssociatedNode | Self::ArbitraryNode => vec!["system:nodes".to_owned()],
            _ => match service_account(&requested.user) {
                Some((namespace, _)) if requested.groups.is_empty() => {
                    identity::service_account_groups(namespace)
                }
                _ => requested.groups.clone(),
            },
        }
    }
}

fn runs_on(caller: &UserInfo, node: &str) -> bool {
    let named = caller.extra.get(NODE_NAME).is_some_and(|v| v.as_slice() == [node]);
    named && service_account(&caller.name).is_some()
}

/// Identity checks of one mode.
struct IdentityChecks<'a> {
    mode: ImpersonationMode,
    authorizer: &'a dyn Authorizer,
    caller: Arc<UserInfo>,
}

impl IdentityChecks<'_> {
    fn build_attributes(
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
        if self.mode.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn check_user(&self, name: &str) -> ImpersonationResult<()> {
        let group = self.group();
        let attributes = match (self.mode, node_name(name), service_account(name)) {
            (ImpersonationMode::AssociatedNode, Some(_), _) => {
                self.build_attributes(group, "nodes", "", "", "*")
            }
            (ImpersonationMode::ArbitraryNode, Some(node), _) => {
                self.build_attributes(group, "nodes", "", "", node)
            }
            (_, _, Some((namespace, account))) => {
                self.build_attributes(group, "serviceaccounts", "", namespace, account)
            }
            _ => self.build_attributes(group, "users", "", "", name),
        };
        self.authorizer.check(&attributes)
    }

    fn check_uid(&self, uid: &str) -> ImpersonationResult<()> {
        if uid.is_empty() {
            return Ok(());
        }
        self.authorizer.check(&self.build_attributes(AUTHENTICATION, "uids", "", "", uid))
    }

    fn check_groups(&self, groups: &[String]) -> ImpersonationResult<()> {
        let group_attributes = |name: &str| self.build_attributes(self.group(), "groups", "", "", name);
        if self.mode.is_constrained() {
            if groups.iter().any(String::is_empty) {
                return refuse(&group_attributes(""), "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|g| g == MASTERS) {
                return refuse(
                    &group_attributes(MASTERS),
                    "impersonating the system:masters group is not allowed",
                );
            }
            if groups.len() >= BULK_CHECK_MIN
                && self.authorizer.authorize(&group_attributes("*")).is_allowed()
            {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.authorizer.check(&group_attributes(group)))
    }

    fn check_extra_fields(&self, requested: &ImpersonationRequest) -> ImpersonationResult<()> {
        let extra_attributes =
            |key: &str, value: &str| self.build_attributes(AUTHENTICATION, "userextras", key, "", value);
        let mut values =
            requested.extra.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
        if self.mode.is_constrained() && !requested.extra.is_empty() {
            if let Err(reason) = identity::check_extra(&requested.extra) {
                return refuse(&extra_attributes("", ""), &reason);
            }
            let many = requested.extra.values().map(Vec::len).sum::<usize>() >= BULK_CHECK_MIN;
            if many && self.authorizer.authorize(&extra_attributes("*", "*")).is_allowed() {
                return Ok(());
            }
        }
        values.try_for_each(|(key, value)| self.authorizer.check(&extra_attributes(key, value)))
    }
}

fn refuse(attributes: &Attributes, reason: &str) -> ImpersonationResult<()> {
    Err(Box::new(forbidden(attributes, reason)))
}
