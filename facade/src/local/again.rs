//! Queries that resume a watch or repeat a list after the loss of a control service.

use std::time::Duration;

use portico_gostd::url::{first_value, pairs};

const VERSION: &str = "resourceVersion";
const MATCH: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";
const TIMEOUT: &str = "timeoutSeconds";
const LIMIT: &str = "limit";
const CONTINUE: &str = "continue";

/// Query of a watch that resumes after this revision when it has lasted for `lasted`; `None` if its timeout has passed.
pub(super) fn watch_from(query: &str, revision: i64, lasted: Duration) -> Option<String> {
    let mut again = without(query, &[VERSION, MATCH, INITIAL, TIMEOUT]);
    if let Some(wanted) =
        first_value(query, TIMEOUT).and_then(|text| text.parse::<u64>().ok()).filter(|s| *s > 0)
    {
        let left = Duration::from_secs(wanted).checked_sub(lasted)?;
        push(&mut again, TIMEOUT, &left.as_secs().max(1).to_string());
    }
    push(&mut again, VERSION, &revision.to_string());
    Some(again)
}

/// Query that repeats a list at this revision.
pub(super) fn list_at(query: &str, revision: i64) -> String {
    if first_value(query, CONTINUE).is_some_and(|token| !token.is_empty()) {
        // The continue token contains the revision.
        return query.to_owned();
    }
    // At revision 0 the limit was ignored.
    let is_whole = first_value(query, VERSION).is_some_and(|version| version == "0");
    let left_out = [VERSION, MATCH, if is_whole { LIMIT } else { VERSION }];
    let mut again = without(query, &left_out);
    push(&mut again, VERSION, &revision.to_string());
    push(&mut again, MATCH, "Exact");
    again
}

/// Removes these keys from the query; the rest stays as it was sent.
fn without(query: &str, keys: &[&str]) -> String {
    let is_kept = |part: &&str| {
        let mut pairs = pairs(part.as_bytes());
        pairs.next().is_none_or(|(key, _)| !keys.iter().any(|left_out| *key == *left_out.as_bytes()))
    };
    query.split('&').filter(|part| !part.is_empty()).filter(is_kept).collect::<Vec<_>>().join("&")
}

fn push(query: &mut String, key: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(key);
    query.push('=');
    query.push_str(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_on_behind_what_was_sent_for_the_rest_of_its_time() {
        let query =
            "watch=1&resource%56ersion=5&labelSelector=a%3Db&timeoutSeconds=60&allowWatchBookmarks=true";
        assert_eq!(
            watch_from(query, 9, Duration::from_secs(20)).unwrap(),
            "watch=1&labelSelector=a%3Db&allowWatchBookmarks=true&timeoutSeconds=40&resourceVersion=9"
        );
        assert_eq!(watch_from(query, 9, Duration::from_secs(61)), None);
        let all = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(watch_from(all, 9, Duration::ZERO).unwrap(), "watch=1&resourceVersion=9");
    }

    #[test]
    fn a_list_is_read_again_at_the_revision_that_it_shows() {
        let exactly = "resourceVersion=9&resourceVersionMatch=Exact";
        assert_eq!(list_at("", 9), exactly);
        assert_eq!(list_at("limit=5&fieldSelector=a", 9), format!("limit=5&fieldSelector=a&{exactly}"));
        assert_eq!(list_at("resourceVersion=0&limit=5", 9), exactly);
        assert_eq!(list_at("resourceVersion=3&resourceVersionMatch=NotOlderThan", 9), exactly);
        assert_eq!(list_at("limit=5&continue=abc", 9), "limit=5&continue=abc");
    }
}
