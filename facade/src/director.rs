//! The director: one look at one snapshot decides who answers.
//!
//! Delegates in order: the aggregator (its mux: endpoints, groups, routes), the local chain (core server, then API
//! extensions), not found. It must not know how any of them answers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::Response;
use portico_machinery::Status;
use portico_machinery::discovery::Source;
use portico_machinery::status::{Cause, Details, Reason};
use portico_proxy::{Proxy, ProxyContext, Upstream};

use crate::body::Body;
use crate::context::RequestContext;
use crate::endpoints::{Endpoints, Fixed};
use crate::filters::Handler;
use crate::freshness::Freshness;
use crate::local::Local;
use crate::respond;
use crate::route_table::{RouteTable, Target};

/// See the module.
pub struct Director {
    /// What leads where.
    pub table: Arc<ArcSwap<RouteTable>>,
    /// What the facade answers itself.
    pub endpoints: Endpoints,
    /// To backends.
    pub proxy: Proxy,
    /// To the control service.
    pub local: Local,
    /// Whether the table may still be used.
    pub freshness: Arc<Freshness>,
}

/// Who answers when the mux has nothing.
#[derive(Debug, PartialEq, Eq)]
enum Delegate {
    Discovery,
    Objects,
    /// Custom resources, which the control service knows before their discovery is here; what it does not know, either,
    /// is not found.
    Custom,
    /// A path that the local chain owns and does not know: a Status.
    NoRoute,
    NotFound,
}

impl Handler for Director {
    async fn handle(&self, x: &mut RequestContext) -> Response<Body> {
        // Guards of the swap are few and short-lived: what is used beyond this line is cloned out of it.
        let found = self.table.load().find(&x.info.path).cloned();
        if self.freshness.expired() && !matches!(found, Some(Target::Fixed(f)) if answers_when_stale(f)) {
            return respond::status(x, &too_old());
        }
        match found {
            Some(Target::Route(upstream)) if !upstream.route().is_local() => self.proxied(&upstream, x).await,
            // Boxed: a proxied request, of which there may be very many, keeps no room for it.
            found => Box::pin(self.answered(found, x)).await,
        }
    }
}

impl Director {
    async fn proxied(&self, upstream: &Upstream, x: &mut RequestContext) -> Response<Body> {
        x.component = "aggregator";
        x.known_resource = x.info.is_resource_request;
        let request = x.take_request().map(Body::into_proxy);
        let identity = x.user.as_ref().map(|user| x.connection.identity(user));
        let context = ProxyContext {
            identity: identity.as_deref(),
            audit_id: &x.audit_id,
            client: Some(&x.connection.client),
            request_info: &x.info,
            deadline: x.deadline.map(Into::into),
        };
        let response = self.proxy.handle(upstream, request, context).await;
        if response.status() == http::StatusCode::NOT_FOUND {
            // Names that a backend does not know must not become labels.
            x.known_resource = false;
        }
        response.map(Body::from)
    }

    async fn answered(&self, found: Option<Target>, x: &mut RequestContext) -> Response<Body> {
        let response = match found {
            Some(Target::Group) => self.endpoints.catalog(x).await,
            Some(Target::Fixed(fixed)) => {
                let table = self.table.load_full();
                self.endpoints.handle(fixed, &table, x).await
            }
            Some(Target::Route(_)) | None => None,
        };
        match response {
            Some(response) => response,
            None => self.delegated(x).await,
        }
    }

    async fn delegated(&self, x: &mut RequestContext) -> Response<Body> {
        let table = self.table.load_full();
        match delegate(&table, &x.info.path, x.info.is_resource_request) {
            Delegate::Discovery => match self.endpoints.catalog(x).await {
                Some(response) => response,
                None => respond::status(x, &Status::no_route()),
            },
            Delegate::Objects => {
                drop(table);
                self.local.handle(x).await
            }
            // Before all definitions are known nothing is said to be missing.
            Delegate::Custom if x.before_mux_complete => not_found(x),
            Delegate::Custom => {
                drop(table);
                let response = self.local.handle(x).await;
                if is_unrouted(&response) { not_found(x) } else { response }
            }
            Delegate::NoRoute => respond::status(x, &Status::no_route()),
            Delegate::NotFound => not_found(x),
        }
    }
}

/// Upstream's web-service roots of the core server, then what CRDs serve.
fn delegate(table: &RouteTable, path: &str, resource: bool) -> Delegate {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    if trimmed == "/api" {
        return if table.is_builtin_group("") { Delegate::Discovery } else { Delegate::NotFound };
    }
    let (group, rest) = match (path.strip_prefix("/api/"), path.strip_prefix("/apis/")) {
        (Some(rest), _) => ("", rest),
        (None, Some(rest)) => match rest.split_once('/') {
            Some((group, rest)) => (group, rest),
            None => (rest, ""),
        },
        (None, None) => return Delegate::NotFound,
    };
    // The core group has no name below /apis.
    if group.is_empty() && path.starts_with("/apis/") {
        return Delegate::NotFound;
    }
    let (version, below) = rest.split_once('/').unwrap_or((rest, ""));
    let builtin = table.is_builtin_group(group);
    match (table.local(group, version), version.is_empty(), below.is_empty()) {
        (_, true, _) if builtin && !group.is_empty() => Delegate::Discovery,
        (Some(_), false, true) => Delegate::Discovery,
        (Some(Source::Builtin), false, false) if resource => Delegate::Objects,
        _ if builtin => Delegate::NoRoute,
        (_, false, false) if resource => Delegate::Custom,
        _ => Delegate::NotFound,
    }
}

/// Whether the control service knows no such resource: it says so in text, as upstream's last handler does.
fn is_unrouted(response: &Response<Body>) -> bool {
    let media_type = response.headers().get(http::header::CONTENT_TYPE);
    response.status() == http::StatusCode::NOT_FOUND
        && media_type.is_some_and(|text| text.as_bytes().starts_with(b"text/plain"))
}

/// 404 text; or, for a request that came before all paths were known, a 503 that asks to come back (3.4).
fn not_found(x: &RequestContext) -> Response<Body> {
    if !x.before_mux_complete {
        return respond::not_found();
    }
    let message =
        "the request has been made before all known HTTP paths have been installed, please try again";
    let status =
        Status::unavailable(message).with_details(Details { retry_after_seconds: 5, ..Details::default() });
    respond::status(x, &status)
}

/// Fail-static has an end: past it, only health answers (and what says why).
fn answers_when_stale(fixed: Fixed) -> bool {
    matches!(
        fixed,
        Fixed::Health(_)
            | Fixed::HealthCheck(_)
            | Fixed::Metrics
            | Fixed::Slis
            | Fixed::Version
            | Fixed::FlagsV
    )
}

fn too_old() -> Status {
    let message = "the control service has been away for longer than --fail-static-max-age allows";
    Status::failure(Reason::ServiceUnavailable, message).with_cause(Cause {
        reason: "ConfigurationTooOld".to_owned(),
        message: message.to_owned(),
        field: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::discovery::Served;

    fn table() -> RouteTable {
        let mut table = RouteTable::default();
        for (group, version, source) in
            [("", "v1", Source::Builtin), ("apps", "v1", Source::Builtin), ("x.io", "v2", Source::Crd)]
        {
            let (group, version) = (group.to_owned(), version.to_owned());
            let key = format!("{group}/{version}");
            table.set_served(&key, Arc::new(Served { group, version, source, ..Served::default() }));
        }
        table
    }

    #[test]
    fn the_local_chain_owns_what_it_serves() {
        let table = table();
        for (path, want) in [
            ("/api", Delegate::Discovery),
            ("/api/", Delegate::Discovery),
            ("/api/v1", Delegate::Discovery),
            ("/api/v1/", Delegate::Discovery),
            ("/api/v1/pods", Delegate::Objects),
            ("/api/v2", Delegate::NoRoute),
            ("/api//v1", Delegate::NoRoute),
            ("/apis//batch", Delegate::NotFound),
            ("/apis//v1/pods", Delegate::NotFound),
            ("//api", Delegate::NotFound),
            ("/apis/apps", Delegate::Discovery),
            ("/apis/apps/", Delegate::Discovery),
            ("/apis/apps/v1", Delegate::Discovery),
            ("/apis/apps/v1/deployments/x/scale", Delegate::Objects),
            ("/apis/apps/v9/deployments", Delegate::NoRoute),
            ("/apis/x.io", Delegate::NotFound),
            ("/apis/x.io/v2", Delegate::Discovery),
            ("/apis/x.io/v2/things", Delegate::Custom),
            ("/apis/x.io/v3/things", Delegate::Custom),
            ("/apis/unknown/v1/things", Delegate::Custom),
            ("/apis/unknown", Delegate::NotFound),
            ("/apisx", Delegate::NotFound),
            ("/other", Delegate::NotFound),
        ] {
            let resource = path.matches('/').count() > 2;
            let got = delegate(&table, path, resource);
            assert_eq!(got, want, "{path}");
        }
    }
}
