//! Decoding of options from a query string, with upstream's rules for booleans, numbers and repeated keys (`queryparams`).

use std::num::ParseIntError;

use portico_gostd::url;
use portico_machinery::request_info::parse_query_bool;
use portico_machinery::selector::{FieldSelector, LabelSelector};
use portico_machinery::{Status, field};

use super::validate::{self, check_errors, number_error};
use super::{CreateOptions, DeleteOptions, FieldValidation, ListOptions, PatchOptions, Propagation};
use super::{VersionMatch, delete};
use crate::Result;

/// Options in a query string, parsed as for authorization.
pub struct Query<'q>(url::Query<'q>, &'q str);

impl<'q> Query<'q> {
    /// Parses a query string.
    #[must_use]
    pub fn parse(raw: &'q str) -> Self {
        Self(url::Query::parse(raw), raw)
    }

    /// First value of a key, which is the effective one for all options except lists.
    pub fn first(&self, key: &str) -> Option<&str> {
        self.0.first(key)
    }

    fn text(&self, key: &str) -> &str {
        self.first(key).unwrap_or_default()
    }

    /// First value of a key, unless it is empty.
    fn non_empty(&self, key: &str) -> Option<String> {
        self.first(key).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// All values of a key, in order.
    pub fn all(&self, key: &str) -> Vec<String> {
        self.0.all(key).map(str::to_owned).collect()
    }

    /// All values of a key, in order, escaped for another query. Bytes that are not UTF-8 are preserved.
    pub fn escaped(&self, key: &str) -> Vec<String> {
        let pairs = url::pairs(self.1.as_bytes()).filter(|(name, _)| name.as_ref() == key.as_bytes());
        let escaped = |value: &[u8]| {
            let mut out = Vec::new();
            url::escape_query_into(&mut out, value);
            String::from_utf8_lossy(&out).into_owned()
        };
        pairs.map(|(_, value)| escaped(&value)).collect()
    }

    /// Boolean as upstream reads it: `None` if absent, true for all values except `false` and `0`.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.first(key).map(parse_query_bool)
    }

    fn integer(&self, key: &str) -> Result<Option<i64>> {
        let Some(text) = self.first(key) else { return Ok(None) };
        let parsed = text.parse::<i64>();
        let invalid_number = |error: ParseIntError| {
            Box::new(Status::bad_request(number_error("ParseInt", text, error.kind())))
        };
        parsed.map(Some).map_err(invalid_number)
    }

    /// Decodes the query as the options of every verb, for `tests/fuzz`: must not panic.
    #[doc(hidden)]
    pub fn read_all(&self) {
        let _ = (self.create_options(), self.update_options(), self.patch_options(), self.apply_options());
        let _ = (self.delete_options(), self.version_options());
        let _ = (self.list_options(false), self.list_options(true));
    }

    /// Decodes and validates options of create.
    pub(crate) fn create_options(&self) -> Result<CreateOptions> {
        self.write_options("CreateOptions", Vec::new())
    }

    /// Decodes and validates options of update.
    pub(crate) fn update_options(&self) -> Result<CreateOptions> {
        self.write_options("UpdateOptions", Vec::new())
    }

    /// Decodes and validates options of a patch other than an apply.
    pub(crate) fn patch_options(&self) -> Result<PatchOptions> {
        let force = self.flag("force");
        let mut errors = Vec::new();
        if force.is_some() {
            errors.push(field::Error::forbidden(&"force".into(), "may not be specified for non-apply patch"));
        }
        Ok(PatchOptions { write: self.write_options("PatchOptions", errors)?, force })
    }

    /// Decodes and validates options of an apply.
    pub(crate) fn apply_options(&self) -> Result<PatchOptions> {
        let mut errors = Vec::new();
        if self.text("fieldManager").is_empty() {
            errors.push(field::Error::required(&"fieldManager".into(), "is required for apply patch"));
        }
        Ok(PatchOptions { write: self.write_options("PatchOptions", errors)?, force: self.flag("force") })
    }

    fn write_options(&self, kind: &str, mut errors: Vec<field::Error>) -> Result<CreateOptions> {
        if self.0.is_empty() && errors.is_empty() {
            return Ok(CreateOptions::default());
        }
        let (manager, dry_run) = (self.text("fieldManager"), self.all("dryRun"));
        let validation = self.text("fieldValidation");
        validate::field_manager(manager, &mut errors);
        validate::dry_run(&dry_run, &mut errors);
        let field_validation = match validation {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(field::Error::not_supported(&"fieldValidation".into(), other, &supported));
                FieldValidation::Warn
            }
        };
        check_errors(kind, &errors)?;
        Ok(CreateOptions {
            dry_run: !dry_run.is_empty(),
            field_validation,
            field_manager: manager.to_owned(),
        })
    }

    /// Decodes and validates options of a delete without a body.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions> {
        if self.0.is_empty() {
            return Ok(DeleteOptions::default());
        }
        delete::RawDeleteOptions {
            grace_period_seconds: self.integer("gracePeriodSeconds")?,
            orphan_dependents: self.flag("orphanDependents"),
            propagation_policy: self.first("propagationPolicy").map(str::to_owned),
            dry_run: self.all("dryRun"),
            ignore_store_read_error_with_cluster_breaking_potential: self
                .flag("ignoreStoreReadErrorWithClusterBreakingPotential"),
            preconditions: Some(delete::Preconditions {
                uid: self.non_empty("uid"),
                resource_version: self.non_empty("resourceVersion"),
            }),
            ..delete::RawDeleteOptions::default()
        }
        .validate()
    }

    /// Decodes `resourceVersion` of a get: the lowest acceptable revision.
    pub(crate) fn version_options(&self) -> Result<Option<i64>> {
        let version = self.text("resourceVersion");
        validate::RawList { version, version_match: "", continue_token: "", send_initial_events: None }
            .parse_version()
    }

    /// Decodes and validates options of list, watch and deletecollection. `watch` selects the validation rules.
    pub(crate) fn list_options(&self, watch: bool) -> Result<ListOptions> {
        if self.0.is_empty() && !watch {
            return Ok(ListOptions::default());
        }
        let mut raw = validate::RawList {
            version: self.text("resourceVersion"),
            version_match: self.text("resourceVersionMatch"),
            continue_token: self.text("continue"),
            send_initial_events: self.flag("sendInitialEvents"),
        };
        let is_watch = watch && self.flag("watch").unwrap_or(false);
        if is_watch {
            raw.default_watch();
        }
        raw.validate(is_watch)?;
        let labels = LabelSelector::parse(self.text("labelSelector"))
            .map_err(|e| Status::bad_request(e.to_string()))?;
        let fields = FieldSelector::parse(self.text("fieldSelector"))
            .map_err(|e| Status::bad_request(e.to_string()))?;
        Ok(ListOptions {
            labels,
            fields,
            limit: non_negative(self.integer("limit")?),
            continue_token: raw.continue_token.to_owned(),
            resource_version: raw.parse_version()?,
            version_match: match raw.version_match {
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            send_initial_events: raw.send_initial_events,
            allow_bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            timeout_seconds: non_negative(self.integer("timeoutSeconds")?) as u64,
        })
    }
}

/// Treats negative numbers as absent.
fn non_negative(n: Option<i64>) -> usize {
    n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

impl Propagation {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "Orphan" => Some(Self::Orphan),
            "Background" => Some(Self::Background),
            "Foreground" => Some(Self::Foreground),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        let status = result.unwrap_err();
        format!("{} {}", status.code, status.message)
    }

    #[test]
    fn invalid_pairs_are_skipped() {
        let query = Query::parse("limit=%zz&limit=1;x=2&limit=%4&continue=a%2Fb");
        assert_eq!((query.first("limit"), query.first("continue")), (None, Some("a/b")));
    }

    #[test]
    fn a_deletion_without_a_body_reads_options_from_the_query() {
        let options = Query::parse("uid=u&resourceVersion=7").delete_options().unwrap();
        let (uid, version) = (Some("u".to_owned()), Some("7".to_owned()));
        assert_eq!(options.preconditions, delete::Preconditions { uid, resource_version: version });
        let without_preconditions = Query::parse("uid=&dryRun=All").delete_options().unwrap();
        assert_eq!(without_preconditions.preconditions, delete::Preconditions::default());
    }

    #[test]
    fn write_options_are_validated_in_upstreams_words() {
        let rows = [
            (
                "dryRun=Some",
                "422 CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
            ),
            (
                "fieldValidation=Maybe",
                "422 CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
            ),
        ];
        for (query, expected) in rows {
            assert_eq!(message(Query::parse(query).create_options()), expected);
        }
        let long = format!("fieldManager={}", "x".repeat(129));
        assert_eq!(
            message(Query::parse(&long).create_options()),
            "422 CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
        );
        assert!(Query::parse("dryRun=All").create_options().unwrap().dry_run);
        assert!(message(Query::parse("force=true").patch_options()).contains("non-apply patch"));
    }

    #[test]
    fn a_manager_name_of_any_length_is_refused_with_few_errors() {
        let causes = |manager: &str| {
            let status = Query::parse(&format!("fieldManager={manager}")).create_options().unwrap_err();
            assert!(status.message.len() < 1 << 18, "{} bytes", status.message.len());
            status.details.unwrap().causes.len()
        };
        assert_eq!(
            causes(&"%00".repeat(validate::MANAGER_MAX)),
            validate::MANAGER_MAX,
            "each character of a name that may be as long"
        );
        assert_eq!(causes(&"%00".repeat(300_000)), 2, "its length, and the first character");
    }

    #[test]
    fn list_options_are_validated_in_upstreams_words() {
        let rows = [
            (
                "resourceVersionMatch=Exact",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersion=1&resourceVersionMatch=Exact&continue=x",
                "resourceVersionMatch is forbidden when continue is provided",
            ),
            (
                "resourceVersion=1&resourceVersionMatch=Nearest",
                "Unsupported value: \"Nearest\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ),
            (
                "resourceVersion=0&resourceVersionMatch=Exact",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ),
            ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
        ];
        for (query, expected) in rows {
            let text = message(Query::parse(query).list_options(false));
            assert!(
                text.starts_with("422 ListOptions.meta.k8s.io \"\"") && text.ends_with(expected),
                "{text}"
            );
        }
        for (query, code) in
            [("limit=x", "400"), ("resourceVersion=abc", "400"), ("continue=a&resourceVersion=5", "400")]
        {
            assert!(message(Query::parse(query).list_options(false)).starts_with(code), "{query}");
        }
        assert_eq!(Query::parse("limit=-5").list_options(false).unwrap().limit, 0);
    }

    #[test]
    fn a_watch_without_a_revision_requests_initial_events() {
        let options = Query::parse("watch=true").list_options(true).unwrap();
        assert_eq!(options.send_initial_events, Some(true));
        let options = Query::parse("watch=1&resourceVersion=7").list_options(true).unwrap();
        assert_eq!((options.send_initial_events, options.resource_version), (None, Some(7)));
        assert!(
            message(Query::parse("watch=1&resourceVersion=7&sendInitialEvents=true").list_options(true))
                .contains("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        );
        assert!(
            message(
                Query::parse("watch=1&resourceVersion=7&resourceVersionMatch=NotOlderThan")
                    .list_options(true)
            )
            .contains("forbidden for watch unless sendInitialEvents is provided")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_query_makes_the_decoders_panic(raw in ".*", label in ".*", field in ".*") {
            let encoded: String = ::url::form_urlencoded::Serializer::new(String::new())
                .append_pair("labelSelector", &label)
                .append_pair("fieldSelector", &field)
                .finish();
            for text in [&raw, &encoded] {
                let query = Query::parse(text);
                let _ = (query.list_options(true), query.list_options(false), query.delete_options());
                let _ = (query.create_options(), query.patch_options());
            }
        }
    }
}
