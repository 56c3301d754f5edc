//! Lookup of backends whose APIService contains their addresses (`portico.dev/backend-urls`), for Service proxies.

use portico_machinery::connect::Security;
use portico_machinery::resolve::{BackendFacts, ServiceKey};
use portico_machinery::route::Target;
use portico_registry::BackendAddresses;

use crate::{RouteIndex, Routes};

impl BackendAddresses for Routes {
    fn backend_of(
        &self,
        namespace: &str,
        service: &str,
        port: Option<u16>,
    ) -> Option<(Vec<Target>, Security)> {
        self.read(|index| find(index, &ServiceKey::new(namespace, service), port))
    }
}

fn find(index: &RouteIndex, service: &ServiceKey, port: Option<u16>) -> Option<(Vec<Target>, Security)> {
    let names = index.services().referrers_of(service);
    let mut backends = names.iter().filter_map(|name| index.api_service(name)?.backend.as_ref());
    let matches = |facts: &&std::sync::Arc<BackendFacts>| {
        facts.urls.is_some() && port.is_none_or(|port| port == facts.service.port)
    };
    let facts = backends.find(matches)?;
    let targets = facts.urls.clone()?.ok()?;
    let security = if facts.insecure {
        Security::Unverified
    } else {
        let roots = facts.bundle.as_ref().map(|bundle| bundle.pem.to_vec()).unwrap_or_default();
        Security::Verified { roots: roots.into(), server_name: facts.server_name.clone() }
    };
    Some((targets, security))
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;
    use portico_machinery::resolve::{AffectedApiServices, FactSource};

    use super::*;

    #[test]
    fn a_backend_is_found_by_the_service_of_its_api_service() {
        let mut index = RouteIndex::default();
        let json = br#"{"metadata":{"name":"v1.a.io","annotations":{"portico.dev/backend-urls":"https://10.9.9.9:1"}},
            "spec":{"group":"a.io","version":"v1","groupPriorityMinimum":1,"versionPriority":1,"caBundle":"QUJD",
            "service":{"namespace":"n","name":"s","port":443}}}"#;
        index.put(
            FactSource::ApiServices,
            &Object::from_json(json).unwrap(),
            &mut AffectedApiServices::new(),
        );
        let service = ServiceKey::new("n", "s");
        let (targets, security) = find(&index, &service, Some(443)).unwrap();
        assert_eq!(targets, [Target { host: "10.9.9.9".to_owned(), port: 1 }]);
        let roots = "ABC".into();
        assert_eq!(security, Security::Verified { roots, server_name: "s.n.svc".to_owned() });
        assert!(find(&index, &service, None).is_some());
        assert!(find(&index, &service, Some(444)).is_none());
        assert!(find(&index, &ServiceKey::new("n", "other"), None).is_none());
    }
}
