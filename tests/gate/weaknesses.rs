//! Known vulnerabilities of Kubernetes and its libraries: docs/internals/security.md lists a test for each.

use crate::tree::Tree;

const PAGE: &str = "docs/internals/security.md";

/// Vulnerabilities of kube-apiserver and its libraries that can apply to a server of this kind.
const KNOWN: &[&str] = &[
    "CVE-2018-1002102",
    "CVE-2018-1002105",
    "CVE-2019-1002100",
    "CVE-2019-9511",
    "CVE-2019-9512",
    "CVE-2019-9513",
    "CVE-2019-9514",
    "CVE-2019-9515",
    "CVE-2019-9517",
    "CVE-2019-9518",
    "CVE-2019-11247",
    "CVE-2019-11250",
    "CVE-2019-11253",
    "CVE-2019-11254",
    "CVE-2019-16276",
    "CVE-2020-8552",
    "CVE-2020-8559",
    "CVE-2020-8561",
    "CVE-2020-8564",
    "CVE-2020-8565",
    "CVE-2020-8566",
    "CVE-2021-25735",
    "CVE-2022-1996",
    "CVE-2022-3162",
    "CVE-2022-3172",
    "CVE-2022-3294",
    "CVE-2023-2727",
    "CVE-2023-2728",
    "CVE-2023-39325",
    "CVE-2023-44487",
    "CVE-2023-45288",
    "CVE-2024-3177",
    "CVE-2024-27316",
    "CVE-2025-4563",
    "CVE-2025-5187",
];

/// Vulnerabilities without a row, and rows without an existing test.
pub fn tests(tree: &Tree) -> Vec<String> {
    let rows: Vec<&str> = tree
        .files
        .get(PAGE)
        .map_or_else(Vec::new, |page| page.lines().filter(|line| line.starts_with("| CVE-")).collect());
    let without_row = KNOWN.iter().filter(|id| !rows.iter().any(|row| numbers(row).contains(id)));
    let mut broken: Vec<String> = without_row.map(|id| format!("{PAGE}: no row of {id}")).collect();
    for row in rows {
        let tests: Vec<(&str, &str)> =
            row.split('`').skip(1).step_by(2).filter_map(|text| text.split_once("::")).collect();
        if tests.is_empty() {
            broken.push(format!("{PAGE}: no test in {row}"));
        }
        for (file, name) in tests {
            let exists = tree.files.get(file).is_some_and(|text| text.contains(&format!("fn {name}()")));
            if !exists {
                broken.push(format!("{PAGE}: no test {name} in {file}"));
            }
        }
    }
    broken
}

/// Returns the numbers of a row.
fn numbers(row: &str) -> Vec<&str> {
    row.split('|').nth(1).map_or_else(Vec::new, |cell| cell.split(',').map(str::trim).collect())
}

#[test]
fn a_vulnerability_without_a_test_is_found() {
    let rows: String = KNOWN.iter().map(|id| format!("| {id} | what | `a.rs::it_holds` |\n")).collect();
    let with = |test: &str, rows: &str| Tree::with(&[(PAGE, rows), ("a.rs", test)]);
    assert_eq!(tests(&with("fn it_holds() {}", &rows)), [""; 0]);
    assert_eq!(tests(&with("fn another() {}", &rows)).len(), KNOWN.len());
    let fewer = rows.replace("CVE-2020-8559 ", "CVE-2020-85590 ");
    assert_eq!(tests(&with("fn it_holds() {}", &fewer)), [format!("{PAGE}: no row of CVE-2020-8559")]);
    let none = rows.replacen("`a.rs::it_holds`", "", 1);
    assert_eq!(tests(&with("fn it_holds() {}", &none)).len(), 1);
}
