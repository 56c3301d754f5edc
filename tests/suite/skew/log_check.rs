//! Check of the logs of processes: incompatibilities appear as errors, or as repeated attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use portico_tests::Portico;
use portico_tests::process::pause;

/// Maximum repetitions of one message: restarts of other processes cause some, a loop causes more.
const MAX_REPETITIONS: usize = 15;
/// Time in which a loop becomes visible.
const OBSERVATION_TIME: Duration = Duration::from_secs(3);

/// Asserts that no process has logged an error, and that none repeats a message endlessly.
pub(super) async fn assert_quiet(processes: &[&Portico]) {
    pause(OBSERVATION_TIME).await;
    for portico in processes {
        let log = portico.log();
        let mut complaints: BTreeMap<String, usize> = BTreeMap::new();
        for line in log.lines() {
            let is_error = line.contains(" ERROR ") || line.contains("panicked at");
            assert!(!is_error, "{} logged {line}", portico.program().display());
            if line.contains(" WARN ") {
                *complaints.entry(message_of(line)).or_default() += 1;
            }
        }
        let most = complaints.into_iter().max_by_key(|(_, times)| *times);
        assert!(
            most.iter().all(|(_, times)| *times <= MAX_REPETITIONS),
            "{}: {most:?}",
            portico.program().display()
        );
    }
}

/// Returns a line without its time and without variable parts.
fn message_of(line: &str) -> String {
    let words = line.split_whitespace().skip(1);
    words
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '='))
        .collect::<Vec<_>>()
        .join(" ")
}
