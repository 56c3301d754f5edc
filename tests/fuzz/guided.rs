//! The targets, driven by libFuzzer: it goes on from inputs that reach code which none before has reached.
//!
//! `.ci/fuzz` builds this with the instrumentation that it needs, and says which target runs (`PORTICO_FUZZ_TARGET`; without one, all
//! names are printed), where its inputs are (`PORTICO_FUZZ_INPUTS`), and where the input that is being tried stands
//! (`PORTICO_FUZZ_LAST`): a stack that overflows ends the process before libFuzzer can write it. Must not know what a target does.
#![no_main]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a fuzz target fails by panicking, and names are printed"
)]

mod corpus;
mod input;
mod kept;
mod table;
mod targets;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use cpu_time::ThreadTime;

/// No input of at most a few KiB may take more of a processor.
const MAX_LENGTH: Duration = Duration::from_secs(1);

/// A parser, and what must hold of what it returns.
type Target = Box<dyn Fn(&[u8])>;

thread_local! {
    static TARGET: Target = chosen();
}

/// Makes the target of a name, and says with which inputs it begins.
macro_rules! choice {
    ($($name:ident on $corpus:ident),* $(,)?) => {
        fn target(name: &str) -> Option<(Target, &'static [&'static str])> {
            match name {
                $(stringify!($name) => Some((Box::new(targets::$name()), corpus::$corpus)),)*
                _ => None,
            }
        }
    };
}

table::for_each_target!(choice);

/// The target that is asked for.
fn chosen() -> Target {
    let name = std::env::var("PORTICO_FUZZ_TARGET").unwrap_or_default();
    if name.is_empty() {
        println!("{}", table::NAMES.join("\n"));
        std::process::exit(0);
    }
    let (target, corpus) = target(&name).unwrap_or_else(|| panic!("no target is called {name:?}"));
    if let Some(folder) = std::env::var_os("PORTICO_FUZZ_INPUTS") {
        let inputs = corpus::bytes(corpus).into_iter().chain(kept::inputs(&name));
        for (at, input) in inputs.enumerate() {
            std::fs::write(Path::new(&folder).join(format!("seed-{at}")), input).unwrap();
        }
    }
    let last = std::env::var_os("PORTICO_FUZZ_LAST").map(|path| File::create(path).unwrap());
    Box::new(move |input| {
        if let Some(file) = &last {
            remember(file, input);
        }
        let begun = ThreadTime::now();
        target(input);
        assert!(begun.elapsed() < MAX_LENGTH, "{name} takes {:?}", begun.elapsed());
    })
}

/// Writes its length (8 bytes, little-endian) and the input over the one before.
fn remember(file: &File, input: &[u8]) {
    let mut bytes = (input.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(input);
    file.write_all_at(&bytes, 0).unwrap();
}

libfuzzer_sys::fuzz_target!(
    init: TARGET.with(|_| ()),
    |input: &[u8]| TARGET.with(|target| target(input))
);
