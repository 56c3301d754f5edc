//! Tests of explained stages.

use std::sync::Arc;

use super::*;
use crate::informers::Informers;
use crate::{LocalGroupVersion, Routes, Settings};

#[test]
fn paths_group_versions_and_names_mean_the_same() {
    for query in ["/apis/g.io/v1/namespaces/x", "/apis/g.io/v1", "/apis/g.io/v1?x=/y", "g.io/v1", "v1.g.io"] {
        assert_eq!(parse_group_version(query), Some(GroupVersion::new("g.io", "v1")), "{query}");
    }
    for query in ["/api", "/api/", "/api/v1/pods", "v1", "v1."] {
        assert_eq!(parse_group_version(query), Some(GroupVersion::new("", "v1")), "{query}");
    }
    for query in ["", "/", "/apis", "/apis/g.io", "/healthz", "g/v/x", "/apis//v1", "x"] {
        assert_eq!(parse_group_version(query), None, "{query}");
    }
}

fn observation(observer: &str, failed_at: Option<ReachStage>, since: &str) -> ReachObservation {
    ReachObservation { observer: observer.into(), failed_at, message: "why".into(), since: since.into() }
}

#[test]
fn the_first_stage_without_success_is_the_last_one_reported() {
    let stages = observed_stages(&[observation("control", Some(ReachStage::Tls), "2026-01-01T00:00:00Z")]);
    let reported: Vec<_> = stages.iter().map(|s| (s.stage, s.ok)).collect();
    assert_eq!(reported, [("dial", true), ("tls", false)]);
    assert_eq!(stages[1].message, "control: why");
}

#[test]
fn a_backend_that_one_observer_reaches_is_reached() {
    let stages = observed_stages(&[
        observation("control", Some(ReachStage::Dial), "1"),
        observation("edge", None, "2"),
    ]);
    assert!(stages.iter().all(|s| s.ok) && stages.len() == 3);
    assert_eq!(
        (stages[0].observers.as_slice(), stages[0].message.as_str()),
        (&["edge".to_owned()][..], "control: why")
    );
    assert!(observed_stages(&[]).is_empty());
}

#[test]
fn a_backend_without_an_address_has_no_connection_stages() {
    let observations = [observation("control", None, "1")];
    let resolved = Backend::default();
    assert_eq!(connection_stages(&resolved, &observations).len(), 3);
    let error = ResolveError { reason: "ServiceNotFound".into(), message: "missing".into() };
    assert!(connection_stages(&Backend { resolve_error: Some(error), ..resolved }, &observations).is_empty());
}

#[test]
fn missing_and_local_versions_are_explained() {
    let installed =
        LocalGroupVersion { group_version: GroupVersion::new("apps", "v1"), ..LocalGroupVersion::default() };
    let routes = Routes::new(Settings::default(), &Informers::default(), [installed]);
    let stages = routes.explain("/apis/nope/v1", &NoExplainSource);
    assert_eq!((stages.len(), stages[0].reason.as_str(), stages[0].ok), (1, "NotFound", false));
    let stages = routes.explain("apps/v1", &NoExplainSource);
    let reported: Vec<_> = stages.iter().map(|s| (s.stage, s.ok)).collect();
    assert_eq!(
        reported,
        [("registered", true), ("available", true), ("published", true), ("acknowledged", true)]
    );
}

#[test]
fn a_facade_that_lags_or_refuses_is_reported() {
    let mut compiled = Routes::new(
        Settings::default(),
        &Informers::default(),
        [LocalGroupVersion {
            group_version: GroupVersion::new("apps", "v1"),
            ..LocalGroupVersion::default()
        }],
    )
    .get("v1.apps")
    .unwrap();
    Arc::make_mut(&mut compiled.route).revision = 7;
    let ack = |facade: &str, revision, refused: Option<&str>| FacadeAck {
        facade: facade.into(),
        revision,
        refused: refused.map(str::to_owned),
    };
    let stage =
        acknowledged_stage(&compiled, &[ack("a", 7, None), ack("b", 6, None), ack("c", 9, Some("bad CA"))]);
    assert_eq!(stage.message, "b is at revision 6; c refused the route: bad CA");
    assert_eq!((stage.ok, stage.observers), (false, vec!["a".to_owned()]));
    let unknown = acknowledged_stage(&compiled, &[]);
    assert_eq!((unknown.ok, &*unknown.reason), (true, "NotReported"), "an installation may have no facade");
}

/// Source with statuses of versions in definitions.
struct DefinitionSource(Vec<VersionStatus>);

impl ExplainSource for DefinitionSource {
    fn observations(&self, _: &str) -> Vec<ReachObservation> {
        Vec::new()
    }

    fn acks(&self, _: &str) -> Vec<FacadeAck> {
        Vec::new()
    }

    fn definitions(&self, _: &GroupVersion) -> Vec<VersionStatus> {
        self.0.clone()
    }
}

#[test]
fn a_served_definition_is_registered_and_another_has_the_reason() {
    let version = |is_served, reason: &str| VersionStatus {
        definition: "foos.g.io".into(),
        is_served,
        reason: reason.into(),
        message: "why".into(),
        since: "2026-01-01T00:00:00Z".into(),
    };
    let routes = Routes::new(Settings::default(), &Informers::default(), []);
    let reported = |versions: Vec<VersionStatus>| {
        let stages = routes.explain("g.io/v1", &DefinitionSource(versions));
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
