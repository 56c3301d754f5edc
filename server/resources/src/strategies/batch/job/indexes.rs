//! Lists of indexes as text, `1,3-5,7`: strictly increasing, below the number of completions.

/// The intervals of a list, or upstream's first diagnostic.
pub(super) fn parse(text: &str, completions: i64) -> Result<Vec<(i64, i64)>, String> {
    let mut intervals: Vec<(i64, i64)> = Vec::new();
    if text.is_empty() {
        return Ok(intervals);
    }
    for fragment in text.split(',') {
        let (from, to) = interval(fragment, completions)?;
        if let Some((_, last)) = intervals.last().filter(|(_, last)| *last >= from) {
            return Err(format!("non-increasing order, previous: {last}, current: {from}"));
        }
        intervals.push((from, to));
    }
    Ok(intervals)
}

fn interval(fragment: &str, completions: i64) -> Result<(i64, i64), String> {
    let mut limits = fragment.split('-');
    let (from, to) = (limits.next().unwrap_or_default(), limits.next());
    if limits.next().is_some() {
        return Err(format!(
            "the fragment {fragment:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let from = index(from, completions)?;
    let Some(to) = to else { return Ok((from, from)) };
    let to = index(to, completions)?;
    if from >= to {
        return Err(format!("non-increasing order, previous: {from}, current: {to}"));
    }
    Ok((from, to))
}

fn index(text: &str, completions: i64) -> Result<i64, String> {
    let number: i64 =
        text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
    if number >= completions {
        return Err(format!("too large index: {text:?}"));
    }
    Ok(number)
}

/// The first index that is in both lists.
pub(super) fn overlap(one: &[(i64, i64)], other: &[(i64, i64)]) -> Option<i64> {
    let (mut a, mut b) = (one.iter().peekable(), other.iter().peekable());
    while let (Some((a_from, a_to)), Some((b_from, b_to))) = (a.peek(), b.peek()) {
        let common = *a_from.max(b_from);
        if common <= *a_to.min(b_to) {
            return Some(common);
        }
        if a_to < b_to {
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
    fn lists_of_indexes_grow_and_end_below_the_completions() {
        assert_eq!(parse("", 3), Ok(vec![]));
        assert_eq!(parse("0,2-4,7", 8), Ok(vec![(0, 0), (2, 4), (7, 7)]));
        for (text, error) in [
            ("1,1", "non-increasing order, previous: 1, current: 1"),
            ("3-2", "non-increasing order, previous: 3, current: 2"),
            ("8", "too large index: \"8\""),
            ("a", "cannot convert string to integer for index: \"a\""),
        ] {
            assert_eq!(parse(text, 8), Err(error.to_owned()), "{text}");
        }
        assert!(parse("1-2-3", 8).unwrap_err().starts_with("the fragment \"1-2-3\" violates"));
    }

    #[test]
    fn lists_overlap_where_both_have_an_index() {
        assert_eq!(overlap(&[(0, 2), (5, 9)], &[(3, 3), (7, 7)]), Some(7));
        assert_eq!(overlap(&[(0, 2)], &[(3, 3)]), None);
    }
}
