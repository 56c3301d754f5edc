//! The program is a library, so that it compiles while the crates that it links are still being optimized.

use std::process::ExitCode;

/// Allocator of the process; docs/internals/adr/0005 explains the choice.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    portico::main()
}
