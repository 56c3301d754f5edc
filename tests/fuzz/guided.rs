//! The targets, driven by libFuzzer, which continues from inputs that reach code not reached before.
//!
//! `.ci/fuzz` builds this with the required instrumentation, and sets the target (`PORTICO_FUZZ_TARGET`; without it, all
//! names are printed), the folder of its inputs (`PORTICO_FUZZ_INPUTS`), and the file for the current input
//! (`PORTICO_FUZZ_LAST`): a stack overflow ends the process before libFuzzer can write the input. Independent of the targets.
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

/// Maximum processor time for an input of a few KiB.
const MAX_TIME: Duration = Duration::from_secs(1);

/// A parser, and the checks of its results.
type Target = Box<dyn Fn(&[u8])>;

thread_local! {
    static TARGET: Target = selected_target();
}

/// Creates the target of a name, and returns its initial inputs.
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

/// Returns the selected target.
fn selected_target() -> Target {
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
            write_input(file, input);
        }
        let start = ThreadTime::now();
        target(input);
        assert!(start.elapsed() < MAX_TIME, "{name} takes {:?}", start.elapsed());
    })
}

/// Writes the length of the input (8 bytes, little-endian) and the input over the previous one.
fn write_input(file: &File, input: &[u8]) {
    let mut bytes = (input.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(input);
    file.write_all_at(&bytes, 0).unwrap();
}

libfuzzer_sys::fuzz_target!(
    init: TARGET.with(|_| ()),
    |input: &[u8]| TARGET.with(|target| target(input))
);
