//! Static token file (`--token-auth-file`) with lines of `token,user,uid[,"group1,group2"]`.
//!
//! Parses the text; the process assembly reads the file and reloads it after changes. Tokens are stored and looked up as digests,
//! so that neither a memory dump of the table nor the duration of a lookup reveals a token.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use portico_machinery::UserInfo;

use super::{AuthnError, AuthnMethod, TokenAuthenticator, complete_user};

/// Error in a token file. `line` is the first line of the record, from 1. Messages never contain tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// The record has fewer than three columns.
    #[error("line {line}: expected at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// Line of the record.
        line: usize,
        /// Number of columns found.
        found: usize,
    },
    /// A quote inside an unquoted field, text after a closing quote, or an unclosed quote.
    #[error("line {line}: misplaced or unclosed quote")]
    Quote {
        /// Line of the record.
        line: usize,
    },
}

/// Users of a token file.
#[derive(Clone, Debug, Default)]
pub struct TokenFile {
    users: HashMap<[u8; 32], Arc<UserInfo>>,
}

impl TokenFile {
    /// Parses the text of the file. If a token occurs on several lines, the last one is used; lines without a token are skipped.
    ///
    /// # Errors
    /// Returns a [`TokenFileError`] that names the line.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut users = HashMap::new();
        for (line, record) in records(text)? {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(TokenFileError::Columns { line, found: record.len() });
            };
            if token.is_empty() {
                continue;
            }
            let groups = rest.first().map(|g| g.split(',').map(str::to_owned).collect()).unwrap_or_default();
            let user = UserInfo { name: name.clone(), uid: uid.clone(), groups, ..UserInfo::default() };
            users.insert(token_digest(token), complete_user(Arc::new(user), AuthnMethod::BearerToken));
        }
        Ok(Self { users })
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// True if there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }
}

impl TokenAuthenticator for TokenFile {
    fn authenticate_token(&self, token: &str) -> Result<Option<Arc<UserInfo>>, AuthnError> {
        Ok(self.users.get(&token_digest(token)).cloned())
    }
}

fn token_digest(token: &str) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    key
}

type Record = (usize, Vec<String>);

/// Parses comma-separated records with RFC 4180 quotes, without blank lines.
fn records(text: &str) -> Result<Vec<Record>, TokenFileError> {
    let mut records = Vec::new();
    let (mut rest, mut line) = (text.strip_prefix('\u{feff}').unwrap_or(text), 1);
    while !rest.is_empty() {
        let start = line;
        let mut record = Vec::new();
        loop {
            let (field, ended, after) = field(rest).ok_or(TokenFileError::Quote { line })?;
            line += rest[..rest.len() - after.len()].matches('\n').count();
            rest = after;
            record.push(field);
            if ended {
                break;
            }
        }
        if record.len() > 1 || !record[0].is_empty() {
            records.push((start, record));
        }
    }
    Ok(records)
}

/// Returns one field, true if it is the last of its record, and the remaining text.
fn field(text: &str) -> Option<(String, bool, &str)> {
    let (value, after) = match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None => {
            let end = text.find([',', '\n']).unwrap_or(text.len());
            let value = text[..end].trim_end_matches('\r');
            if value.contains('"') {
                return None;
            }
            (value.to_owned(), &text[end..])
        }
    };
    let after = after.strip_prefix('\r').unwrap_or(after);
    match after.as_bytes().first() {
        Some(b',') => Some((value, false, &after[1..])),
        Some(b'\n') => Some((value, true, &after[1..])),
        None => Some((value, true, after)),
        Some(_) => None,
    }
}

fn unquote(mut text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    loop {
        let (before, after) = text.split_once('"')?;
        value.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                text = more;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::user::AUTHENTICATED;

    fn user(file: &TokenFile, token: &str) -> Option<(String, String, String)> {
        let user = file.authenticate_token(token).unwrap()?;
        let groups = user.groups.iter().filter(|group| *group != AUTHENTICATED);
        Some((user.name.clone(), user.uid.clone(), groups.cloned().collect::<Vec<_>>().join("|")))
    }

    #[test]
    fn lines_contain_user_uid_and_groups_and_the_last_line_of_a_token_is_used() {
        let file = TokenFile::parse(
            "a,alice,u1,\"dev,ops\"\r\n\nb,\"bo\"\"b\",u2,one\nc,carol,u3\na,anna,u4\n,nobody,u5\nd,dan,u6,\"\"",
        )
        .unwrap();
        let row = |n: &str, u: &str, g: &str| Some((n.to_owned(), u.to_owned(), g.to_owned()));
        assert_eq!(user(&file, "a"), row("anna", "u4", ""));
        assert_eq!(user(&file, "b"), row("bo\"b", "u2", "one"));
        assert_eq!(user(&file, "c"), row("carol", "u3", ""));
        assert_eq!(user(&file, ""), None);
        assert_eq!(user(&file, "A"), None);
        assert_eq!(file.len(), 4);
    }

    #[test]
    fn a_user_named_anonymous_is_not_in_the_authenticated_group() {
        let file = TokenFile::parse("a,system:anonymous,u1\nb,bob,u2").unwrap();
        let is_authenticated =
            |token| file.authenticate_token(token).unwrap().unwrap().in_group(AUTHENTICATED);
        assert!(!is_authenticated("a"));
        assert!(is_authenticated("b"));
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(
            TokenFile::parse("a,b,c\n\nd,e\n").unwrap_err(),
            TokenFileError::Columns { line: 3, found: 2 }
        );
        for bad in ["a,b\"c,d", "\"a,b,c", "\"a\"x,b,c"] {
            assert_eq!(TokenFile::parse(bad).unwrap_err(), TokenFileError::Quote { line: 1 }, "{bad}");
        }
        assert_eq!(
            TokenFile::parse("\"a\nb\",u,i\nx").unwrap_err().to_string().split(':').next(),
            Some("line 3")
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused_without_panic(text in "[a-z,\"\r\n]{0,60}") {
            let _ = TokenFile::parse(&text);
        }

        #[test]
        fn quoted_fields_round_trip(fields in proptest::collection::vec("[a-c\",\n]{1,6}", 3)) {
            let line: Vec<_> = fields.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
            let file = TokenFile::parse(&line.join(",")).unwrap();
            let user = file.authenticate_token(&fields[0]).unwrap().unwrap();
            proptest::prop_assert_eq!((&user.name, &user.uid), (&fields[1], &fields[2]));
        }
    }
}
