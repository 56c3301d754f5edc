//! Several errors reported as one.

use std::collections::HashSet;
use std::fmt::Display;

/// Formats errors like upstream's aggregates: a single error as it is, several in brackets, each once.
pub fn aggregate(errors: impl IntoIterator<Item: Display>) -> String {
    let mut seen = HashSet::new();
    let texts = errors.into_iter().map(|error| error.to_string());
    let reported: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    match reported.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_errors_are_in_brackets() {
        assert_eq!(aggregate(["a"]), "a");
        assert_eq!(aggregate(["a", "a"]), "a");
        assert_eq!(aggregate(["a", "b", "a"]), "[a, b]");
    }
}
