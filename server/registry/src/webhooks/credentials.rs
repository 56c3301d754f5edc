//! Credentials for calls of webhooks, chosen by host (upstream's `defaultAuthenticationInfoResolver`).
//!
//! Independent of the source of the credentials.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use portico_kit::certs::FileWatch;
use portico_kit::tls::CertPair;

/// Users of one kubeconfig. The default is empty: webhooks are called anonymously.
#[derive(Clone, Default)]
pub struct WebhookUsers {
    /// Users by host.
    by_host: HashMap<String, Arc<WebhookUser>>,
    /// User of the current context.
    current: Option<Arc<WebhookUser>>,
}

/// Credentials for calls of a webhook.
#[derive(Clone, Default)]
pub struct WebhookUser {
    /// Client certificate, if any.
    pub certificate: Option<Credential<CertPair>>,
    /// Value of the `Authorization` header, if any.
    pub authorization: Option<Credential<HeaderValue>>,
    /// Impersonation headers.
    pub impersonate: Vec<(HeaderName, HeaderValue)>,
}

/// Fixed credential, or one in files that may change.
#[derive(Clone)]
pub enum Credential<T> {
    /// Credential that does not change.
    Fixed(Arc<T>),
    /// Current content of watched files.
    Watched(FileWatch<T>),
}

impl<T: Send + Sync + 'static> Credential<T> {
    /// Current credential.
    pub(super) fn current(&self) -> Arc<T> {
        match self {
            Self::Fixed(value) => Arc::clone(value),
            Self::Watched(watch) => watch.current(),
        }
    }
}

impl WebhookUsers {
    /// Users by host, and the host name of the user of the current context.
    #[must_use]
    pub fn new(users: impl IntoIterator<Item = (String, WebhookUser)>, current: Option<&str>) -> Self {
        let by_host: HashMap<_, _> = users.into_iter().map(|(host, user)| (host, Arc::new(user))).collect();
        let current = current.and_then(|name| by_host.get(name)).cloned();
        Self { by_host, current }
    }

    /// User for `host:port`: an exact match, then wildcards from the longest on, both also without the port 443, then `*`, then
    /// the user of the current context.
    #[must_use]
    pub fn for_host(&self, host: &str, port: u16) -> Option<&Arc<WebhookUser>> {
        if self.by_host.is_empty() {
            return None;
        }
        let with_port = portico_kit::dial::Target::new(host, port).to_string();
        let found = self.exact_or_wildcard(&with_port);
        let found = found.or_else(|| self.exact_or_wildcard(host).filter(|_| port == 443));
        found.or_else(|| self.by_host.get("*")).or(self.current.as_ref())
    }

    fn exact_or_wildcard(&self, target: &str) -> Option<&Arc<WebhookUser>> {
        let wildcards = target.match_indices('.').map(|(at, _)| format!("*{}", &target[at..]));
        self.by_host.get(target).or_else(|| wildcards.into_iter().find_map(|name| self.by_host.get(&name)))
    }
}

/// Omits the credentials, which must not be logged.
impl std::fmt::Debug for WebhookUsers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookUsers").field("users", &self.by_host.len()).finish_non_exhaustive()
    }
}

impl WebhookUser {
    /// Adds the headers of the user to a request.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, HeaderValue::clone(&authorization.current()));
        }
        for (name, value) in &self.impersonate {
            headers.append(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> (String, WebhookUser) {
        let token = Credential::Fixed(Arc::new(HeaderValue::from_str(name).unwrap()));
        (name.to_owned(), WebhookUser { authorization: Some(token), ..WebhookUser::default() })
    }

    fn found(users: &WebhookUsers, host: &str, port: u16) -> String {
        let mut headers = HeaderMap::new();
        if let Some(user) = users.for_host(host, port) {
            user.add_to(&mut headers);
        }
        headers.get("authorization").map_or("", |name| name.to_str().unwrap()).to_owned()
    }

    #[test]
    fn the_most_specific_user_for_the_host_is_chosen() {
        let all = [
            "a.n.svc:443",
            "a.n.svc",
            "b.n.svc",
            "*.n.svc",
            "*.svc:8443",
            "*.example.com",
            "10.0.0.1:9443",
            "*",
        ];
        let users = WebhookUsers::new(all.map(user), Some("b.n.svc"));
        for (host, port, name) in [
            ("a.n.svc", 443, "a.n.svc:443"),
            ("a.n.svc", 444, "*"),
            ("b.n.svc", 443, "b.n.svc"),
            ("c.n.svc", 443, "*.n.svc"),
            ("c.m.svc", 8443, "*.svc:8443"),
            ("x.y.example.com", 443, "*.example.com"),
            ("example.com", 443, "*"),
            ("10.0.0.1", 9443, "10.0.0.1:9443"),
            ("10.0.0.1", 443, "*"),
        ] {
            assert_eq!(found(&users, host, port), name, "{host}:{port}");
        }
    }

    #[test]
    fn hosts_without_a_user_get_the_user_of_the_current_context() {
        let users = WebhookUsers::new([user("me"), user("a.example.com")], Some("me"));
        assert_eq!(found(&users, "b.example.com", 443), "me");
        assert_eq!(found(&users, "a.example.com", 443), "a.example.com");
        assert_eq!(found(&WebhookUsers::new([user("me")], None), "b.example.com", 443), "");
        assert_eq!(found(&WebhookUsers::default(), "b.example.com", 443), "");
    }
}
