//! Interface between the verbs and admission (upstream's `admission.Interface`).
//!
//! The registry receives one [`Admission`] and does not depend on the plugins behind it. All verbs describe a write with the
//! same [`Attributes`].

mod attributes;
mod versions;

use std::sync::Arc;

use portico_machinery::Object;
use portico_store::{Operation as StoreOperation, Record, Txn, TxnError};

use crate::hooks::ResultFuture;
use crate::objects::Objects;
use crate::write::Write;

pub use attributes::{Attributes, Operation, Options};
pub use versions::VersionError;

/// Result of a commit that quotas count; `None` if no quota applies, in which case nothing was written.
pub type QuotaCommit = Option<Result<Arc<Record>, TxnError>>;

/// Checks of the namespace of a write, made before all other checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceRules {
    /// True if the namespace must exist and, for new objects, must not be terminating (upstream's plugin `NamespaceLifecycle`).
    pub lifecycle: bool,
    /// True if a missing namespace is created for a new object (upstream's plugin `NamespaceAutoProvision`).
    pub provision: bool,
}

impl Default for NamespaceRules {
    /// Upstream's defaults.
    fn default() -> Self {
        Self { lifecycle: true, provision: false }
    }
}

/// Admission of writes. Methods return `None` immediately if no plugin handles the request.
pub trait Admission: Send + Sync {
    /// Namespace rules, which the registry enforces in the transaction of each write.
    fn namespace_rules(&self) -> NamespaceRules {
        NamespaceRules::default()
    }

    /// Changes or refuses an object before it is prepared and validated. Returns warnings for the caller, also with a refusal.
    /// A delete passes only an old object; a connection passes its options as the new object.
    fn mutate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>>;

    /// Accepts or refuses a valid object. Returns warnings for the caller, also with a refusal. The objects correspond to those
    /// of [`Admission::mutate`].
    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>>;

    /// Refuses a write that exceeds a quota; used for dry runs.
    fn check_quota<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<ResultFuture<'a, ()>>;

    /// Commits a valid write together with its precondition checks and the updates of quotas that count the write.
    fn commit<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
        txn: &'a Txn,
        checks: &'a [StoreOperation],
    ) -> Option<ResultFuture<'a, QuotaCommit>>;
}

/// Admission that accepts every write and counts nothing.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn mutate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a mut Object>,
        _old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>> {
        None
    }

    fn validate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a Object>,
        _old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>> {
        None
    }

    fn check_quota<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
    ) -> Option<ResultFuture<'a, ()>> {
        None
    }

    fn commit<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
        _txn: &'a Txn,
        _checks: &'a [StoreOperation],
    ) -> Option<ResultFuture<'a, QuotaCommit>> {
        None
    }
}
