//! Objects whose stored bytes cannot be read: what readers of them are told, and how they are deleted.
//!
//! A list leaves them out and warns; everything about one of them alone answers 500 `StorageReadError`, as upstream does
//! (docs/adr/0011).

use portico_machinery::status::{Cause, Details, Reason};
use portico_machinery::{Attributes, GroupResource, Object, RequestInfo, Status, field};
use portico_store::{Txn, TxnError, Unreadable};

use crate::Result;
use crate::draft;
use crate::failure;
use crate::options::{DeleteOptions, IGNORE_READ_ERROR};
use crate::registry::{Context, Deleted, Verbs};
use crate::served::ServedResource;
use crate::stored::Stored;

/// How many objects one warning names.
const MAX_NAMED: usize = 10;
/// The verb that deleting what cannot be read needs besides `delete`.
const VERB: &str = "unsafe-delete-ignore-read-errors";

/// 500: an object that exists and cannot be read. `key` is its path, where more is known of it than its name.
pub(crate) fn status(resource: &GroupResource, name: &str, key: &str, reason: &str) -> Status {
    let details = Details {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        ..Details::default()
    };
    let cause = Cause {
        reason: "UnexpectedServerResponse".to_owned(),
        message: reason.to_owned(),
        field: key.to_owned(),
    };
    Status::failure(
        Reason::StorageReadError,
        format!("{resource} {name:?} cannot be read from the storage: {reason}"),
    )
    .with_details(details)
    .with_cause(cause)
}

/// What a list that leaves these out warns of.
pub(crate) fn warning(resource: &GroupResource, unreadable: &[Unreadable]) -> Option<String> {
    let count = unreadable.len();
    let mut names: Vec<&str> = unreadable.iter().take(MAX_NAMED).map(|object| object.key().path()).collect();
    let more = count.saturating_sub(MAX_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    names.extend(more.as_deref());
    (count > 0).then(|| {
        format!("left out because they cannot be read from the storage: {resource} {}", names.join(", "))
    })
}

impl Verbs {
    /// 500 when the object exists and cannot be read.
    pub(crate) fn check_readable(
        &self,
        served: &ServedResource,
        snapshot: &portico_store::Snapshot,
        path: &str,
    ) -> Result<()> {
        match snapshot.unreadable(path) {
            Some(object) => Err(Box::new(of(&served.resource, object))),
            None => Ok(()),
        }
    }

    /// Options as they count here: unless the gate is on nobody may ask for what cannot be read to be deleted, and the wish
    /// is dropped, as upstream drops it.
    pub(crate) fn checked_delete(
        &self,
        mut options: DeleteOptions,
        collection: bool,
    ) -> Result<DeleteOptions> {
        options.ignore_read_error &= self.settings.unsafe_deletion;
        if !options.ignore_read_error {
            return Ok(options);
        }
        options.check_unsafe(collection)?;
        Ok(options)
    }

    /// Deletes an object that cannot be read: without preconditions, finalizers and admission, for nobody knows what they
    /// are. Watchers see a last state that has its name and uid alone.
    ///
    /// # Errors
    /// 403; 422 when the object can be read, or is not there.
    pub(crate) async fn delete_unreadable(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Deleted> {
        served.require("delete")?;
        self.authorize_unsafe(context, served, namespace, name)?;
        let snapshot = self.snapshot(served).await?;
        let namespace = if served.info.namespaced { namespace } else { "" };
        let key = portico_store::Key::new(&served.storage, namespace, name);
        let Some(unreadable) = snapshot.unreadable(key.path()) else {
            let why = "is exclusively used to delete corrupt object(s), try again by removing this option";
            let error = field::Error::invalid(&field::Path::from(IGNORE_READ_ERROR), true, why);
            let kind = portico_machinery::gvk::GroupKind {
                group: served.resource.group.clone(),
                kind: served.resource.resource.clone(),
            };
            return Err(Box::new(Status::invalid(&kind, name, &[error])));
        };
        let mut last = Object::new(&served.stored_info().gvk);
        if let Some(custom) = &served.custom {
            last.set(&["apiVersion"], &custom.stored_as);
        }
        last.set(&["metadata", "name"], name);
        if !namespace.is_empty() {
            last.set(&["metadata", "namespace"], namespace);
        }
        last.set(&["metadata", "uid"], unreadable.uid());
        served.stored_info().schema.normalise(&mut last);
        let last = draft::encode(served, &mut last)?;
        tracing::warn!(object = %key, user = context.user.name, "an object that cannot be read is deleted");
        match self.commit(Txn::delete(key, unreadable.revision(), last)).await {
            Ok(record) => Ok(Deleted::new(Stored::new(record), true)),
            Err(error) => Err(failure::of_txn(error, &served.resource, name)),
        }
    }

    fn authorize_unsafe(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        let request = RequestInfo {
            is_resource_request: true,
            verb: VERB.to_owned(),
            api_group: served.resource.group.clone(),
            api_version: served.info.gvk.version.clone(),
            namespace: namespace.to_owned(),
            resource: served.resource.resource.clone(),
            name: name.to_owned(),
            ..RequestInfo::default()
        };
        let decision = self.authorizer.authorize(&Attributes::new(context.user.clone(), request));
        if decision.allowed() {
            return Ok(());
        }
        let why = format!("not permitted to do {VERB:?}, reason: {}", decision.reason);
        Err(Box::new(Status::forbidden(&served.resource, name, &why)))
    }
}

/// 500 of an object.
pub(crate) fn of(resource: &GroupResource, unreadable: &Unreadable) -> Status {
    status(resource, unreadable.key().name(), unreadable.key().path(), unreadable.reason())
}

/// 500 of a write that met an object that cannot be read.
pub(crate) fn of_txn(error: &TxnError, resource: &GroupResource, name: &str) -> Status {
    status(resource, name, name, &error.to_string())
}
