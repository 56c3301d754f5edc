//! The public conformance cases of the language: every case that needs no protocol buffer messages.

mod case;
mod textproto;

use case::{Case, Outcome};

/// Cases (or groups of them) whose expectation differs from what kube-apiserver's engine does, or that need what it does
/// not offer: repeated keys of maps (the last stays), keys of any type, constant indices that are none (refused before
/// anything runs), fields of null behind an optional (absent), names in backticks, dotted names of variables that a
/// comprehension's variable hides, wrapper types, the newest version of the string functions.
const EXCEPTIONS: [&str; 13] = [
    "fields/map_fields/map_bad_key_type_",
    "fields/qualified_identifier_resolution/map_key_float",
    "fields/qualified_identifier_resolution/map_key_null",
    "fields/qualified_identifier_resolution/map_value_repeat_key",
    "fields/quoted_map_fields",
    "namespace/namespace_shadowing",
    "optionals/optionals/map_null_entry_no_such_key",
    "optionals/optionals/map_present_key_invalid_field",
    "string_ext/format/",
    "string_ext/reverse",
    "string_ext/value_errors/",
    "type_deduction/flexible_type_parameter_assignment",
    "type_deduction/legacy_nullable_types",
];

#[test]
fn conformance_cases_of_the_language_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/cel-spec");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "textproto"))
        .collect();
    files.sort();
    let (mut passed, mut skipped, mut missing, mut failed) = (0, 0, 0, Vec::new());
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let document = textproto::parse(&std::fs::read_to_string(&path).unwrap());
        for case in Case::all(&file, &document) {
            match case.play() {
                Outcome::Passed => passed += 1,
                Outcome::Skipped => skipped += 1,
                Outcome::Failed(_) if EXCEPTIONS.iter().any(|group| case.name.starts_with(group)) => {
                    skipped += 1
                }
                // A function of a library that is not declared.
                Outcome::Failed(why) if why.contains("undeclared reference to") => missing += 1,
                Outcome::Failed(why) => failed.push(format!("{}: {}\n    {why}", case.name, case.expr)),
            }
        }
    }
    let counts =
        format!("{passed} hold, {skipped} skipped, {missing} lack a function, {} fail", failed.len());
    assert!(failed.is_empty(), "{counts}:\n{}", failed.join("\n"));
    assert!(passed >= 1_290, "{counts}");
}
