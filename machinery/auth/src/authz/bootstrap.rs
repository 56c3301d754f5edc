//! What `--authorization-mode RBAC` allows before any RBAC object exists: never more than the final behaviour.
//!
//! `system:masters` everything; authenticated callers discovery, OpenAPI, version and health; everybody version and
//! health; facades their own two gRPC services. Upstream rules: generic API server 11.3, the bootstrap policy.

use portico_machinery::user::{AUTHENTICATED, MASTERS, UNAUTHENTICATED};
use portico_machinery::{Attributes, UserInfo};

use super::{Authorizer, Decision};
use crate::authn::FACADES;

struct Rule {
    role: &'static str,
    groups: &'static [&'static str],
    /// `*` is any.
    verb: &'static str,
    /// Exact, or a prefix that ends in `*`.
    paths: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        role: "system:public-info-viewer",
        groups: &[AUTHENTICATED, UNAUTHENTICATED],
        verb: "get",
        paths: &["/healthz", "/livez", "/readyz", "/version", "/version/"],
    },
    Rule {
        role: "system:discovery",
        groups: &[AUTHENTICATED],
        verb: "get",
        paths: &[
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/readyz",
            "/version",
            "/version/",
        ],
    },
    Rule {
        role: "system:portico:facade",
        groups: &[FACADES],
        verb: "*",
        paths: &["/grpc/portico.config.v1.Config/*", "/grpc/portico.catalog.v1.Catalog/*"],
    },
];

/// The bootstrap policy, as a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootstrapRbac;

impl Authorizer for BootstrapRbac {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let user = &attributes.user;
        if user.in_group(MASTERS) {
            return Decision::allow(
                r#"RBAC: allowed by ClusterRoleBinding "cluster-admin" of ClusterRole "cluster-admin" to Group "system:masters""#,
            );
        }
        let request = &attributes.request;
        if request.is_resource_request {
            return Decision::no_opinion("");
        }
        let rule = RULES.iter().find(|rule| rule.covers(user, &request.verb, &request.path));
        rule.map_or_else(|| Decision::no_opinion(""), |rule| Decision::allow(rule.reason(user)))
    }
}

impl Rule {
    fn covers(&self, user: &UserInfo, verb: &str, path: &str) -> bool {
        (self.verb == "*" || self.verb == verb)
            && self.paths.iter().any(|pattern| path_matches(pattern, path))
            && self.group_of(user).is_some()
    }

    fn group_of(&self, user: &UserInfo) -> Option<&'static str> {
        self.groups.iter().copied().find(|g| user.in_group(g))
    }

    fn reason(&self, user: &UserInfo) -> String {
        let group = self.group_of(user).unwrap_or_default();
        let role = self.role;
        format!("RBAC: allowed by ClusterRoleBinding {role:?} of ClusterRole {role:?} to Group {group:?}")
    }
}

/// Upstream's non-resource match: exact, `*`, or a prefix before a closing `*`.
fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::RequestInfo;

    use super::*;

    fn ask(user: &UserInfo, method: &str, url: &str) -> bool {
        let request = RequestInfo::parse(method, url, "").unwrap();
        BootstrapRbac.authorize(&Attributes::new(user.clone(), request)).allowed()
    }

    #[test]
    fn each_class_of_caller_may_do_what_the_policy_says_and_no_more() {
        let admin = UserInfo::new("admin", [MASTERS, AUTHENTICATED]);
        let alice = UserInfo::new("alice", ["dev", AUTHENTICATED]);
        let anonymous = UserInfo::anonymous();
        let facade = UserInfo::new("facade-1", [FACADES, AUTHENTICATED]);
        // method, path, admin, alice, anonymous, facade
        let rows = [
            ("GET", "/version", [true, true, true, true]),
            ("GET", "/version/", [true, true, true, true]),
            ("GET", "/healthz", [true, true, true, true]),
            ("GET", "/healthz/ping", [true, false, false, false]),
            ("GET", "/readyz", [true, true, true, true]),
            ("GET", "/api", [true, true, false, true]),
            ("GET", "/api/v1", [true, true, false, true]),
            ("GET", "/apis/apps/v1", [true, true, false, true]),
            ("GET", "/apis/apps/v1/deployments", [true, false, false, false]),
            ("GET", "/api/v1/namespaces", [true, false, false, false]),
            ("POST", "/api/v1", [true, false, false, false]),
            ("HEAD", "/api", [true, false, false, false]),
            ("GET", "/openapi/v3/apis/apps/v1", [true, true, false, true]),
            ("GET", "/", [true, false, false, false]),
            ("GET", "/metrics", [true, false, false, false]),
            ("GET", "/apisx", [true, false, false, false]),
            ("POST", "/grpc/portico.config.v1.Config/Stream", [true, false, false, true]),
            ("POST", "/grpc/portico.catalog.v1.Catalog/Get", [true, false, false, true]),
            ("POST", "/grpc/portico.admin.v1.Admin/SetLogLevel", [true, false, false, false]),
            ("POST", "/grpc/portico.config.v1.ConfigX/Stream", [true, false, false, false]),
        ];
        for (method, url, want) in rows {
            let got = [&admin, &alice, &anonymous, &facade].map(|user| ask(user, method, url));
            assert_eq!(got, want, "{method} {url}");
        }
    }

    #[test]
    fn an_allow_names_its_grounds() {
        let alice = UserInfo::new("alice", [AUTHENTICATED]);
        let decision = BootstrapRbac.authorize(&Attributes::path(alice, "get", "/apis"));
        let want = r#"RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated""#;
        assert_eq!(decision.reason, want);
    }
}
