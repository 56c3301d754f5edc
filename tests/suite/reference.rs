//! Generated pages of docs/reference.

use portico_tests::reference;

#[test]
fn pages_are_current() {
    if let Some(report) = reference::stale() {
        panic!("{report}");
    }
}

#[test]
fn pages_are_short_and_cells_are_narrow() {
    assert_eq!(reference::layout_problems(), Vec::<String>::new());
}
