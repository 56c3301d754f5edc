//! Admission: who else is asked about a write (upstream's `admission.Interface`).
//!
//! The registry knows the questions, not who answers: one [`Admission`] is given to it. Every write that passes the verbs
//! carries the same [`Attributes`].

mod attributes;
mod versions;

use std::sync::Arc;

use portico_machinery::Object;
use portico_store::{Operation as StoreOperation, Record, Txn, TxnError};

use crate::hooks::Pending;
use crate::objects::Objects;
use crate::write::Write;

pub use attributes::{Attributes, Operation, Options};
pub use versions::VersionError;

/// How a commit that was counted has ended; nothing when there was nothing to count, and nothing was written.
pub type Charged = Option<Result<Arc<Record>, TxnError>>;

/// What is asked of the namespace of a write before anything else is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceRules {
    /// Whether it has to be there, and for what is new not on its way out (upstream's plugin `NamespaceLifecycle`).
    pub lifecycle: bool,
    /// Whether one that is missing is made for what is new (upstream's plugin `NamespaceAutoProvision`).
    pub provision: bool,
}

impl Default for NamespaceRules {
    /// Upstream's.
    fn default() -> Self {
        Self { lifecycle: true, provision: false }
    }
}

/// Who else is asked about a write. What is not concerned returns nothing at once.
pub trait Admission: Send + Sync {
    /// What is asked of namespaces, which the registry keeps in each write's transaction.
    fn namespace_rules(&self) -> NamespaceRules {
        NamespaceRules::default()
    }

    /// Changes what is written before it is prepared and validated, or refuses it; gives warnings for the caller, also with a
    /// refusal. A delete has only an old object; the new object of a connection is its options.
    fn mutate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>>;

    /// Accepts or refuses what is valid; gives warnings for the caller, also with a refusal. The objects are those of
    /// [`Admission::mutate`].
    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>>;

    /// Refuses a write that does not fit into the quotas, for a dry run.
    fn check_quota<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<Pending<'a, ()>>;

    /// Commits a valid write, and the checks of what it relies on, together with what counts it in quotas.
    fn commit<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
        txn: &'a Txn,
        checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>>;
}

/// Admission that accepts everything and counts nothing.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn mutate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a mut Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        None
    }

    fn validate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        None
    }

    fn check_quota<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
    ) -> Option<Pending<'a, ()>> {
        None
    }

    fn commit<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
        _txn: &'a Txn,
        _checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>> {
        None
    }
}
