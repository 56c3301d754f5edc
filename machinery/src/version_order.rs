//! Kube-aware version order: GA before beta before alpha, larger numbers first, other names last.

use std::cmp::Ordering;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

fn parse(version: &str) -> Option<(Stability, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = number(&rest[..digits])?;
    match &rest[digits..] {
        "" => Some((Stability::Stable, major, 0)),
        tail => {
            let (stability, minor) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
                (Some(minor), _) => (Stability::Beta, minor),
                (_, Some(minor)) => (Stability::Alpha, minor),
                _ => return None,
            };
            Some((stability, major, number(minor)?))
        }
    }
}

/// Parses a number without leading zeros that fits a machine int; upstream does not accept others in a version.
fn number(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Compares versions for display, the preferred one first (`Less` means "comes first").
///
/// Mirrors upstream's `version.CompareKubeAwareVersionStrings`. Names that are not Kubernetes versions come last, alphabetically.
#[must_use]
pub fn preferred_first(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_upstream_lists_them() {
        let rows = [
            ("v1 v2", "v2 v1"),
            ("v2 v10", "v10 v2"),
            ("v2 v2beta1 v10beta2 v10beta1 v10alpha1 v1", "v2 v1 v10beta2 v10beta1 v2beta1 v10alpha1"),
            ("v1 v2 test foo10 final foo2 foo1", "v2 v1 final foo1 foo10 foo2 test"),
            (
                "v12alpha1 v10 v11beta2 v10beta3 v3beta1 v2 v11alpha2 foo1 v1 foo10",
                "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10",
            ),
            ("v99999999999999999999 v1", "v1 v99999999999999999999"),
        ];
        for (input, want) in rows {
            let mut versions: Vec<_> = input.split(' ').collect();
            versions.sort_by(|a, b| preferred_first(a, b));
            assert_eq!(versions.join(" "), want);
        }
    }
}
