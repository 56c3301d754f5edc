//! Options of delete and deletecollection.

use portico_machinery::{Status, field};
use serde::Deserialize;

use super::validate::{self, check_errors};
use crate::Result;

/// Option that allows the deletion of unreadable objects.
pub(crate) const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Preconditions of a delete; empty strings require nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preconditions {
    /// UID of the object.
    pub uid: Option<String>,
    /// Resource version of the object.
    pub resource_version: Option<String>,
}

/// Treatment of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents stay, without the owner reference.
    Orphan,
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
}

/// Options of delete (`metav1.DeleteOptions`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Runs all steps except the write.
    pub dry_run: bool,
    /// Grace period in seconds, for graceful kinds.
    pub grace_period_seconds: Option<i64>,
    /// Preconditions on the object.
    pub preconditions: Preconditions,
    /// Deprecated form of `propagation`.
    pub orphan_dependents: Option<bool>,
    /// Treatment of dependents, if set.
    pub propagation: Option<Propagation>,
    /// `ignoreStoreReadErrorWithClusterBreakingPotential`: true to delete an unreadable object.
    pub ignore_read_error: bool,
}

impl DeleteOptions {
    /// Requested propagation, from either option; `None` if the caller sets neither.
    #[must_use]
    pub fn requested_propagation(&self) -> Option<Propagation> {
        self.propagation.or(match self.orphan_dependents {
            Some(true) => Some(Propagation::Orphan),
            Some(false) => Some(Propagation::Background),
            None => None,
        })
    }
}

/// Delete options as in a query or a body.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawDeleteOptions {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) grace_period_seconds: Option<i64>,
    pub(super) preconditions: Option<Preconditions>,
    pub(super) orphan_dependents: Option<bool>,
    pub(super) propagation_policy: Option<String>,
    pub(super) dry_run: Vec<String>,
    pub(super) ignore_store_read_error_with_cluster_breaking_potential: Option<bool>,
}

impl RawDeleteOptions {
    pub(super) fn validate(self) -> Result<DeleteOptions> {
        let mut errors = Vec::new();
        let path = field::Path::from("propagationPolicy");
        let policy = self.propagation_policy.as_deref().filter(|p| !p.is_empty());
        if let (Some(policy), Some(_)) = (policy, self.orphan_dependents) {
            let text = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(field::Error::invalid(&path, policy, text));
        }
        let propagation = policy.and_then(Propagation::parse);
        if let (Some(policy), None) = (policy, propagation) {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(field::Error::not_supported(&path, policy, &supported));
        }
        validate::dry_run(&self.dry_run, &mut errors);
        check_errors("DeleteOptions", &errors)?;
        Ok(DeleteOptions {
            dry_run: !self.dry_run.is_empty(),
            grace_period_seconds: self.grace_period_seconds,
            preconditions: self.preconditions.unwrap_or_default(),
            orphan_dependents: self.orphan_dependents,
            propagation,
            ignore_read_error: self
                .ignore_store_read_error_with_cluster_breaking_potential
                .unwrap_or_default(),
        })
    }
}

impl DeleteOptions {
    /// Decodes and validates options in a JSON body. The body may have any group, and may omit kind and apiVersion.
    pub fn from_body(body: &[u8]) -> Result<Self> {
        let unrecognized = |error: &str| {
            let text =
                format!("the object provided is unrecognized (must be of type DeleteOptions): {error}");
            Box::new(Status::bad_request(text))
        };
        if body.trim_ascii_start().first() == Some(&b'[') {
            return Err(unrecognized("a list is not an object"));
        }
        let raw: RawDeleteOptions =
            serde_json::from_slice(body).map_err(|error| unrecognized(&error.to_string()))?;
        if !matches!(raw.kind.as_str(), "" | "DeleteOptions") {
            let (kind, version) = (&raw.kind, &raw.api_version);
            return Err(Box::new(Status::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?}"
            ))));
        }
        raw.validate()
    }
}

impl DeleteOptions {
    /// Status 422 if the option to delete an unreadable object is combined with options that require reading it.
    pub(crate) fn check_unsafe(&self, collection: bool) -> Result<()> {
        let conflicting = [
            (collection, "is not allowed with DELETECOLLECTION, try again after removing the option"),
            (self.dry_run, "cannot be set together with .dryRun"),
            (self.propagation.is_some(), "cannot be set together with .propagationPolicy"),
            (self.orphan_dependents.is_some(), "cannot be set together with .orphanDependents"),
            (self.grace_period_seconds.is_some(), "cannot be set together with .gracePeriodSeconds"),
            (self.preconditions != Preconditions::default(), "cannot be set together with .preconditions"),
        ];
        let wrong = conflicting.into_iter().filter(|(wrong, _)| *wrong);
        let path = field::Path::from(IGNORE_READ_ERROR);
        let errors: Vec<_> = wrong.map(|(_, why)| field::Error::invalid(&path, true, why)).collect();
        check_errors("DeleteOptions", &errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_delete_options_or_refused() {
        let body = br#"{"kind":"DeleteOptions","apiVersion":"apps/v1","propagationPolicy":"Orphan"}"#;
        assert_eq!(DeleteOptions::from_body(body).unwrap().propagation, Some(Propagation::Orphan));
        for bad in [&b"{"[..], b" []", br#"{"kind":"ConfigMap","apiVersion":"v1"}"#] {
            assert_eq!(DeleteOptions::from_body(bad).unwrap_err().code, 400);
        }
        let both = br#"{"propagationPolicy":"Orphan","orphanDependents":true}"#;
        assert!(DeleteOptions::from_body(both).unwrap_err().message.ends_with("cannot be both set"));
        let unknown = br#"{"propagationPolicy":"Upwards"}"#;
        assert!(
            DeleteOptions::from_body(unknown)
                .unwrap_err()
                .message
                .ends_with(r#"supported values: "Foreground", "Background", "Orphan", "nil""#)
        );
    }

    #[test]
    fn the_option_for_unreadable_objects_is_refused_together_with_others() {
        let alone = DeleteOptions { ignore_read_error: true, ..DeleteOptions::default() };
        assert!(alone.check_unsafe(false).is_ok());
        let with = DeleteOptions { dry_run: true, grace_period_seconds: Some(0), ..alone.clone() };
        let refused = with.check_unsafe(false).unwrap_err();
        assert_eq!(refused.code, 422);
        assert_eq!(
            refused.message,
            "DeleteOptions.meta.k8s.io \"\" is invalid: \
             [ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .dryRun, \
             ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with \
             .gracePeriodSeconds]"
        );
        assert!(alone.check_unsafe(true).unwrap_err().message.contains("DELETECOLLECTION"));
    }
}
