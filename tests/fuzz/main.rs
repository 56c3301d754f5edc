//! Parsers of untrusted bytes, run with a corpus and its random mutations: nothing panics, nothing takes long, and
//! the results of each parser have the promised properties.
//!
//! Runs on stable Rust, with the same inputs each time. `PORTICO_FUZZ_ROUNDS` sets the number of inputs, `PORTICO_FUZZ_SEED` the
//! seed; `PORTICO_FUZZ_TRACE=file` writes the last input. `.ci/fuzz` runs the same targets guided by code coverage (`guided.rs`);
//! the inputs that it saves (`kept`) run here as well.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod corpus;
mod input;
mod kept;
mod mutate;
mod table;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cpu_time::ThreadTime;
use mutate::Mutator;

/// Inputs per target: one or two seconds in a debug build.
const ROUNDS: usize = 4_000;

/// Maximum processor time for an input of a few KiB, in a debug build.
const MAX_TIME: Duration = Duration::from_secs(3);

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs a target on its corpus, on its saved inputs, and on mutations of both.
fn run(name: &str, corpus: &[&str], target: impl Fn(&[u8])) {
    // A stack overflow ends the process; with this set, the file contains the input.
    let trace = std::env::var_os("PORTICO_FUZZ_TRACE");
    let try_one = |input: &[u8]| {
        if let Some(file) = &trace {
            std::fs::write(file, input).unwrap();
        }
        let start = ThreadTime::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
        let text = String::from_utf8_lossy(input);
        assert!(outcome.is_ok(), "{name} fails on {text:?} = {input:?}");
        assert!(start.elapsed() < MAX_TIME, "{name} takes {:?} on {text:?}", start.elapsed());
    };
    let mut corpus = corpus::bytes(corpus);
    corpus.extend(kept::inputs(name));
    corpus.iter().for_each(|input| try_one(input));
    let mut mutator = Mutator::new(setting("PORTICO_FUZZ_SEED", 1) as u64, corpus);
    for _ in 0..setting("PORTICO_FUZZ_ROUNDS", ROUNDS) {
        try_one(&mutator.next());
    }
}

/// Stack size of a target: that of a runtime's worker, and four times that if frames are not optimized. A test of the suite
/// checks that real processes of any build survive deep input.
const STACK: usize = if cfg!(debug_assertions) { 8 << 20 } else { 2 << 20 };

fn on_own_stack(target: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(target).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Creates a test of each target.
macro_rules! tests {
    ($($name:ident on $corpus:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            on_own_stack(|| run(stringify!($name), corpus::$corpus, targets::$name()));
        }
    )*};
}

table::for_each_target!(tests);

#[test]
fn saved_inputs_belong_to_a_target_and_are_small() {
    for entry in std::fs::read_dir(kept::folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(table::NAMES.contains(&&*name), "no target is called {name:?}");
        let inputs = kept::inputs(&name);
        let sizes = inputs.iter().map(Vec::len);
        assert!(
            inputs.len() <= 30 && sizes.max().unwrap_or(0) <= 4096,
            "too many or too long kept inputs: {name}"
        );
    }
}

#[test]
fn a_target_that_panics_is_found() {
    let found = catch_unwind(|| run("bad", &["abc"], |input| assert!(!input.contains(&b'{'))));
    assert!(found.is_err(), "no mutation contained a brace");
}
