//! Lists of indexes as text, such as `1,3-5,7`: strictly increasing and below the number of completions.

/// Returns the number of indexes in a list, or upstream's first diagnostic.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut previous: Option<i64> = None;
    let mut total = 0;
    for fragment in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = interval(fragment, completions)?;
        if let Some(last) = previous.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        previous = Some(last);
        total += last - first + 1;
    }
    Ok(total)
}

fn interval(fragment: &str, completions: i64) -> Result<(i64, i64), String> {
    let mut limits = fragment.split('-');
    let (first, last) = (limits.next().unwrap_or_default(), limits.next());
    if limits.next().is_some() {
        return Err(format!(
            "the fragment {fragment:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let first = index(first, completions)?;
    let Some(last) = last else { return Ok((first, first)) };
    let last = index(last, completions)?;
    if first >= last {
        return Err(format!("non-increasing order, previous: {first}, current: {last}"));
    }
    Ok((first, last))
}

fn index(text: &str, completions: i64) -> Result<i64, String> {
    let number: i64 =
        text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
    if number >= completions {
        return Err(format!("too large index: {text:?}"));
    }
    Ok(number)
}

/// Returns the first index that is in both lists. Invalid parts are ignored.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|fragment| interval(fragment, completions).ok()).collect()
    };
    let (completed, failed) = (intervals(completed), intervals(failed));
    let (mut a, mut b) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some((a_from, a_to)), Some((b_from, b_to))) = (a.peek(), b.peek()) {
        if a_from <= b_to && b_from <= a_to {
            return Some(*a_from.max(b_from));
        }
        if a_from <= b_from {
            a.next()
        } else {
            b.next()
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_increase_and_are_below_the_completions() {
        assert_eq!(count("", 3), Ok(0));
        assert_eq!(count("0,2-4,7", 8), Ok(5));
        for (text, error) in [
            ("1,1", "non-increasing order, previous: 1, current: 1"),
            ("3-2", "non-increasing order, previous: 3, current: 2"),
            ("8", "too large index: \"8\""),
            ("a", "cannot convert string to integer for index: \"a\""),
        ] {
            assert_eq!(count(text, 8), Err(error.to_owned()), "{text}");
        }
        assert!(count("1-2-3", 8).unwrap_err().starts_with("the fragment \"1-2-3\" violates"));
    }

    #[test]
    fn overlap_returns_the_first_common_index() {
        assert_eq!(overlap("0-2,5-9", "3,7", 10), Some(7));
        assert_eq!(overlap("0-2", "3", 10), None);
        assert_eq!(overlap("1,0", "1", 10), Some(1), "unordered indexes");
        assert_eq!(overlap("a,4", "3-4", 10), Some(4), "a fragment that cannot be parsed");
        assert_eq!(overlap("", "3", 10), None);
    }
}
