//! Percent escapes, of URLs and what borrows from them.

/// Whether two hexadecimal digits follow each percent sign.
#[must_use]
pub fn escapes_are_whole(text: &str) -> bool {
    let digits =
        |tail: &str| tail.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    text.split('%').skip(1).all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_has_two_digits_of_its_own() {
        assert!(["", "a", "%41", "a%2fb%2F"].iter().all(|text| escapes_are_whole(text)));
        assert!(!["%", "%4", "%zz", "%%41", "%4%1", "%é"].iter().any(|text| escapes_are_whole(text)));
    }
}
