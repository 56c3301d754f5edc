//! The `portico` command: control service and facade in one process, or either alone.

mod settings;

fn main() {
    let _ = settings::parse(std::env::args_os().collect());
}
