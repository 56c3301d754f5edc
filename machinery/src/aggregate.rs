//! Several errors told as one.

use std::fmt::Display;

/// Errors as upstream's aggregates print them: one alone as it is, several in brackets, each once.
pub fn aggregate(errors: impl IntoIterator<Item: Display>) -> String {
    let mut told: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !told.contains(&text) {
            told.push(text);
        }
    }
    match told.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stands_alone_and_several_in_brackets() {
        assert_eq!(aggregate(["a"]), "a");
        assert_eq!(aggregate(["a", "a"]), "a");
        assert_eq!(aggregate(["a", "b", "a"]), "[a, b]");
    }
}
