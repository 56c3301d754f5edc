//! Comparison of the incremental table with a naive one, and upstream's cases of routing and resolution.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::resolve::{AffectedApiServices, FactSource, ResolveMode, ServiceKey};
use portico_machinery::route::{Target, Trust};
use portico_machinery::{GroupVersion, Object};
use proptest::prelude::*;

use crate::table::Table;
use crate::{
    CompiledRoute, LocalGroupVersion, Publisher, RouteIndex, Settings, Shadow, TableEntry, TableEntryKey,
    TableUpdate, compile,
};

/// Step of a random history with few names, so that objects refer to each other.
#[derive(Clone, Debug)]
enum Step {
    ApiService { group: u8, service: Option<u8>, ca: u8, ok: bool, urls: bool },
    NoApiService(u8),
    Service(u8, bool, u16),
    NoService(u8),
    Slice { slice: u8, service: Option<u8>, ready: bool },
    NoSlice(u8),
    Installed(u8, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let group = 0u8..6;
    prop_oneof![
        4 => (group.clone(), proptest::option::of(0u8..3), 0u8..3, any::<bool>(), proptest::bool::weighted(0.1))
            .prop_map(|(group, service, ca, ok, urls)| Step::ApiService { group, service, ca, ok, urls }),
        1 => group.clone().prop_map(Step::NoApiService),
        2 => (0u8..3, any::<bool>(), 443u16..445).prop_map(|(s, h, p)| Step::Service(s, h, p)),
        1 => (0u8..3).prop_map(Step::NoService),
        3 => (0u8..4, proptest::option::of(0u8..3), any::<bool>())
            .prop_map(|(slice, service, ready)| Step::Slice { slice, service, ready }),
        1 => (0u8..4).prop_map(Step::NoSlice),
        1 => (group, any::<bool>()).prop_map(|(g, on)| Step::Installed(g, on)),
    ]
}

/// Name of a group; group 5 is that of the registration API.
fn group(n: u8) -> String {
    if n == 5 { "apiregistration.k8s.io".to_owned() } else { format!("g{n}") }
}

fn object(text: &str) -> Object {
    Object::from_json(text.as_bytes()).unwrap()
}

fn api_service(n: u8, service: Option<u8>, ca: u8, ok: bool, urls: bool) -> Object {
    let group = group(n);
    let name = format!("v1.{group}");
    let mut object = object(&format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"group":"{group}","version":"v1","groupPriorityMinimum":9,"versionPriority":1}}}}"#
    ));
    if let Some(service) = service {
        let json = format!(r#"{{"namespace":"ns","name":"s{service}","port":443}}"#);
        object.put(&["spec", "service"], self::object(&json).into_node());
        if ca > 0 {
            object.set(&["spec", "caBundle"], ["", "QUJD", "REVG"][usize::from(ca)]);
        }
    }
    if urls {
        object.set(&["metadata", "annotations", "portico.dev/backend-urls"], "https://10.9.9.9:1");
    }
    let status = if ok { "True" } else { "False" };
    let condition = format!(r#"{{"conditions":[{{"type":"Available","status":"{status}","reason":"R"}}]}}"#);
    object.put(&["status"], self::object(&condition).into_node());
    object
}

fn apply(index: &mut RouteIndex, step: &Step, affected: &mut AffectedApiServices) {
    let key = |kind: &str, n: &u8| ServiceKey::new("ns", format!("{kind}{n}"));
    match step {
        Step::ApiService { group, service, ca, ok, urls } => {
            index.put(FactSource::ApiServices, &api_service(*group, *service, *ca, *ok, *urls), affected);
        }
        Step::NoApiService(n) => {
            index.remove(FactSource::ApiServices, ServiceKey::new("", format!("v1.{}", group(*n))), affected);
        }
        Step::Service(n, headless, port) => {
            let ip = if *headless { "None" } else { "10.0.0.1" };
            let json = format!(
                r#"{{"metadata":{{"namespace":"ns","name":"s{n}"}},"spec":{{"clusterIP":"{ip}","ports":[{{"name":"p","port":{port}}}]}}}}"#
            );
            index.put(FactSource::Services, &object(&json), affected);
        }
        Step::NoService(n) => index.remove(FactSource::Services, key("s", n), affected),
        Step::Slice { slice, service, ready } => {
            let label = service.map_or(String::new(), |s| format!(r#""kubernetes.io/service-name":"s{s}""#));
            let json = format!(
                r#"{{"metadata":{{"namespace":"ns","name":"e{slice}","labels":{{{label}}}}},"addressType":"IPv4","ports":[{{"name":"p","port":1}}],"endpoints":[{{"addresses":["10.1.0.{slice}"],"conditions":{{"ready":{ready}}}}}]}}"#
            );
            index.put(FactSource::EndpointSlices, &object(&json), affected);
        }
        Step::NoSlice(n) => index.remove(FactSource::EndpointSlices, key("e", n), affected),
        Step::Installed(n, on) => {
            let group_version = GroupVersion::new(group(*n), "v1");
            let name: Arc<str> = group_version.api_service_name().into();
            let one = LocalGroupVersion { group_version, group_priority_minimum: 100, version_priority: 1 };
            index.set_local_group_version(name, on.then_some(one), affected);
        }
    }
}

/// Table compiled from scratch, without history and affected names.
fn compile_all(index: &RouteIndex, settings: &Settings) -> BTreeMap<String, CompiledRoute> {
    index
        .names()
        .iter()
        .filter_map(|n| compile(index, settings, n, 0))
        .map(|c| (c.route.name.clone(), c))
        .collect()
}

/// Expected entries of a facade: the published routes, and exactly the bundles that they refer to.
fn entries(all: &BTreeMap<String, CompiledRoute>) -> BTreeMap<TableEntryKey, Option<CompiledRoute>> {
    let published = || all.values().filter(|c| c.is_published());
    let bundles =
        published().filter_map(|c| c.bundle.as_ref()).map(|b| (TableEntryKey::Bundle(b.hash.clone()), None));
    let routes = published().map(|c| (TableEntryKey::Route(c.route.name.as_str().into()), Some(c.clone())));
    bundles.chain(routes).collect()
}

/// Simulated facade: applies updates and checks that routes never refer to a missing bundle.
#[derive(Default)]
struct Reader(BTreeMap<TableEntryKey, TableEntry>);

impl Reader {
    fn apply(&mut self, update: TableUpdate) {
        match update {
            TableUpdate::Snapshot(snapshot) => self.0 = snapshot.entries.into_iter().collect(),
            TableUpdate::Delta(delta) => {
                for (key, entry) in delta.changes {
                    match entry {
                        Some(entry) => self.0.insert(key, entry),
                        None => self.0.remove(&key),
                    };
                    self.check();
                }
            }
        }
        self.check();
    }

    fn check(&self) {
        for entry in self.0.values() {
            if let TableEntry::Route(route) = entry
                && let Some(Trust::Bundle(hash)) = route.backend.as_ref().map(|b| &b.trust)
            {
                assert!(
                    self.0.contains_key(&TableEntryKey::Bundle(hash.as_str().into())),
                    "{} lacks its bundle",
                    route.name
                );
            }
        }
    }

    fn matches(&self, expected: &BTreeMap<TableEntryKey, Option<CompiledRoute>>) {
        assert!(self.0.keys().eq(expected.keys()), "{:?}\n{:?}", self.0.keys(), expected.keys());
        for (key, entry) in &self.0 {
            if let (TableEntry::Route(route), Some(Some(want))) = (entry, expected.get(key)) {
                let same = CompiledRoute { route: route.clone(), ..want.clone() };
                assert!(same.equals_except_revision(want), "{route:?}\n{want:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_incremental_table_equals_the_naive_one(
        steps in proptest::collection::vec((step(), 0usize..3), 1..60),
        endpoints in any::<bool>(),
        history in 1usize..20,
    ) {
        let mode = if endpoints { ResolveMode::Endpoints } else { ResolveMode::ClusterIp };
        let settings = Settings { mode, ..Settings::default() };
        let (mut index, mut table) = (RouteIndex::default(), Table::default());
        let publisher = Publisher::new(history);
        publisher.mark_complete();
        let (mut always, mut seldom) = (Reader::default(), Reader::default());
        let (mut reader, mut lazy) = (publisher.subscribe(None), publisher.subscribe(None));
        let mut touched = AffectedApiServices::new();
        for (revision, (step, pause)) in steps.iter().enumerate() {
            apply(&mut index, step, &mut touched);
            if *pause == 0 {
                continue; // The next step is applied in the same batch.
            }
            let revision = i64::try_from(revision).unwrap() + 1;
            let changes = table.recompile(&index, &settings, &std::mem::take(&mut touched), revision);
            publisher.publish(revision, changes);
            let expected = compile_all(&index, &settings);
            prop_assert_eq!(table.iter().count(), expected.len());
            for compiled in table.iter() {
                prop_assert!(compiled.equals_except_revision(&expected[&compiled.route.name]));
            }
            let expected = entries(&expected);
            while let Some(update) = reader.try_next() {
                always.apply(update);
            }
            always.matches(&expected);
            if *pause == 2 {
                let resumed = always.0.clone();
                let mut again = Reader(resumed);
                if let Some(update) = publisher.subscribe(Some(revision)).try_next() {
                    again.apply(update);
                }
                again.matches(&expected);
                while let Some(update) = lazy.try_next() {
                    seldom.apply(update);
                }
                seldom.matches(&expected);
            }
        }
    }
}

fn compiled(steps: &[Step], settings: &Settings, name: &str) -> Option<CompiledRoute> {
    let (mut index, mut affected) = (RouteIndex::default(), AffectedApiServices::new());
    steps.iter().for_each(|step| apply(&mut index, step, &mut affected));
    compile(&index, settings, name, 1)
}

#[test]
fn the_registration_group_is_never_proxied() {
    let claim = Step::ApiService { group: 5, service: Some(0), ca: 0, ok: true, urls: false };
    let name = "v1.apiregistration.k8s.io";
    let without_local = compiled(std::slice::from_ref(&claim), &Settings::default(), name).unwrap();
    assert!(!without_local.is_published() && without_local.shadow == Some(Shadow::ReservedGroup));
    let with_local = compiled(&[claim, Step::Installed(5, true)], &Settings::default(), name).unwrap();
    assert!(with_local.is_published() && with_local.route.is_local());
}

#[test]
fn a_backend_hides_the_local_chain_until_it_is_removed() {
    let backend = Step::ApiService { group: 1, service: Some(0), ca: 1, ok: true, urls: false };
    let installed = Step::Installed(1, true);
    let hidden = compiled(&[installed.clone(), backend.clone()], &Settings::default(), "v1.g1").unwrap();
    assert_eq!((hidden.shadow, hidden.route.is_local()), (Some(Shadow::LocalHidden), false));
    let without_backend =
        compiled(&[installed, backend.clone(), Step::NoApiService(1)], &Settings::default(), "v1.g1")
            .unwrap();
    assert!(
        without_backend.route.is_local()
            && without_backend.route.available.ok
            && without_backend.route.group_priority_minimum == 100
    );
    assert!(compiled(&[backend, Step::NoApiService(1)], &Settings::default(), "v1.g1").is_none());
    let local_api_service = Step::ApiService { group: 1, service: None, ca: 0, ok: true, urls: false };
    assert_eq!(
        compiled(&[local_api_service], &Settings::default(), "v1.g1").unwrap().shadow,
        Some(Shadow::NotServed)
    );
}

#[test]
fn backend_urls_and_the_services_of_this_api_need_no_service_object() {
    let by_url = Step::ApiService { group: 1, service: Some(0), ca: 0, ok: true, urls: true };
    let backend = compiled(&[by_url], &Settings::default(), "v1.g1").unwrap().route.backend.clone().unwrap();
    assert_eq!(backend.targets, [Target { host: "10.9.9.9".into(), port: 1 }]);
    assert_eq!(backend.server_name, "s0.ns.svc");

    let own = Target { host: "127.0.0.1".into(), port: 6443 };
    let settings = Settings { loopback: Some(own.clone()), ..Settings::default() };
    let mut claim = api_service(1, Some(0), 0, true, false);
    claim.set(&["spec", "service", "namespace"], "default");
    claim.set(&["spec", "service", "name"], "kubernetes");
    let (mut index, mut affected) = (RouteIndex::default(), AffectedApiServices::new());
    index.put(FactSource::ApiServices, &claim, &mut affected);
    assert_eq!(compile(&index, &settings, "v1.g1", 1).unwrap().route.backend.clone().unwrap().targets, [own]);
    let unresolved =
        compile(&index, &Settings::default(), "v1.g1", 1).unwrap().route.backend.clone().unwrap();
    assert_eq!(unresolved.resolve_error.as_ref().unwrap().reason, "ServiceNotFound");
}
