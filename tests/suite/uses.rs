//! The pages of docs/uses, run as they stand: only ports differ, so that tests can run beside each other.

use portico_tests::Portico;
use portico_tests::tools::there_is;

use crate::readme::{Checkout, blocks_of};

const LAPTOP: &str = include_str!("../../docs/uses/laptop.md");
const AGGREGATION: &str = include_str!("../../docs/uses/aggregation.md");
const PRODUCT: &str = include_str!("../../docs/uses/product.md");
const EDGE: &str = include_str!("../../docs/uses/edge.md");

/// The blocks of a page, one after the other, with `portico` on the path; what they leave running ends with them.
fn script(page: &str) -> String {
    let blocks = blocks_of(page).concat();
    // A server that a page starts on the ports of a `portico` without flags.
    let blocks = blocks.replace(
        "portico >portico.log",
        "portico --secure-port 0 --control-address 127.0.0.1:0 >portico.log",
    );
    let left = "left=$(jobs -p); [ -z \"$left\" ] || kill $left; wait || true";
    format!("trap '{left}' EXIT\nPATH=$PWD/target/release:$PATH\n{blocks}")
}

fn assert_all(printed: &str, expected: &[&str]) {
    for expected in expected {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_laptop_has_an_api_with_a_past() {
    if !there_is("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let printed = Checkout::of(&portico).run(&script(LAPTOP));
    assert_all(&printed, &["kubectl-patch", "+  colour: green", "undeleted", "\ngreen\n", "\nno\n", "whole"]);
    assert!(!printed.contains("<unknown>"), "{printed}");
}

#[test]
fn an_aggregated_api_server_is_registered_used_and_lost() {
    if !there_is("kubectl") {
        return;
    }
    let printed = Checkout::new().run(&script(AGGREGATION));
    let seen = [
        r#"["front-proxy-client"]"#,
        "v1alpha1.wardle.example.com available",
        "portico:admin",
        "is reachable",
    ];
    assert_all(&printed, &seen);
    assert_all(&printed, &["fails at ", "kube-system"]);
    // A check that was under way when the backend ended is reset.
    let is_explained = ["connection refused", "connection was reset"].iter().any(|why| printed.contains(why));
    assert!(is_explained, "{printed}");
}

#[test]
fn a_product_ships_a_folder_and_one_program() {
    if !there_is("kubectl") {
        return;
    }
    let printed = Checkout::new().run(&script(PRODUCT));
    assert_all(&printed, &["2 documents in 2 files: 0 errors", "\n1400\n", "refused"]);
}

#[test]
fn a_site_goes_on_without_its_centre() {
    if !there_is("kubectl") {
        return;
    }
    let printed = Checkout::new().run(&script(EDGE));
    let (before, after) = printed.split_once("condition met").unwrap();
    assert!(before.contains("created"), "{printed}");
    assert_all(
        after,
        &["FlunderList", "the control service is away", "readyz check passed", "objects are the centre's"],
    );
}
