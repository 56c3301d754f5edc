//! The annotations that say where what stands behind a Service is: of APIServices and of configurations of webhooks.

use portico_machinery::field::{Error, Path};
use portico_machinery::resolve::{
    BACKEND_POLICY, BACKEND_SERVER_NAME, BACKEND_URLS, backend_urls, check_backend_policy,
};
use portico_machinery::{Object, names};
use portico_validation::Errors;

/// Annotations that are Portico's begin so.
const PREFIX: &str = "portico.dev/";

/// What is said of annotations of Portico's that it does not know, with the known ones that are nearest: a policy under a
/// mistyped name has no effect.
pub(super) fn unknown(new: &Object, known: &[&str]) -> Vec<String> {
    let annotations = new.at(&["metadata", "annotations"]);
    let unknown = annotations.entries().map(|(key, _)| key);
    let unknown = unknown.filter(|key| key.starts_with(PREFIX) && !known.contains(key));
    unknown.map(|key| warning(key, known)).collect()
}

fn warning(key: &str, known: &[&str]) -> String {
    let distances: Vec<(usize, &str)> = known.iter().map(|known| (distance(key, known), *known)).collect();
    let least = distances.iter().map(|(distance, _)| *distance).min();
    let nearest = distances.iter().filter(|(distance, _)| Some(*distance) == least);
    let named: Vec<String> = nearest.map(|(_, known)| format!("{known:?}")).collect();
    let path = Path::from("metadata.annotations").key(key);
    format!("{path}: unknown annotation, which has no effect; known and nearest to it: {}", named.join(", "))
}

/// How many characters must be added, taken away or exchanged to make one of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, from) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, to) in other.chars().enumerate() {
            let exchanged = diagonal + usize::from(from != to);
            diagonal = row[at + 1];
            row[at + 1] = exchanged.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.chars().count()]
}

/// Validates those of the annotations that are there; `forbidden` says why there may be none.
pub(super) fn validate(new: &Object, keys: &[&str], forbidden: Option<&str>, errors: &mut Errors) {
    let annotations = new.metadata().field("annotations");
    for key in keys {
        let Some(value) = annotations.field(key).opt_str() else { continue };
        let path = Path::from("metadata.annotations").key(key);
        if let Some(why) = forbidden {
            errors.push(Error::forbidden(&path, why));
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
    fn distances_are_those_of_words() {
        for (one, other, expected) in
            [("", "abc", 3), ("kitten", "sitting", 3), ("retries", "retrys", 2), ("same", "same", 0)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
