//! Samples of one family with restricted label values: series whose labels become equal are merged.

use std::collections::{HashMap, HashSet};

/// Replacement for a label value that is not allowed.
const UNEXPECTED: &str = "unexpected";

/// Allowed values by label.
pub(super) type AllowedValues = HashMap<String, HashSet<String>>;

/// Samples of one family.
#[derive(Default)]
pub(super) struct Samples {
    base: String,
    allowed: AllowedValues,
    /// Name with labels, and value, in the order of the input.
    series: Vec<(String, SampleValue)>,
    index_by_series: HashMap<String, usize>,
    unexpected: u64,
}

/// Value of a sample. Integers are kept as integers.
#[derive(Clone, Copy)]
enum SampleValue {
    Whole(u64),
    Float(f64),
}

impl Samples {
    pub(super) fn new(base: &str, allowed: AllowedValues) -> Self {
        Self { base: base.to_owned(), allowed, ..Self::default() }
    }

    pub(super) fn are_constrained(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Adds a line `name{labels} value`.
    pub(super) fn add(&mut self, line: &str) {
        let Some((head, value)) = line.rsplit_once(' ') else { return };
        let value = SampleValue::parse(value);
        let (name, labels) = head.split_once('{').unwrap_or((head, ""));
        let labels = labels.strip_suffix('}').unwrap_or(labels);
        let (labels, changed) = self.constrain_labels(labels);
        // Each observation is counted in exactly one of these samples.
        let counts = ["", "_total", "_count"].iter().any(|end| name.strip_prefix(&*self.base) == Some(end));
        if counts && changed > 0 {
            self.unexpected += changed * value.observations();
        }
        let series = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{labels}}}") };
        match self.index_by_series.get(&series) {
            // Quantiles cannot be added; the larger one is the better approximation.
            Some(&at) if labels.contains("quantile=\"") => self.series[at].1 = self.series[at].1.max(value),
            Some(&at) => self.series[at].1 = self.series[at].1.add(value),
            None => {
                self.index_by_series.insert(series.clone(), self.series.len());
                self.series.push((series, value));
            }
        }
    }

    /// Returns the labels with allowed values only, and the number of replaced values.
    fn constrain_labels(&self, mut labels: &str) -> (String, u64) {
        let (mut out, mut changed) = (String::with_capacity(labels.len()), 0);
        while let Some((name, rest)) = labels.split_once("=\"") {
            let end = closing_quote(rest);
            let raw = &rest[..end];
            labels = rest[end..].trim_start_matches('"').trim_start_matches(',');
            let fits = self.allowed.get(name).is_none_or(|allowed| allowed.contains(&unescape(raw)));
            changed += u64::from(!fits);
            let comma = if out.is_empty() { "" } else { "," };
            out.extend([comma, name, "=\"", if fits { raw } else { UNEXPECTED }, "\""]);
        }
        (out, changed)
    }

    /// Writes and removes all samples. Returns the number of observations with a value that is not allowed.
    pub(super) fn write(&mut self, out: &mut String) -> u64 {
        self.index_by_series.clear();
        for (series, value) in self.series.drain(..) {
            out.extend([series.as_str(), " ", &value.text(), "\n"]);
        }
        std::mem::take(&mut self.unexpected)
    }
}

fn closing_quote(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    });
    end.unwrap_or(text.len())
}

fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => out.extend(chars.next().map(|char| if char == 'n' { '\n' } else { char })),
            char => out.push(char),
        }
    }
    out
}

impl SampleValue {
    fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Float(text.parse().unwrap_or(f64::NAN)), Self::Whole)
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Self::Whole(a.saturating_add(b)),
            (a, b) => Self::Float(a.as_float() + b.as_float()),
        }
    }

    fn max(self, other: Self) -> Self {
        if other.as_float() > self.as_float() { other } else { self }
    }

    /// Returns the number of observations; a gauge with a fractional value counts as one.
    fn observations(self) -> u64 {
        match self {
            Self::Whole(value) => value,
            Self::Float(_) => 1,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Whole(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
        }
    }
}
