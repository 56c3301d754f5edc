//! Changes that arrive together become active together.

use std::time::Duration;

use portico_kit::health::Health;
use portico_machinery::rbac::{Binding, RoleRef, Rule, Subject};
use portico_machinery::route::Route;
use portico_machinery::{Attributes, GroupVersion, UserInfo};

use super::*;

const PATH: &str = "/apis/a.example/v1";

fn configuration() -> Configuration {
    let synced = Signal::new("synced");
    Configuration::new(
        RouteTable::default(),
        vec![AuthorizationMode::Rbac],
        Health::new(Duration::ZERO),
        synced,
    )
}

fn version(revision: i64) -> Version {
    Version { store_id: "s".to_owned(), revision, ..Version::default() }
}

/// A route, and the role and binding that let all users read it; or, unless `exist`, the removal of all three.
fn entries(revision: i64, exist: bool) -> Vec<Entry> {
    let words = |word: &str| vec![word.to_owned()];
    let rule = Rule { verbs: words("get"), non_resource_urls: words(PATH), ..Rule::default() };
    let binding = Binding {
        role: RoleRef { is_cluster_role: true, name: "reader".to_owned() },
        subjects: vec![Subject::Group("everybody".to_owned())],
    };
    let (name, group_version) = ("v1.a.example".to_owned(), GroupVersion::new("a.example", "v1"));
    let route = Route { name: name.clone(), group_version, ..Route::default() };
    let all = [
        (PayloadKind::Route, name, Payload::Route(Arc::new(route))),
        (
            PayloadKind::Rbac,
            "clusterroles/reader".to_owned(),
            Payload::Rbac(Arc::new(Fact::Rules(vec![rule]))),
        ),
        (
            PayloadKind::Rbac,
            "clusterrolebindings/reader".to_owned(),
            Payload::Rbac(Arc::new(Fact::Binding(binding))),
        ),
        (PayloadKind::Setting, setting::ISSUERS.to_owned(), Payload::Setting("https://i".to_owned())),
    ];
    all.map(|(kind, key, payload)| Entry { kind, key, revision, payload: exist.then_some(payload) }).into()
}

/// Returns whether the route exists, whether its path may be read, and whether its issuer is known.
fn visible_parts(in_force: &ActiveConfig) -> [bool; 3] {
    let user = UserInfo::new("u", ["everybody"]);
    let question = Attributes::path(user, "get", PATH);
    [
        in_force.routes.find(PATH).is_some(),
        in_force.authorizer.authorize(&question).is_allowed(),
        in_force.issuer.configuration("h:1").is_some(),
    ]
}

#[test]
fn a_request_keeps_the_configuration_that_it_started_with() {
    let configuration = configuration();
    let before = configuration.active.load_full();
    assert_eq!(configuration.change(version(1), entries(1, true)), []);
    let after = configuration.active.load_full();
    assert_eq!(configuration.replace(version(2), entries(2, false)), []);
    assert_eq!([visible_parts(&before), visible_parts(&after)], [[false; 3], [true; 3]]);
    assert_eq!(visible_parts(&configuration.active.load()), [false; 3]);
}

#[test]
fn readers_never_see_a_part_of_a_change() {
    let configuration = configuration();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut both = [0_u32; 2];
            while both.iter().any(|count| *count < 200) {
                let seen = visible_parts(&configuration.active.load());
                assert!(seen == [false; 3] || seen == [true; 3], "{seen:?}");
                both[usize::from(seen[0])] += 1;
            }
        });
        let mut revision = 0;
        while !reader.is_finished() {
            revision += 1;
            configuration.change(version(revision), entries(revision, revision % 2 == 0));
        }
    });
}

#[test]
fn an_equal_snapshot_replaces_nothing_unless_the_store_was_restored() {
    let configuration = configuration();
    configuration.replace(version(1), entries(1, true));
    let (before, changed) = (configuration.active.load_full(), configuration.subscribe());
    let is_replaced =
        || changed.has_changed().unwrap() || !Arc::ptr_eq(&before, &configuration.active.load_full());
    configuration.replace(version(5), entries(1, true));
    assert!(!is_replaced());
    assert_eq!(configuration.version(), Some(version(5)));
    let restored = Version { epoch: "2".to_owned(), ..version(5) };
    configuration.replace(restored, entries(1, true));
    assert!(is_replaced());
}

#[test]
fn a_snapshot_with_another_revision_or_other_entries_replaces_the_configuration() {
    for other in [entries(2, true), entries(1, true).split_off(1), entries(1, false)] {
        let configuration = configuration();
        configuration.replace(version(1), entries(1, true));
        let changed = configuration.subscribe();
        configuration.replace(version(2), other);
        assert!(changed.has_changed().unwrap());
    }
}
