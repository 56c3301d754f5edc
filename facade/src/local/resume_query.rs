//! Queries that resume a watch or repeat a list after the loss of a control service.

use std::time::Duration;

use portico_gostd::url::{first_value, pairs};

const VERSION: &str = "resourceVersion";
const MATCH: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";
const TIMEOUT: &str = "timeoutSeconds";
const LIMIT: &str = "limit";
const CONTINUE: &str = "continue";

/// Query of a watch that resumes after this revision, given the time since its start; `None` if its timeout has passed.
pub(super) fn watch_from(query: &str, revision: i64, elapsed: Duration) -> Option<String> {
    let mut resumed = remove_keys(query, &[VERSION, MATCH, INITIAL, TIMEOUT]);
    if let Some(timeout_seconds) =
        first_value(query, TIMEOUT).and_then(|text| text.parse::<u64>().ok()).filter(|s| *s > 0)
    {
        let remaining = Duration::from_secs(timeout_seconds).checked_sub(elapsed)?;
        push(&mut resumed, TIMEOUT, &remaining.as_secs().max(1).to_string());
    }
    push(&mut resumed, VERSION, &revision.to_string());
    Some(resumed)
}

/// Query that repeats a list at this revision.
pub(super) fn list_at(query: &str, revision: i64) -> String {
    if first_value(query, CONTINUE).is_some_and(|token| !token.is_empty()) {
        // The continue token contains the revision.
        return query.to_owned();
    }
    // At revision 0 the limit was ignored.
    let limit_was_ignored = first_value(query, VERSION).is_some_and(|version| version == "0");
    let removed_keys = [VERSION, MATCH, if limit_was_ignored { LIMIT } else { VERSION }];
    let mut repeated = remove_keys(query, &removed_keys);
    push(&mut repeated, VERSION, &revision.to_string());
    push(&mut repeated, MATCH, "Exact");
    repeated
}

/// Removes these keys from the query; the rest stays as it was sent.
fn remove_keys(query: &str, keys: &[&str]) -> String {
    let has_other_key = |part: &&str| {
        let mut pairs = pairs(part.as_bytes());
        pairs.next().is_none_or(|(key, _)| !keys.iter().any(|removed| *key == *removed.as_bytes()))
    };
    query.split('&').filter(|part| !part.is_empty()).filter(has_other_key).collect::<Vec<_>>().join("&")
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
    fn a_watch_resumes_after_the_last_revision_with_the_remaining_timeout() {
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
    fn a_list_is_repeated_at_its_revision() {
        let exactly = "resourceVersion=9&resourceVersionMatch=Exact";
        assert_eq!(list_at("", 9), exactly);
        assert_eq!(list_at("limit=5&fieldSelector=a", 9), format!("limit=5&fieldSelector=a&{exactly}"));
        assert_eq!(list_at("resourceVersion=0&limit=5", 9), exactly);
        assert_eq!(list_at("resourceVersion=3&resourceVersionMatch=NotOlderThan", 9), exactly);
        assert_eq!(list_at("limit=5&continue=abc", 9), "limit=5&continue=abc");
    }
}
