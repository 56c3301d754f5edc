//! Tests of explained stages.

use std::sync::Arc;

use super::*;
use crate::informers::Informers;
use crate::{Installed, Routes, Settings};

#[test]
fn paths_group_versions_and_names_mean_the_same() {
    for asked in ["/apis/g.io/v1/namespaces/x", "/apis/g.io/v1", "/apis/g.io/v1?x=/y", "g.io/v1", "v1.g.io"] {
        assert_eq!(group_version_of(asked), Some(GroupVersion::new("g.io", "v1")), "{asked}");
    }
    for asked in ["/api", "/api/", "/api/v1/pods", "v1", "v1."] {
        assert_eq!(group_version_of(asked), Some(GroupVersion::new("", "v1")), "{asked}");
    }
    for asked in ["", "/", "/apis", "/apis/g.io", "/healthz", "g/v/x", "/apis//v1", "x"] {
        assert_eq!(group_version_of(asked), None, "{asked}");
    }
}

fn observed(seen_by: &str, failed_at: Option<ReachStage>, since: &str) -> Reached {
    Reached { seen_by: seen_by.into(), failed_at, message: "why".into(), since: since.into() }
}

#[test]
fn the_first_stage_that_nobody_passed_is_the_last_one_reported() {
    let stages = reached(&[observed("control", Some(ReachStage::Tls), "2026-01-01T00:00:00Z")]);
    let reported: Vec<_> = stages.iter().map(|s| (s.stage, s.ok)).collect();
    assert_eq!(reported, [("dial", true), ("tls", false)]);
    assert_eq!(stages[1].message, "control: why");
}

#[test]
fn a_backend_that_one_observer_reaches_is_reached() {
    let stages = reached(&[observed("control", Some(ReachStage::Dial), "1"), observed("edge", None, "2")]);
    assert!(stages.iter().all(|s| s.ok) && stages.len() == 3);
    assert_eq!(
        (stages[0].seen_by.as_slice(), stages[0].message.as_str()),
        (&["edge".to_owned()][..], "control: why")
    );
    assert!(reached(&[]).is_empty());
}

#[test]
fn a_backend_without_an_address_has_no_stages_of_a_connection() {
    let seen = [observed("control", None, "1")];
    let resolved = Backend::default();
    assert_eq!(connected(&resolved, &seen).len(), 3);
    let error = ResolveError { reason: "ServiceNotFound".into(), message: "missing".into() };
    assert!(connected(&Backend { resolve_error: Some(error), ..resolved }, &seen).is_empty());
}

#[test]
fn missing_versions_and_those_that_the_server_serves_itself_are_explained() {
    let installed = Installed { group_version: GroupVersion::new("apps", "v1"), ..Installed::default() };
    let routes = Routes::new(Settings::default(), &Informers::default(), [installed]);
    let stages = routes.explain("/apis/nope/v1", &NoEvidence);
    assert_eq!((stages.len(), stages[0].reason.as_str(), stages[0].ok), (1, "NotFound", false));
    let stages = routes.explain("apps/v1", &NoEvidence);
    let reported: Vec<_> = stages.iter().map(|s| (s.stage, s.ok)).collect();
    assert_eq!(
        reported,
        [("registered", true), ("available", true), ("published", true), ("acknowledged", true)]
    );
}

#[test]
fn a_facade_that_lags_or_refuses_is_named() {
    let mut compiled = Routes::new(
        Settings::default(),
        &Informers::default(),
        [Installed { group_version: GroupVersion::new("apps", "v1"), ..Installed::default() }],
    )
    .get("v1.apps")
    .unwrap();
    Arc::make_mut(&mut compiled.route).revision = 7;
    let ack = |facade: &str, revision, refused: Option<&str>| Ack {
        facade: facade.into(),
        revision,
        refused: refused.map(str::to_owned),
    };
    let stage = acknowledged(&compiled, &[ack("a", 7, None), ack("b", 6, None), ack("c", 9, Some("bad CA"))]);
    assert_eq!(stage.message, "b is at revision 6; c refused the route: bad CA");
    assert_eq!((stage.ok, stage.seen_by), (false, vec!["a".to_owned()]));
    let unknown = acknowledged(&compiled, &[]);
    assert_eq!((unknown.ok, &*unknown.reason), (true, "NotReported"), "there may be no facade");
}

/// Source with statuses of versions in definitions.
struct Defined(Vec<VersionStatus>);

impl Evidence for Defined {
    fn reached(&self, _: &str) -> Vec<Reached> {
        Vec::new()
    }

    fn acks(&self, _: &str) -> Vec<Ack> {
        Vec::new()
    }

    fn definitions(&self, _: &GroupVersion) -> Vec<VersionStatus> {
        self.0.clone()
    }
}

#[test]
fn a_served_definition_is_registered_and_another_has_the_reason() {
    let version = |serves, reason: &str| VersionStatus {
        definition: "foos.g.io".into(),
        serves,
        reason: reason.into(),
        message: "why".into(),
        since: "2026-01-01T00:00:00Z".into(),
    };
    let routes = Routes::new(Settings::default(), &Informers::default(), []);
    let reported = |versions: Vec<VersionStatus>| {
        let stages = routes.explain("g.io/v1", &Defined(versions));
        stages.into_iter().map(|s| (s.stage, s.ok, s.reason)).collect::<Vec<_>>()
    };
    let established = ("defined", true, "InitialNamesAccepted".to_owned());
    let conflicting = ("defined", false, "KindConflict".to_owned());
    let registered = ("registered", true, "Registered".to_owned());
    assert_eq!(
        reported(vec![version(true, "InitialNamesAccepted"), version(false, "KindConflict")]),
        [registered, established, conflicting.clone()]
    );
    let none = ("registered", false, "NotServed".to_owned());
    assert_eq!(reported(vec![version(false, "KindConflict")]), [none, conflicting]);
}
