//! Tests of the merge rules, and of the property that no path changes its meaning.

use proptest::prelude::*;

use super::*;

fn spec(json: &str) -> SpecV2 {
    SpecV2::canonical(json.as_bytes()).unwrap()
}

fn merge_all(parts: &[&str]) -> SpecV2 {
    let mut merger = Merger::default();
    parts.iter().for_each(|p| merger.add(spec(p)));
    merger.finish()
}

fn keys(pieces: &RawMembers) -> String {
    pieces.keys().cloned().collect::<Vec<_>>().join(" ")
}

const BASE: &str = r##"{"paths":{"/a":{"get":{"schema":{"$ref":"#/definitions/T"}}}},"definitions":{"T":{"type":"object"}}}"##;

#[test]
fn equal_types_are_shared_and_their_kinds_united() {
    let kinds = |group: &str| {
        format!(
            r##"{{"paths":{{"/{group}":{{"get":{{"schema":{{"$ref":"#/definitions/D"}}}}}}}},"definitions":{{"D":{{"type":"object",
              "x-kubernetes-group-version-kind":[{{"group":"{group}","version":"v1","kind":"D"}}]}}}}}}"##
        )
    };
    let all = merge_all(&[&kinds("b"), &kinds("a"), &kinds("b2")]);
    assert_eq!(keys(&all.definitions), "D");
    let want = r#"[{"group":"a","version":"v1","kind":"D"},{"group":"b","version":"v1","kind":"D"},{"group":"b2","version":"v1","kind":"D"}]"#;
    assert!(all.definitions["D"].get().contains(want), "{}", all.definitions["D"].get());
}

#[test]
fn different_types_are_renamed_and_an_equal_renamed_one_is_used_again() {
    let other = |path: &str, title: &str| {
        format!(
            r##"{{"paths":{{"{path}":{{"get":{{"schema":{{"$ref":"#/definitions/T"}}}}}}}},"definitions":{{"T":{{"title":"{title}"}}}}}}"##
        )
    };
    let all = merge_all(&[BASE, &other("/b", "x"), &other("/c", "y"), &other("/d", "x")]);
    assert_eq!(keys(&all.definitions), "T T_v2 T_v3");
    for (path, name) in [("/a", "T"), ("/b", "T_v2"), ("/c", "T_v3"), ("/d", "T_v2")] {
        assert!(all.paths[path].get().contains(&format!("#/definitions/{name}\"")), "{path}");
    }
}

#[test]
fn a_new_name_skips_names_that_either_side_uses() {
    let other = r##"{"paths":{"/b":{"get":{"schema":[{"$ref":"#/definitions/T"},{"$ref":"#/definitions/T_v2"}]}}},"definitions":{"T":{"title":"x"},"T_v2":{"title":"own"}}}"##;
    let all = merge_all(&[BASE, other]);
    assert_eq!(keys(&all.definitions), "T T_v2 T_v3");
    assert_eq!(all.definitions["T_v2"].get(), r#"{"title":"own"}"#);
    assert!(all.paths["/b"].get().contains("T_v3"));
}

#[test]
fn the_first_part_keeps_its_paths() {
    let other = r##"{"paths":{"/a":{"get":{"schema":{"$ref":"#/definitions/Lost"}}},"/b":{"get":{"schema":{"$ref":"#/definitions/Kept"}}}},"definitions":{"Lost":{},"Kept":{},"Loose":{}}}"##;
    let all = merge_all(&[BASE, other]);
    assert_eq!(keys(&all.paths), "/a /b");
    assert_eq!(keys(&all.definitions), "Kept Loose T");
    assert!(all.paths["/a"].get().contains("definitions/T"));
    let covered = r##"{"paths":{"/a":{}},"definitions":{"Nothing":{}}}"##;
    assert_eq!(keys(&merge_all(&[BASE, covered, r#"{"definitions":{"None":{}}}"#]).definitions), "T");
}

#[test]
fn parameters_are_renamed_as_types() {
    let with = |path: &str, place: &str| {
        format!(
            r##"{{"paths":{{"{path}":{{"parameters":[{{"$ref":"#/parameters/p"}}]}}}},"parameters":{{"p":{{"in":"{place}"}}}}}}"##
        )
    };
    let all = merge_all(&[&with("/a", "query"), &with("/b", "path"), &with("/c", "query")]);
    assert_eq!(keys(&all.parameters), "p p_v2");
    assert!(all.paths["/b"].get().contains("#/parameters/p_v2"));
    assert!(all.paths["/c"].get().contains("#/parameters/p\""));
}

/// A part: paths that refer to types, types that refer to types, each with a value that distinguishes variants.
#[derive(Clone, Debug)]
struct Part {
    paths: Vec<(u8, u8)>,
    types: Vec<(u8, u8, Option<u8>)>,
}

fn part() -> impl Strategy<Value = Part> {
    let types = proptest::collection::vec((0..4u8, 0..2u8, proptest::option::of(0..4u8)), 4);
    (proptest::collection::vec((0..8u8, 0..4u8), 0..4), types).prop_map(|(paths, mut types)| {
        // Every type that may be referred to exists once; no type refers to itself or to an earlier one.
        for (index, entry) in types.iter_mut().enumerate() {
            let index = index as u8;
            entry.0 = index;
            entry.2 = entry.2.filter(|to| *to > index);
        }
        Part { paths, types }
    })
}

impl Part {
    fn spec(&self) -> SpecV2 {
        let paths: Vec<_> = {
            let mut seen = BTreeSet::new();
            let first = self.paths.iter().filter(|(path, _)| seen.insert(*path));
            first.map(|(p, t)| format!(r##""/p{p}":{{"$ref":"#/definitions/T{t}"}}"##)).collect()
        };
        let types: Vec<_> = self
            .types
            .iter()
            .map(|(name, mark, to)| {
                let to = to.map_or(String::new(), |t| format!(r##","to":{{"$ref":"#/definitions/T{t}"}}"##));
                format!(r#""T{name}":{{"mark":{mark}{to}}}"#)
            })
            .collect();
        spec(&format!(r#"{{"paths":{{{}}},"definitions":{{{}}}}}"#, paths.join(","), types.join(",")))
    }
}

/// Returns the meaning of a piece: its text with every reference replaced by its target.
fn meaning(spec: &SpecV2, text: &str) -> String {
    let mut text = text.to_owned();
    let names: Vec<String> =
        portico_machinery::openapi::references(&text).map(|(_, name)| name.to_owned()).collect();
    for name in names {
        let piece = spec.definitions.get(&name).unwrap_or_else(|| panic!("{name} leads nowhere"));
        let inner = meaning(spec, piece.get());
        text = text.replace(&format!(r##"{{"$ref":"#/definitions/{name}"}}"##), &inner);
    }
    text
}

proptest! {
    /// Model: each path has the meaning that it has in the first part with this path.
    #[test]
    fn each_path_means_what_it_meant_in_the_first_part_that_had_it(parts in proptest::collection::vec(part(), 1..6)) {
        let mut merger = Merger::default();
        let mut naive: HashMap<String, String> = HashMap::new();
        for part in &parts {
            let spec = part.spec();
            for (path, piece) in &spec.paths {
                naive.entry(path.clone()).or_insert_with(|| meaning(&spec, piece.get()));
            }
            merger.add(spec);
        }
        let all = merger.finish();
        prop_assert_eq!(all.paths.len(), naive.len());
        for (path, piece) in &all.paths {
            prop_assert_eq!(&meaning(&all, piece.get()), &naive[path]);
        }
    }

    #[test]
    fn merging_a_part_twice_changes_nothing(parts in proptest::collection::vec(part(), 1..4)) {
        let mut merger = Merger::default();
        parts.iter().for_each(|p| merger.add(p.spec()));
        let once = merger.spec.to_json();
        parts.iter().for_each(|p| merger.add(p.spec()));
        prop_assert_eq!(once, merger.spec.to_json());
    }
}

#[test]
fn types_that_refer_to_each_other_stay_apart_from_another_parts() {
    let round = |path: &str, mark: u8| {
        format!(
            r##"{{"paths":{{"{path}":{{"$ref":"#/definitions/A"}}}},"definitions":{{"A":{{"b":{{"$ref":"#/definitions/B"}}}},
              "B":{{"mark":{mark},"a":{{"$ref":"#/definitions/A"}}}}}}}}"##
        )
    };
    let all = merge_all(&[&round("/a", 1), &round("/b", 2)]);
    assert_eq!(all.paths["/b"].get(), r##"{"$ref":"#/definitions/A_v2"}"##);
    assert_eq!(all.definitions["A_v2"].get(), r##"{"b":{"$ref":"#/definitions/B_v2"}}"##);
    assert_eq!(all.definitions["B_v2"].get(), r##"{"mark":2,"a":{"$ref":"#/definitions/A_v2"}}"##);
}
