//! Options of a request as an object of their kind, for webhooks and policies.

use portico_registry::{CreateOptions, DeleteOptions, FieldValidation, Options, Propagation};
use serde::Serialize;

/// `CreateOptions`, `UpdateOptions` or `DeleteOptions` of `meta.k8s.io/v1`. Unset fields are omitted.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestOptions<'a> {
    kind: &'static str,
    api_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<RequestPreconditions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orphan_dependents: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "str::is_empty")]
    field_manager: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_validation: Option<&'static str>,
}

/// Preconditions of a delete.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestPreconditions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

impl<'a> RequestOptions<'a> {
    /// Returns the options object; `None` for a connection. Webhooks and policies see a patch as an update (upstream's
    /// `patchToUpdateOptions`).
    pub(crate) fn from_options(options: Options<'a>) -> Option<Self> {
        Some(match options {
            Options::Create(options) => Self::for_write("CreateOptions", options),
            Options::Update(options) => Self::for_write("UpdateOptions", options),
            Options::Patch(options) => Self::for_write("UpdateOptions", &options.write),
            Options::Delete(options) => Self::for_delete(options),
            Options::Connect => return None,
        })
    }

    fn new(kind: &'static str, dry_run: bool) -> Self {
        let dry_run = dry_run.then_some(["All"]);
        Self { kind, api_version: "meta.k8s.io/v1", dry_run, ..Self::default() }
    }

    fn for_write(kind: &'static str, options: &'a CreateOptions) -> Self {
        Self {
            field_manager: &options.field_manager,
            field_validation: match options.field_validation {
                // The default is omitted.
                FieldValidation::Warn => None,
                FieldValidation::Ignore => Some("Ignore"),
                FieldValidation::Strict => Some("Strict"),
            },
            ..Self::new(kind, options.dry_run)
        }
    }

    fn for_delete(options: &'a DeleteOptions) -> Self {
        let (uid, resource_version) =
            (options.preconditions.uid.as_deref(), options.preconditions.resource_version.as_deref());
        let any = uid.is_some() || resource_version.is_some();
        Self {
            grace_period_seconds: options.grace_period_seconds,
            preconditions: any.then_some(RequestPreconditions { uid, resource_version }),
            orphan_dependents: options.orphan_dependents,
            propagation_policy: options.propagation.map(|propagation| match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            }),
            ..Self::new("DeleteOptions", options.dry_run)
        }
    }
}
