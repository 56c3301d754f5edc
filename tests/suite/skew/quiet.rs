//! Whether processes get on with each other: what does not fit shows as an error, or as something that is tried again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use portico_tests::Portico;
use portico_tests::process::a_while;

/// How often a process may complain of one thing: restarts of others are noticed, a loop is more.
const MOST: usize = 15;
/// In what time a loop shows.
const A_WHILE: Duration = Duration::from_secs(3);

/// No process has failed at anything, and none complains without end.
pub(super) async fn assert_quiet(processes: &[&Portico]) {
    a_while(A_WHILE).await;
    for portico in processes {
        let log = portico.log();
        let mut complaints: BTreeMap<String, usize> = BTreeMap::new();
        for line in log.lines() {
            let is_error = line.contains(" ERROR ") || line.contains("panicked at");
            assert!(!is_error, "{} says {line}", portico.program().display());
            if line.contains(" WARN ") {
                *complaints.entry(words_of(line)).or_default() += 1;
            }
        }
        let most = complaints.into_iter().max_by_key(|(_, times)| *times);
        assert!(most.iter().all(|(_, times)| *times <= MOST), "{}: {most:?}", portico.program().display());
    }
}

/// A line without its time and without what differs from case to case.
fn words_of(line: &str) -> String {
    let words = line.split_whitespace().skip(1);
    words
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '='))
        .collect::<Vec<_>>()
        .join(" ")
}
