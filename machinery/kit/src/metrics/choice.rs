//! Choice of the metrics that are exposed and of the allowed values of their labels (component-base's `metrics.Options`).
//!
//! The choice is applied to the encoded metrics, so that counting costs the same with and without it. Does not depend on flags.

mod samples;

use std::collections::{HashMap, HashSet};

use samples::{AllowedValues, Samples};

/// Choice of exposed metrics; the default exposes all metrics that are not hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricChoice {
    /// `--show-hidden-metrics-for-version`: exposes metrics that upstream hides before it removes them.
    pub show_hidden: bool,
    /// `--disabled-metrics`: full names of metrics that are not exposed.
    pub disabled: HashSet<String>,
    /// `--allow-metric-labels`: allowed values by metric and label.
    pub allowed_values: HashMap<String, AllowedValues>,
}

impl MetricChoice {
    /// True if metrics are exposed without changes.
    pub(super) fn exposes_all(&self) -> bool {
        self.disabled.is_empty() && self.allowed_values.is_empty()
    }

    /// Applies the choice to OpenMetrics text, in which the names of the counters in `bare_counters` have an added `_total`.
    /// Returns the resulting text, and the number of observations with a label value that is not allowed.
    pub(super) fn apply(&self, text: &str, bare_counters: &HashSet<String>) -> (String, u64) {
        let (mut out, mut unexpected) = (String::with_capacity(text.len()), 0);
        let mut samples = Samples::default();
        let mut is_disabled = false;
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# HELP ") {
                unexpected += samples.write(&mut out);
                is_disabled = false;
                let base = family.split(' ').next().unwrap_or_default();
                samples = Samples::new(base, self.rules(base, bare_counters));
                is_disabled |= self.is_disabled(base, bare_counters);
            }
            match line {
                _ if is_disabled && line != "# EOF" => {}
                _ if line.starts_with('#') || !samples.are_constrained() => {
                    unexpected += if line == "# EOF" { samples.write(&mut out) } else { 0 };
                    out.extend([line, "\n"]);
                }
                _ => samples.add(line),
            }
        }
        unexpected += samples.write(&mut out);
        (out, unexpected)
    }

    /// Checks both possible names of a family: OpenMetrics names the family of a counter without `_total`, and only the next line
    /// shows whether it is a counter.
    fn is_disabled(&self, base: &str, bare: &HashSet<String>) -> bool {
        possible_names(base, bare).any(|name| self.disabled.contains(&name))
    }

    fn rules(&self, base: &str, bare: &HashSet<String>) -> AllowedValues {
        possible_names(base, bare)
            .find_map(|name| self.allowed_values.get(&name).cloned())
            .unwrap_or_default()
    }
}

fn possible_names(base: &str, bare: &HashSet<String>) -> impl Iterator<Item = String> {
    let total = (!bare.contains(base)).then(|| format!("{base}_total"));
    std::iter::once(base.to_owned()).chain(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP x X.\n# TYPE x counter\nx_total{verb=\"GET\",code=\"200\"} 3\n\
        x_total{verb=\"PUT\",code=\"200\"} 4\nx_total{verb=\"P\\\"T\",code=\"200\"} 5\n\
        # HELP y Y.\n# TYPE y gauge\ny 1\n# EOF\n";

    fn apply_choice(choice: &MetricChoice) -> (String, u64) {
        choice.apply(TEXT, &HashSet::new())
    }

    #[test]
    fn a_disabled_metric_is_removed_and_other_metrics_remain() {
        let disabled = |name: &str| MetricChoice { disabled: [name.to_owned()].into(), ..Default::default() };
        assert_eq!(apply_choice(&disabled("x_total")).0, "# HELP y Y.\n# TYPE y gauge\ny 1\n# EOF\n");
        assert_eq!(apply_choice(&disabled("y")).0, TEXT.replace("# HELP y Y.\n# TYPE y gauge\ny 1\n", ""));
        assert_eq!(apply_choice(&disabled("z")).0, TEXT);
    }

    #[test]
    fn values_that_are_not_allowed_share_one_series() {
        let allowed = HashMap::from([("verb".to_owned(), HashSet::from(["GET".to_owned()]))]);
        let choice =
            MetricChoice { allowed_values: [("x_total".to_owned(), allowed)].into(), ..Default::default() };
        let (text, unexpected) = apply_choice(&choice);
        assert_eq!(
            text,
            "# HELP x X.\n# TYPE x counter\nx_total{verb=\"GET\",code=\"200\"} 3\n\
             x_total{verb=\"unexpected\",code=\"200\"} 9\n# HELP y Y.\n# TYPE y gauge\ny 1\n# EOF\n"
        );
        assert_eq!(unexpected, 9);
    }

    #[test]
    fn buckets_and_sums_of_merged_series_are_added() {
        let text = "# HELP h H.\n# TYPE h histogram\nh_sum{v=\"a\"} 0.5\nh_count{v=\"a\"} 1\n\
            h_bucket{le=\"1.0\",v=\"a\"} 1\nh_bucket{le=\"+Inf\",v=\"a\"} 1\nh_sum{v=\"b\"} 2.25\nh_count{v=\"b\"} 2\n\
            h_bucket{le=\"1.0\",v=\"b\"} 1\nh_bucket{le=\"+Inf\",v=\"b\"} 2\n# EOF\n";
        let allowed = HashMap::from([("v".to_owned(), HashSet::from([String::new()]))]);
        let choice =
            MetricChoice { allowed_values: [("h".to_owned(), allowed)].into(), ..Default::default() };
        let (text, unexpected) = choice.apply(text, &HashSet::new());
        assert_eq!(
            text,
            "# HELP h H.\n# TYPE h histogram\nh_sum{v=\"unexpected\"} 2.75\nh_count{v=\"unexpected\"} 3\n\
             h_bucket{le=\"1.0\",v=\"unexpected\"} 2\nh_bucket{le=\"+Inf\",v=\"unexpected\"} 3\n# EOF\n"
        );
        assert_eq!(unexpected, 3);
    }
}
