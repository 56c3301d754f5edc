//! Name of a field manager: sent by the client, or the start of its User-Agent.

use std::borrow::Cow;

/// Maximum length of a name in bytes.
const MAX_NAME: usize = 128;

/// Field manager of a write that is not an apply.
pub fn manager_name<'a>(field_manager: &'a str, user_agent: &'a str) -> Cow<'a, str> {
    if !field_manager.is_empty() {
        return Cow::Borrowed(field_manager);
    }
    let prefix = user_agent.split('/').next().unwrap_or_default();
    let is_valid = prefix.len() <= MAX_NAME && prefix.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    match (is_valid, prefix) {
        (true, "") => Cow::Borrowed("unknown"),
        (true, prefix) => Cow::Borrowed(prefix),
        (false, prefix) => Cow::Owned(printable(prefix)),
    }
}

/// Printable characters of a text, up to the maximum length.
fn printable(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().filter(|c| *c == ' ' || !(c.is_control() || c.is_whitespace())) {
        if name.len() + c.len_utf8() > MAX_NAME {
            break;
        }
        name.push(c);
    }
    if name.is_empty() { "unknown".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_name_is_sent_by_the_client_or_the_start_of_its_user_agent() {
        let long = "é".repeat(100);
        let rows = [
            (("me", "kubectl/v1.36"), "me"),
            (("", "kubectl/v1.36 (linux/amd64)"), "kubectl"),
            (("", "Mozilla 5.0/x"), "Mozilla 5.0"),
            (("", ""), "unknown"),
            (("", "/1"), "unknown"),
            (("", "a\u{7}b\u{200b}/1"), "ab\u{200b}"),
            (("", long.as_str()), &long[..128]),
        ];
        for ((field_manager, user_agent), expected) in rows {
            assert_eq!(manager_name(field_manager, user_agent), expected);
        }
    }
}
