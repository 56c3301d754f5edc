//! Tests of the elected candidate and the strategy, with the cases of upstream's `election_test.go`.

use super::*;

fn candidate(name: &str, emulation: &str, binary: &str, created: i64) -> Candidate {
    Candidate {
        name: name.to_owned(),
        strategy: OLDEST_EMULATION_VERSION.to_owned(),
        ping_time: None,
        renew_time: Timestamp::UNIX_EPOCH,
        binary_version: parse_tolerant(binary),
        emulation_version: parse_tolerant(emulation),
        creation_time: Timestamp::from_second(created).ok(),
    }
}

/// Emulation version, binary version and creation time of each candidate; index of the leader.
type Row = (&'static [(&'static str, &'static str, i64)], Option<usize>);

#[test]
fn the_oldest_emulation_version_leads_then_the_oldest_binary_then_the_oldest_object() {
    let rows: [Row; 9] = [
        (&[], None),
        (&[("0.1.0", "0.1.0", 1)], Some(0)),
        (&[("0.2.0", "0.2.0", 1), ("0.1.0", "0.1.0", 2)], Some(1)),
        (&[("0.1.0", "0.2.0", 1), ("0.1.0", "0.1.0", 2)], Some(1)),
        (&[("0.1.0", "0.1.0", 2), ("0.1.0", "0.1.0", 1)], Some(1)),
        (&[("1.10.0", "1.10.0", 1), ("1.9.0", "1.10.0", 2)], Some(1)),
        (&[("1.9.0-rc.1", "1.9.0", 2), ("1.9.0", "1.9.0", 1)], Some(0)),
        (&[("", "1.0.0", 1), ("2.0.0", "2.0.0", 2)], Some(1)),
        (&[("nothing", "1.0.0", 1), ("1.0.0", "nothing", 2)], None),
    ];
    for (versions, want) in rows {
        let to_candidate = |(at, (emulation, binary, created)): (usize, &(&str, &str, i64))| {
            candidate(&at.to_string(), emulation, binary, *created)
        };
        let all: Vec<Candidate> = versions.iter().enumerate().map(to_candidate).collect();
        let elected = oldest(&all).map(|candidate| candidate.name.clone());
        assert_eq!(elected, want.map(|at| at.to_string()), "{versions:?}");
    }
}

#[test]
fn the_newest_binaries_choose_the_strategy_and_must_agree() {
    let with = |name: &str, binary: &str, strategy: &str| Candidate {
        strategy: strategy.to_owned(),
        ..candidate(name, "1.0.0", binary, 1)
    };
    let pick = |all: &[Candidate]| strategy(&all.iter().collect::<Vec<_>>()).map(str::to_owned);
    let (old, new) = (with("a", "1.0.0", "x/one"), with("b", "1.1.0", "x/two"));
    assert_eq!(pick(&[]), Err("no candidates".to_owned()));
    assert_eq!(pick(std::slice::from_ref(&old)), Ok("x/one".to_owned()));
    assert_eq!(pick(&[old.clone(), new.clone()]), Ok("x/two".to_owned()));
    assert_eq!(pick(&[new.clone(), old.clone()]), Ok("x/two".to_owned()));
    assert_eq!(
        pick(&[new, with("c", "v1.1", "x/three"), old]),
        Err(
            "candidates \"b\", \"c\" at same binary version but received differing strategies x/two, x/three"
                .to_owned()
        )
    );
}

#[test]
fn versions_are_read_as_tolerantly_as_upstream_reads_them() {
    let rows = [
        ("v1.36", Some("1.36.0")),
        (" 1 ", Some("1.0.0")),
        ("01.002.0003", Some("1.2.3")),
        ("00.0.0", Some("0.0.0")),
        ("1.2.3-alpha.1+x", Some("1.2.3-alpha.1+x")),
        ("1.2-alpha", None),
        ("", None),
        ("1.2.3.4", None),
        ("one", None),
    ];
    for (text, want) in rows {
        assert_eq!(parse_tolerant(text).map(|version| version.to_string()).as_deref(), want, "{text}");
    }
}

#[test]
fn a_candidate_is_valid_for_half_an_hour_after_its_renewal() {
    let mut object = Object::default();
    object.set(&["metadata", "name"], "one");
    let now = time::parse("2026-01-01T12:00:00Z").unwrap();
    assert_eq!(Candidate::parse_valid(&object, now), None);
    object.set(&["spec", "renewTime"], "2026-01-01T11:30:00.000000Z");
    assert_eq!(Candidate::parse_valid(&object, now).map(|candidate| candidate.name), Some("one".to_owned()));
    object.set(&["spec", "renewTime"], "2026-01-01T11:29:59.000000Z");
    assert_eq!(Candidate::parse_valid(&object, now), None);
}
