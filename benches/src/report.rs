//! Results of a run: a table for people, JSON for programs.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::Failure;

/// Goal of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// Upper bound.
    AtMost(f64),
    /// Lower bound.
    AtLeast(f64),
    /// No goal: the figure is reported for context.
    None,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Figure {
    bench: &'static str,
    figure: String,
    unit: &'static str,
    measured: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<bool>,
}

/// All figures of a run, and the state of the machine.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    unix_time: u64,
    cores: usize,
    cpu: String,
    kernel: String,
    load_average_before: String,
    load_average_after: String,
    figures: Vec<Figure>,
    skipped: Vec<String>,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn begin() -> Self {
        Self {
            unix_time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: cpu(),
            kernel: read("/proc/sys/kernel/osrelease"),
            load_average_before: load_average(),
            load_average_after: String::new(),
            figures: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Adds a figure and prints it as progress.
    pub(crate) fn add(
        &mut self,
        bench: &'static str,
        figure: impl Into<String>,
        measured: f64,
        unit: &'static str,
        goal: Goal,
    ) {
        let (target, reached) = match goal {
            Goal::AtMost(most) => (Some(format!("<= {}", number(most))), Some(measured <= most)),
            Goal::AtLeast(least) => (Some(format!(">= {}", number(least))), Some(measured >= least)),
            Goal::None => (None, None),
        };
        let figure = Figure { bench, figure: figure.into(), unit, measured, target, reached };
        note(&line(&figure));
        self.figures.push(figure);
    }

    /// Records that a measurement was skipped, with the reason.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        let text = format!("{what}: SKIPPED: {why}");
        note(&text);
        self.skipped.push(text);
    }

    /// Prints the table, and writes JSON to the file if one is given.
    pub(crate) fn print(&mut self, json: Option<&Path>) -> Result<(), Failure> {
        self.load_average_after = load_average();
        let mut text = format!(
            "\n{} cores, {}, Linux {}; load average {} before, {} after\n\n",
            self.cores, self.cpu, self.kernel, self.load_average_before, self.load_average_after
        );
        for figure in &self.figures {
            writeln!(text, "{}", line(figure))?;
        }
        for skipped in &self.skipped {
            writeln!(text, "{skipped}")?;
        }
        std::io::stdout().write_all(text.as_bytes())?;
        if let Some(path) = json {
            std::fs::write(path, serde_json::to_vec_pretty(self)?)?;
        }
        Ok(())
    }
}

fn line(figure: &Figure) -> String {
    let verdict = match figure.reached {
        Some(true) => "reached",
        Some(false) => "MISSED",
        None => "",
    };
    let target = figure.target.as_deref().unwrap_or_default();
    let (bench, name, unit) = (figure.bench, &figure.figure, figure.unit);
    format!("{bench:<14} {name:<58} {:>10} {unit:<6} {target:>12} {verdict}", number(figure.measured))
}

/// Formats a value with about three digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Prints progress to standard error.
pub(crate) fn note(text: &str) {
    // Nothing can be reported if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
}

/// Returns the load averages of 1, 5 and 15 minutes.
pub(crate) fn load_average() -> String {
    read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn cpu() -> String {
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_reports_whether_it_meets_its_goal() {
        let mut report = Report::begin();
        report.add("x", "fast enough", 9.0, "ms", Goal::AtMost(10.0));
        report.add("x", "too slow", 10.5, "ms", Goal::AtMost(10.0));
        report.add("x", "enough", 8000.0, "/s", Goal::AtLeast(8000.0));
        report.add("x", "context", 1.0, "/s", Goal::None);
        let reached: Vec<_> = report.figures.iter().map(|figure| figure.reached).collect();
        assert_eq!(reached, [Some(true), Some(false), Some(true), None]);
        assert!(line(&report.figures[1]).ends_with("<= 10.0 MISSED"));
    }
}
