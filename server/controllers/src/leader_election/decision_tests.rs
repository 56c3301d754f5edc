//! Tests of the steps of an election, with the cases of upstream's `leaderelection_controller_test.go`.

use super::*;

const NOW: i64 = 1_800_000_000;

fn at(seconds: i64) -> String {
    time::rfc3339_micro(Timestamp::from_second(NOW + seconds).unwrap())
}

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

/// Creates a candidate with its name, versions, and the times of its ping and renewal in seconds from now.
fn candidate(name: &str, version: &str, pinged: Option<i64>, renewed: i64) -> Candidate {
    let mut object = Object::default();
    object.set(&["metadata", "name"], name);
    object.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z");
    object.set(&["spec", "strategy"], OLDEST_EMULATION_VERSION);
    object.set(&["spec", "emulationVersion"], version);
    object.set(&["spec", "binaryVersion"], version);
    object.set(&["spec", "renewTime"], at(renewed));
    if let Some(pinged) = pinged {
        object.set(&["spec", "pingTime"], at(pinged));
    }
    Candidate::parse_valid(&object, now()).unwrap()
}

fn lease(holder: &str, renewed: i64) -> Object {
    let mut lease = Object::default();
    lease.set(&["spec", "strategy"], OLDEST_EMULATION_VERSION);
    lease.set(&["spec", "holderIdentity"], holder);
    lease.set(&["spec", "leaseDurationSeconds"], 10);
    lease.set(&["spec", "renewTime"], at(renewed));
    lease.set(&["spec", "acquireTime"], at(-100));
    lease
}

fn elected(holder: &str) -> ElectionResult {
    ElectionResult { strategy: OLDEST_EMULATION_VERSION.to_owned(), holder: Some(holder.to_owned()) }
}

fn failure(reason: &str) -> Result<ElectionStep, ElectionFailure> {
    Err(ElectionFailure { reason: reason.to_owned(), is_retryable: false })
}

#[test]
fn a_step_depends_on_the_lease_and_the_times_of_pings_and_renewals() {
    let (held, expired) = (lease("a", -1), lease("a", -11));
    let ping = |names: &[&str]| Ok(ElectionStep::Ping(names.iter().map(|name| (*name).to_owned()).collect()));
    let elect = |holder| Ok(ElectionStep::Elect(elected(holder)));
    type Row<'a> = (&'a str, Vec<Candidate>, Option<&'a Object>, Result<ElectionStep, ElectionFailure>);
    let rows: Vec<Row<'_>> = vec![
        ("no candidates", vec![], None, Ok(ElectionStep::Idle)),
        ("a candidate that has just renewed", vec![candidate("a", "1.1.0", None, 0)], None, elect("a")),
        (
            "a candidate without a recent renewal",
            vec![candidate("a", "1.1.0", None, -60)],
            None,
            ping(&["a"]),
        ),
        (
            "a candidate with a recent ping",
            vec![candidate("a", "1.1.0", Some(-1), -60)],
            None,
            Ok(ElectionStep::Wait),
        ),
        (
            "a candidate that has renewed after the ping",
            vec![candidate("a", "1.1.0", Some(-3), -2)],
            None,
            elect("a"),
        ),
        (
            "a candidate that has not renewed after the ping",
            vec![candidate("a", "1.1.0", Some(-6), -60)],
            None,
            failure("no available candidates"),
        ),
        (
            "one of two candidates has not renewed after the ping",
            vec![candidate("a", "1.0.0", Some(-6), -60), candidate("b", "1.1.0", Some(-6), -4)],
            None,
            elect("b"),
        ),
        (
            "a candidate whose ping is outdated",
            vec![candidate("a", "1.1.0", Some(-90), -60)],
            None,
            ping(&["a"]),
        ),
        (
            "the preferred candidate holds the lease",
            vec![candidate("a", "1.0.0", None, -60)],
            Some(&held),
            Ok(ElectionStep::Wait),
        ),
        (
            "a preferred candidate appears",
            vec![candidate("a", "1.1.0", None, -60), candidate("b", "1.0.0", None, 0)],
            Some(&held),
            ping(&["a"]),
        ),
        (
            "a preferred candidate, and all candidates have renewed",
            vec![candidate("a", "1.1.0", Some(-2), -1), candidate("b", "1.0.0", None, 0)],
            Some(&held),
            elect("b"),
        ),
        (
            "a candidate with a newer version appears",
            vec![candidate("a", "1.0.0", None, -60), candidate("b", "1.1.0", None, 0)],
            Some(&held),
            Ok(ElectionStep::Wait),
        ),
        (
            "the holder has stopped renewing",
            vec![candidate("b", "1.1.0", None, 0)],
            Some(&expired),
            elect("b"),
        ),
        (
            "a renewal older than 15 minutes",
            vec![candidate("a", "1.0.0", None, -901)],
            Some(&held),
            ping(&["a"]),
        ),
    ];
    for (case, candidates, lease, want) in rows {
        assert_eq!(step(&candidates, lease, now()), want, "{case}");
    }
}

#[test]
fn an_unknown_strategy_creates_a_lease_without_holder_and_keeps_one_that_is_held() {
    let mut other = candidate("a", "1.0.0", None, 0);
    other.strategy = "example.com/Newest".to_owned();
    let result = ElectionResult { strategy: other.strategy.clone(), holder: None };
    assert_eq!(step(std::slice::from_ref(&other), None, now()), Ok(ElectionStep::Elect(result.clone())));
    let created = new_lease("ns", "lock", &result, now());
    assert!(!created.at(&["spec", "holderIdentity"]).is_present());
    assert_eq!(created.at(&["spec", "strategy"]).str(), "example.com/Newest");
    assert_eq!(step(&[other], Some(&lease("b", -1)), now()), Ok(ElectionStep::Wait));
}

#[test]
fn disagreeing_candidates_are_retried_only_while_the_lease_is_held() {
    let mut other = candidate("b", "1.0.0", None, 0);
    other.strategy = "example.com/Newest".to_owned();
    let both = [candidate("a", "1.0.0", None, 0), other];
    assert!(!step(&both, None, now()).unwrap_err().is_retryable);
    assert!(step(&both, Some(&lease("a", -1)), now()).unwrap_err().is_retryable);
}

#[test]
fn an_expired_lease_gets_the_new_holder_and_a_held_one_the_preferred_holder() {
    assert_eq!(updated_lease(&lease("a", -1), &elected("a"), now()), None);
    assert_eq!(updated_lease(&lease("a", -11), &elected("a"), now()), None);
    let preferred = updated_lease(&lease("a", -1), &elected("b"), now()).unwrap();
    let at_spec = |object: &Object, field: &str| object.at(&["spec", field]).str().to_owned();
    assert_eq!(
        (at_spec(&preferred, "holderIdentity"), at_spec(&preferred, "preferredHolder")),
        ("a".to_owned(), "b".to_owned())
    );
    let mut expired = lease("a", -11);
    expired.set(&["spec", "preferredHolder"], "b");
    for lease in [expired, lease("", -1)] {
        let updated = updated_lease(&lease, &elected("b"), now()).unwrap();
        assert_eq!(at_spec(&updated, "holderIdentity"), "b");
        assert_eq!(at_spec(&updated, "renewTime"), at(0));
        assert_eq!(updated.at(&["spec", "leaseDurationSeconds"]).i64(), Some(5));
        assert!(!updated.at(&["spec", "preferredHolder"]).is_present());
        assert!(!updated.at(&["spec", "acquireTime"]).is_present());
    }
}
