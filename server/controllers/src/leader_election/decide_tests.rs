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
    Candidate::valid(&object, now()).unwrap()
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

fn elected(holder: &str) -> Elected {
    Elected { strategy: OLDEST_EMULATION_VERSION.to_owned(), holder: Some(holder.to_owned()) }
}

fn stuck(why: &str) -> Result<Step, Stuck> {
    Err(Stuck { why: why.to_owned(), look_again: false })
}

#[test]
fn a_step_follows_from_the_lease_and_from_when_candidates_were_asked_and_answered() {
    let (held, lapsed) = (lease("a", -1), lease("a", -11));
    let ping = |names: &[&str]| Ok(Step::Ping(names.iter().map(|name| (*name).to_owned()).collect()));
    let elect = |holder| Ok(Step::Elect(elected(holder)));
    type Row<'a> = (&'a str, Vec<Candidate>, Option<&'a Object>, Result<Step, Stuck>);
    let rows: Vec<Row<'_>> = vec![
        ("no candidates", vec![], None, Ok(Step::Rest)),
        ("a fresh candidate", vec![candidate("a", "1.1.0", None, 0)], None, elect("a")),
        ("one that has been silent", vec![candidate("a", "1.1.0", None, -60)], None, ping(&["a"])),
        ("one that was asked just now", vec![candidate("a", "1.1.0", Some(-1), -60)], None, Ok(Step::Wait)),
        ("one that has answered", vec![candidate("a", "1.1.0", Some(-3), -2)], None, elect("a")),
        (
            "one that never answered",
            vec![candidate("a", "1.1.0", Some(-6), -60)],
            None,
            stuck("no available candidates"),
        ),
        (
            "one of two that never answered",
            vec![candidate("a", "1.0.0", Some(-6), -60), candidate("b", "1.1.0", Some(-6), -4)],
            None,
            elect("b"),
        ),
        ("one asked long ago", vec![candidate("a", "1.1.0", Some(-90), -60)], None, ping(&["a"])),
        ("the best holds it", vec![candidate("a", "1.0.0", None, -60)], Some(&held), Ok(Step::Wait)),
        (
            "a better one comes",
            vec![candidate("a", "1.1.0", None, -60), candidate("b", "1.0.0", None, 0)],
            Some(&held),
            ping(&["a"]),
        ),
        (
            "a better one, and all have answered",
            vec![candidate("a", "1.1.0", Some(-2), -1), candidate("b", "1.0.0", None, 0)],
            Some(&held),
            elect("b"),
        ),
        (
            "a worse one comes",
            vec![candidate("a", "1.0.0", None, -60), candidate("b", "1.1.0", None, 0)],
            Some(&held),
            Ok(Step::Wait),
        ),
        ("the holder stopped to renew", vec![candidate("b", "1.1.0", None, 0)], Some(&lapsed), elect("b")),
        (
            "candidates renew once in a quarter of an hour",
            vec![candidate("a", "1.0.0", None, -901)],
            Some(&held),
            ping(&["a"]),
        ),
    ];
    for (what, candidates, lease, want) in rows {
        assert_eq!(step(&candidates, lease, now()), want, "{what}");
    }
}

#[test]
fn another_strategy_than_ours_makes_a_lease_without_holder_and_leaves_one_that_is_held() {
    let mut other = candidate("a", "1.0.0", None, 0);
    other.strategy = "example.com/Newest".to_owned();
    let won = Elected { strategy: other.strategy.clone(), holder: None };
    assert_eq!(step(std::slice::from_ref(&other), None, now()), Ok(Step::Elect(won.clone())));
    let made = created("ns", "lock", &won, now());
    assert!(!made.at(&["spec", "holderIdentity"]).is_present());
    assert_eq!(made.at(&["spec", "strategy"]).str(), "example.com/Newest");
    assert_eq!(step(&[other], Some(&lease("b", -1)), now()), Ok(Step::Wait));
}

#[test]
fn candidates_that_disagree_are_looked_at_again_only_while_the_lease_is_held() {
    let mut other = candidate("b", "1.0.0", None, 0);
    other.strategy = "example.com/Newest".to_owned();
    let both = [candidate("a", "1.0.0", None, 0), other];
    assert!(!step(&both, None, now()).unwrap_err().look_again);
    assert!(step(&both, Some(&lease("a", -1)), now()).unwrap_err().look_again);
}

#[test]
fn a_lease_is_handed_over_when_its_holder_is_gone_and_otherwise_names_the_preferred_one() {
    assert_eq!(changed(&lease("a", -1), &elected("a"), now()), None);
    assert_eq!(changed(&lease("a", -11), &elected("a"), now()), None);
    let preferred = changed(&lease("a", -1), &elected("b"), now()).unwrap();
    let at_spec = |object: &Object, field: &str| object.at(&["spec", field]).str().to_owned();
    assert_eq!(
        (at_spec(&preferred, "holderIdentity"), at_spec(&preferred, "preferredHolder")),
        ("a".to_owned(), "b".to_owned())
    );
    let mut lapsed = lease("a", -11);
    lapsed.set(&["spec", "preferredHolder"], "b");
    for lease in [lapsed, lease("", -1)] {
        let taken = changed(&lease, &elected("b"), now()).unwrap();
        assert_eq!(at_spec(&taken, "holderIdentity"), "b");
        assert_eq!(at_spec(&taken, "renewTime"), at(0));
        assert_eq!(taken.at(&["spec", "leaseDurationSeconds"]).i64(), Some(5));
        assert!(!taken.at(&["spec", "preferredHolder"]).is_present());
        assert!(!taken.at(&["spec", "acquireTime"]).is_present());
    }
}
