//! Calls the library `portico`: as a library, most of the program compiles before the machine code of its dependencies is ready.

use std::process::ExitCode;

/// Allocator of the process; docs/internals/adr/0005 explains the choice.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    portico::main()
}
