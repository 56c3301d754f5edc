//! DenyServiceExternalIPs: services may not get external IPs that they do not have already.
//!
//! Upstream rules: plugin/pkg/admission/network/denyserviceexternalips.

use portico_machinery::Object;
use portico_registry::Objects;

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

/// DenyServiceExternalIPs plugin.
pub(crate) struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "services", "")]
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            match has_new_addresses(request.new, request.old) {
                true => Err(request.forbidden("Use of external IPs is denied by admission control")),
                false => Ok(Vec::new()),
            }
        })
    }
}

fn has_new_addresses(new: &Object, old: Option<&Object>) -> bool {
    let addresses = |service: &Object| -> Vec<String> {
        service.at(&["spec", "externalIPs"]).items().map(|address| address.str().to_owned()).collect()
    };
    let old_addresses = old.map(addresses).unwrap_or_default();
    addresses(new).iter().any(|address| !old_addresses.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_addresses_are_allowed() {
        let service = |addresses: &str| {
            Object::from_json(format!(r#"{{"spec":{{"externalIPs":{addresses}}}}}"#).as_bytes()).unwrap()
        };
        for (new, old, has_new) in [
            ("[]", None, false),
            (r#"["10.0.0.1"]"#, None, true),
            (r#"["10.0.0.1"]"#, Some(r#"["10.0.0.2","10.0.0.1"]"#), false),
            (r#"["10.0.0.1","10.0.0.3"]"#, Some(r#"["10.0.0.1"]"#), true),
        ] {
            let old = old.map(service);
            assert_eq!(has_new_addresses(&service(new), old.as_ref()), has_new, "{new} {old:?}");
        }
    }
}
