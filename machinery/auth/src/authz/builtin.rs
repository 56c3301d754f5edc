//! Permissions that no policy can change: all for `system:masters`, and the services for facades.
//!
//! Upstream rules: generic API server 11.3 (privileged groups). Does not depend on RBAC.

use portico_machinery::Attributes;
use portico_machinery::user::MASTERS;

use super::{Authorizer, Decision};
use crate::authn::FACADES_GROUP;

/// Authorizer that allows everything to `system:masters`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersAuthorizer;

impl Authorizer for MastersAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        if attributes.user.in_group(MASTERS) { Decision::allow("") } else { Decision::no_opinion("") }
    }
}

/// Authorizer that allows facades, identified by their certificates, to call the services for facades.
#[derive(Clone, Copy, Debug, Default)]
pub struct FacadesAuthorizer;

/// Path prefixes of the services for facades.
const SERVICES: [&str; 2] = ["/grpc/portico.config.v1.Config/", "/grpc/portico.catalog.v1.Catalog/"];

impl Authorizer for FacadesAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let request = &attributes.request;
        let service = !request.is_resource_request && SERVICES.iter().any(|s| request.path.starts_with(s));
        if service && attributes.user.in_group(FACADES_GROUP) {
            Decision::allow("facades")
        } else {
            Decision::no_opinion("")
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::UserInfo;

    use super::*;

    #[test]
    fn facades_may_only_call_the_services_for_facades() {
        let facade = UserInfo::new("facade-1", [FACADES_GROUP]);
        let alice = UserInfo::new("alice", ["dev"]);
        for (path, theirs) in [
            ("/grpc/portico.config.v1.Config/Stream", true),
            ("/grpc/portico.catalog.v1.Catalog/Get", true),
            ("/grpc/portico.config.v1.ConfigX/Stream", false),
            ("/grpc/portico.admin.v1.Admin/SetLogLevel", false),
        ] {
            let may = |user: &UserInfo| {
                FacadesAuthorizer.authorize(&Attributes::path(user.clone(), "post", path)).is_allowed()
            };
            assert_eq!((may(&facade), may(&alice)), (theirs, false), "{path}");
        }
    }
}
