//! Upstream's text output of health endpoints, as pure functions.

use super::check::{Check, CheckResult};
use super::endpoint::HealthEndpoint;

/// Query parameters of health endpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthQuery {
    /// True if `verbose` is present; its value is ignored.
    pub verbose: bool,
    /// Values of all `exclude` parameters, in order.
    pub exclude: Vec<String>,
}

/// Status code and `text/plain; charset=utf-8` body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthResponse {
    /// 200 or 500.
    pub code: u16,
    /// Response body.
    pub body: String,
}

/// Results of all checks of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Evaluated endpoint.
    pub endpoint: HealthEndpoint,
    /// One result per check, in registration order.
    pub results: Vec<CheckResult>,
    /// Values of `exclude` that match no check, sorted.
    pub unknown_excludes: Vec<String>,
}

impl HealthQuery {
    /// Parses decoded query pairs, in order.
    pub fn from_pairs<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut query = Self::default();
        for (key, value) in pairs {
            match key.as_ref() {
                "verbose" => query.verbose = true,
                "exclude" => query.exclude.push(value.as_ref().to_owned()),
                _ => {}
            }
        }
        query
    }

    /// Returns the `exclude` value that matches this check by name or, failing that, by group.
    pub(super) fn excludes(&self, check: &Check) -> Option<&str> {
        let by_name = self.exclude.iter().find(|exclude| *exclude == check.name());
        by_name
            .or_else(|| self.exclude.iter().find(|exclude| Some(exclude.as_str()) == check.group()))
            .map(String::as_str)
    }

    pub(super) fn unknown_excludes(&self, checks: &[Check]) -> Vec<String> {
        let matches_check = |exclude: &String| {
            checks.iter().any(|check| exclude == check.name() || Some(exclude.as_str()) == check.group())
        };
        let mut unknown: Vec<String> =
            self.exclude.iter().filter(|exclude| !matches_check(exclude)).cloned().collect();
        unknown.sort();
        unknown.dedup();
        unknown
    }
}

impl Evaluation {
    /// True if no check failed.
    pub fn has_passed(&self) -> bool {
        self.results.iter().all(|checked| checked.failure.is_none())
    }

    /// Renders upstream's text: `ok` without a newline, or one line per check. A failure always lists the checks and
    /// withholds the reasons.
    pub fn render(&self, verbose: bool) -> HealthResponse {
        let passed = self.has_passed();
        if passed && !verbose {
            return HealthResponse { code: 200, body: "ok".to_owned() };
        }
        let mut body = String::with_capacity(64 * (self.results.len() + 1));
        for checked in &self.results {
            body.push_str(&render_line(self.endpoint, checked));
        }
        if !self.unknown_excludes.is_empty() {
            let names: Vec<String> = self.unknown_excludes.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            body.push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
        }
        let (word, code) = if passed { ("passed", 200) } else { ("failed", 500) };
        body.push_str(&format!("{} check {word}\n", self.endpoint.name()));
        HealthResponse { code, body }
    }
}

/// Renders the response of `/<endpoint>/<name>`, which includes the reason.
pub(super) fn render_single(result: Result<(), String>, warning: Option<String>) -> HealthResponse {
    match (result, warning) {
        (Ok(()), None) => HealthResponse { code: 200, body: "ok".to_owned() },
        (Ok(()), Some(warning)) => HealthResponse { code: 200, body: format!("ok: {warning}\n") },
        (Err(reason), _) => HealthResponse { code: 500, body: format!("internal server error: {reason}\n") },
    }
}

fn render_line(endpoint: HealthEndpoint, checked: &CheckResult) -> String {
    let name = &checked.name;
    match (&checked.failure, checked.excluded.as_deref()) {
        (Some(_), _) => format!("[-]{name} failed: reason withheld\n"),
        (None, Some("")) => format!("[+]{name} excluded: ok\n"),
        (None, Some(group)) => format!("[+]{name} excluded with {group}: ok\n"),
        // The list withholds the text of warnings.
        (None, None) if checked.warning.is_some() => {
            format!("[+]{name} ok, with a warning: see /{}/{name}\n", endpoint.name())
        }
        (None, None) => format!("[+]{name} ok\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, excluded: Option<&str>, failure: Option<&str>) -> CheckResult {
        CheckResult {
            name: name.into(),
            excluded: excluded.map(Into::into),
            failure: failure.map(Into::into),
            warning: None,
        }
    }

    fn evaluation(results: Vec<CheckResult>, unknown: &[&str]) -> Evaluation {
        let unknown_excludes = unknown.iter().map(ToString::to_string).collect();
        Evaluation { endpoint: HealthEndpoint::Readyz, results, unknown_excludes }
    }

    #[test]
    fn successful_checks_are_ok_and_verbose_lists_them() {
        let evaluation = evaluation(vec![checked("ping", None, None), checked("log", Some(""), None)], &[]);
        assert_eq!(evaluation.render(false), HealthResponse { code: 200, body: "ok".into() });
        let body = "[+]ping ok\n[+]log excluded: ok\nreadyz check passed\n";
        assert_eq!(evaluation.render(true), HealthResponse { code: 200, body: body.into() });
    }

    #[test]
    fn a_failure_is_always_verbose_and_withholds_the_reason() {
        let evaluation =
            evaluation(vec![checked("ping", None, None), checked("etcd", None, Some("secret"))], &[]);
        let body = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n";
        assert_eq!(evaluation.render(false), HealthResponse { code: 500, body: body.into() });
    }

    #[test]
    fn unknown_excludes_and_groups_are_named() {
        let evaluation = evaluation(vec![checked("etcd-0", Some("etcd"), None)], &["x", "y"]);
        let body = "[+]etcd-0 excluded with etcd: ok\n\
            warn: some health checks cannot be excluded: no matches for \"x\",\"y\"\nreadyz check passed\n";
        assert_eq!(evaluation.render(true).body, body);
    }

    #[test]
    fn excludes_match_by_name_then_by_group_and_the_rest_is_unknown() {
        let pairs = [("exclude", "ping"), ("verbose", "false"), ("exclude", "nosuch"), ("exclude", "db")];
        let query = HealthQuery::from_pairs(pairs);
        assert!(query.verbose);
        let checks = [Check::ping(), Check::new("etcd", || Ok(())).in_group("db")];
        assert_eq!(query.excludes(&checks[0]), Some("ping"));
        assert_eq!(query.excludes(&checks[1]), Some("db"));
        assert_eq!(query.unknown_excludes(&checks), ["nosuch"]);
    }
}
