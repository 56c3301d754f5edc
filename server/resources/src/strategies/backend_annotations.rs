//! Annotations with the addresses of backends, on APIServices and webhook configurations.

use portico_machinery::field::{Error, Path};
use portico_machinery::resolve::{
    BACKEND_POLICY, BACKEND_SERVER_NAME, BACKEND_URLS, backend_urls, check_backend_policy,
};
use portico_machinery::{Object, names};
use portico_validation::Errors;

/// Prefix of the annotations of Portico.
const PREFIX: &str = "portico.dev/";

/// Warns about unknown annotations of Portico and suggests similar names. A backend policy under a misspelled name has no
/// effect.
pub(super) fn unknown_warnings(new: &Object, known_keys: &[&str]) -> Vec<String> {
    let annotations = new.at(&["metadata", "annotations"]);
    let unknown = annotations.entries().map(|(key, _)| key);
    let unknown = unknown.filter(|key| key.starts_with(PREFIX) && !known_keys.contains(key));
    unknown.map(|key| warning(key, known_keys)).collect()
}

fn warning(key: &str, known_keys: &[&str]) -> String {
    let distances: Vec<(usize, &str)> =
        known_keys.iter().map(|candidate| (edit_distance(key, candidate), *candidate)).collect();
    let least = distances.iter().map(|(distance, _)| *distance).min();
    let nearest = distances.iter().filter(|(distance, _)| Some(*distance) == least);
    let suggestions: Vec<String> = nearest.map(|(_, candidate)| format!("{candidate:?}")).collect();
    let path = Path::from("metadata.annotations").key(key);
    format!(
        "{path}: unknown annotation, which has no effect; known and nearest to it: {}",
        suggestions.join(", ")
    )
}

/// Number of characters to insert, delete or replace to change one text to the other (Levenshtein distance).
fn edit_distance(first: &str, second: &str) -> usize {
    let mut row: Vec<usize> = (0..=second.chars().count()).collect();
    for (above, from) in first.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (index, to) in second.chars().enumerate() {
            let exchanged = diagonal + usize::from(from != to);
            diagonal = row[index + 1];
            row[index + 1] = exchanged.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[second.chars().count()]
}

/// Validates those of the annotations that are set. `forbidden`: reason if none of them may be set.
pub(super) fn validate(new: &Object, keys: &[&str], forbidden: Option<&str>, errors: &mut Errors) {
    let annotations = new.metadata().field("annotations");
    for key in keys {
        let Some(value) = annotations.field(key).opt_str() else { continue };
        let path = Path::from("metadata.annotations").key(key);
        if let Some(message) = forbidden {
            errors.push(Error::forbidden(&path, message));
            continue;
        }
        match *key {
            BACKEND_URLS => {
                let wrong = backend_urls(value).err();
                errors.extend(wrong.map(|wrong| Error::invalid(&path, value, &wrong.to_string())));
            }
            BACKEND_SERVER_NAME => {
                let wrong = names::dns1123_subdomain(value).into_iter().next();
                errors.extend(wrong.map(|wrong| Error::invalid(&path, value, &wrong)));
            }
            key if BACKEND_POLICY.contains(&key) => {
                let wrong = check_backend_policy(new, key, value).err();
                errors.extend(wrong.map(|wrong| Error::invalid(&path, value, &wrong)));
            }
            _ if matches!(value, "h2" | "http/1.1") => {}
            _ => errors.push(Error::not_supported(&path, value, &["h2", "http/1.1"])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances_are_computed() {
        for (first, second, expected) in
            [("", "abc", 3), ("kitten", "sitting", 3), ("retries", "retrys", 2), ("same", "same", 0)]
        {
            assert_eq!(
                (edit_distance(first, second), edit_distance(second, first)),
                (expected, expected),
                "{first} {second}"
            );
        }
    }
}
