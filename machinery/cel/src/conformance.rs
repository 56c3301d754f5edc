//! Results of expressions, in tables by topic with one JSON object per line.

mod case;

use case::Case;

/// Minimum number of cases in the tables.
const CASES: usize = 1_270;

#[test]
fn conformance_cases_of_the_language_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/cases");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    let (mut passed, mut failed) = (0, Vec::new());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            match Case::read(line).run() {
                Ok(()) => passed += 1,
                Err(reason) => {
                    failed.push(format!("{}:{}: {line}\n    {reason}", path.display(), number + 1))
                }
            }
        }
    }
    assert!(failed.is_empty(), "{passed} hold, {} do not:\n{}", failed.len(), failed.join("\n"));
    assert!(passed >= CASES, "{passed} hold");
}
