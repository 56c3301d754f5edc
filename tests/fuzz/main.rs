//! What parses foreign bytes, fed with a corpus and with what chance makes of it: nothing panics, nothing takes long, and
//! what each parser promises about its results holds.
//!
//! Runs on stable Rust, the same inputs each time. `PORTICO_FUZZ_ROUNDS` makes it longer, `PORTICO_FUZZ_SEED` other;
//! `PORTICO_FUZZ_TRACE=file` keeps the last input.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod corpus;
mod mutate;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cpu_time::ThreadTime;
use mutate::Mutator;

/// Inputs per target: a second or two in a debug build.
const ROUNDS: usize = 4_000;

/// No input of at most a few KiB may take more of a processor, in a debug build.
const MAX_LENGTH: Duration = Duration::from_secs(3);

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs a target on its corpus, and on mutations of it.
fn run(name: &str, corpus: &[&str], target: impl Fn(&[u8])) {
    // A stack that overflows ends the process: with this set, the input that did it is in the file.
    let trace = std::env::var_os("PORTICO_FUZZ_TRACE");
    let try_one = |input: &[u8]| {
        if let Some(file) = &trace {
            std::fs::write(file, input).unwrap();
        }
        let begun = ThreadTime::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
        let shown = String::from_utf8_lossy(input);
        assert!(outcome.is_ok(), "{name} fails on {shown:?} = {input:?}");
        assert!(begun.elapsed() < MAX_LENGTH, "{name} takes {:?} on {shown:?}", begun.elapsed());
    };
    corpus.iter().for_each(|seed| try_one(seed.as_bytes()));
    let mut mutator = Mutator::new(setting("PORTICO_FUZZ_SEED", 1) as u64, corpus);
    for _ in 0..setting("PORTICO_FUZZ_ROUNDS", ROUNDS) {
        try_one(&mutator.next());
    }
}

/// The stack of a target: what a runtime's worker has, and four times that where frames are not optimised. That a real
/// process of any build survives deep input is a test of the suite.
const STACK: usize = if cfg!(debug_assertions) { 8 << 20 } else { 2 << 20 };

fn on_own_stack(target: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(target).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Makes a test of each target.
macro_rules! targets {
    ($($name:ident on $corpus:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            on_own_stack(|| run(stringify!($name), corpus::$corpus, targets::$name()));
        }
    )*};
}

targets! {
    paths on PATHS,
    conversion_answers on CONVERSIONS,
    admission_answers on ADMISSION,
    label_selectors on SELECTORS,
    field_selectors on SELECTORS,
    json_paths on JSON_PATHS,
    accept_headers on ACCEPT,
    authorization_headers on AUTHORIZATION,
    token_files on TOKEN_FILES,
    service_account_tokens on TOKENS,
    issuer_tokens on ISSUER_TOKENS,
    external_headers on EXTERNAL_HEADERS,
    impersonation_headers on IMPERSONATION,
    forwarded_identities on IMPERSONATION,
    json_patches on JSON_PATCHES,
    merge_patches on JSON,
    strategic_patches on JSON,
    applied_configurations on JSON,
    field_sets on FIELD_SETS,
    json_bodies on JSON,
    yaml_bodies on YAML,
    protobuf_bodies on PROTOBUF,
    pem on PEM,
    certificate_requests on CERTIFICATE_REQUESTS,
    kubeconfigs on KUBECONFIGS,
    backend_urls on URLS,
    egress_configurations on YAML,
    durations on DURATIONS,
    times on DURATIONS,
    expressions on EXPRESSIONS,
    regular_expressions on REGULAR_EXPRESSIONS,
    quantities on QUANTITIES,
    spdy_frames on SPDY_FRAMES,
}

#[test]
fn a_target_that_panics_is_found() {
    let found = catch_unwind(|| run("bad", &["abc"], |input| assert!(!input.contains(&b'{'))));
    assert!(found.is_err(), "mutation never made a brace of it");
}
