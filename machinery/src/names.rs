//! Validation of names (`validation` of gostd) as field errors, and generated names.

use rand::RngExt;

use crate::field::{Error, Path};

pub use portico_gostd::apimachinery::validation::{
    DNS1035_LABEL_MESSAGE, DNS1123_LABEL_MESSAGE, DNS1123_SUBDOMAIN_MESSAGE, LABEL_VALUE_MESSAGE,
    NO_DOTS_MESSAGE, QUALIFIED_NAME_MESSAGE, dns1035_label, dns1123_label, dns1123_subdomain,
    group_and_resource, label_value, path_segment, qualified_name,
};

/// Converts messages to field errors of one path.
#[must_use]
pub fn to_field_errors(path: &Path, value: &str, messages: Vec<String>) -> Vec<Error> {
    messages.iter().map(|m| Error::invalid(path, value, m)).collect()
}

/// Maximum bytes of a prefix that `generateName` keeps.
pub const GENERATE_NAME_PREFIX_MAX: usize = 58;

/// Generates a name: the prefix, truncated to 58 characters, and five characters of upstream's alphabet without vowels.
#[must_use]
pub fn generate(prefix: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let cut = (0..=prefix.len().min(GENERATE_NAME_PREFIX_MAX)).rev().find(|i| prefix.is_char_boundary(*i));
    let mut rng = rand::rng();
    let suffix = (0..5).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())]));
    prefix[..cut.unwrap_or(0)].chars().chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_keep_58_characters_and_add_five() {
        let name = generate(&"x".repeat(80));
        assert_eq!(name.len(), 63);
        assert_ne!(generate("a-"), generate("a-"));
    }
}
