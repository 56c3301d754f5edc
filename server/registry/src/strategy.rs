//! What a kind needs beyond data: its strategy (upstream's `rest.RESTCreateStrategy` and its siblings), in traits of a few methods each.
//!
//! A strategy sees decoded, defaulted objects through cursors. The verbs call it and name no kind themselves.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_kinds::KindInfo;
use portico_machinery::table::Cell;
use portico_machinery::{GroupResource, GroupVersionKind, Object, Status, UserInfo};
use portico_validation::Errors;

use crate::options::DeleteOptions;
use crate::typed::Part;

/// What a write may need to know besides the objects.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time of the request, whole seconds.
    pub now: Timestamp,
}

/// What a DELETE that a kind handles itself comes to.
pub enum OwnDelete {
    /// Nothing special: the generic delete goes on.
    Generic,
    /// The object is marked like this and stays.
    Mark(Object),
    /// The object stays as it is.
    Keep,
}

/// What a kind does with bodies that were decoded, and between its versions.
pub trait DecodeStrategy: Send + Sync {
    /// Sets what is absent and depends on other fields: on every body that is decoded, after the static defaults, in the
    /// storage version.
    fn default(&self, _object: &mut Object, _moment: Moment) {}

    /// What upstream's conversion cannot read in a body of the served version: refused like a value of the wrong type.
    fn unreadable(&self, _object: &Object) -> Option<String> {
        None
    }

    /// Renames what the storage version calls otherwise: from the served version.
    fn to_storage(&self, _object: &mut Object) {}

    /// Renames what the storage version calls otherwise: into the served version.
    fn to_version(&self, _object: &mut Object) {}
}

/// What a kind does when its objects are created and changed. Every method has upstream's default.
pub trait Strategy: Send + Sync {
    /// Writes who asks into a new object.
    fn claim(&self, _new: &mut Object, _user: &UserInfo) {}

    /// Drops and sets fields of a new object; a status that has its own subresource is gone already.
    fn prepare_create(&self, _new: &mut Object, _moment: Moment) {}

    /// Validates a new object, metadata aside.
    fn validate(&self, _new: &Object, _errors: &mut Errors) {}

    /// Drops and sets fields of a changed object; its status is the old one's already.
    fn prepare_update(&self, _new: &mut Object, _old: &Object, _moment: Moment) {}

    /// Counts what has changed, besides the generation; both are in canonical form.
    fn count_changes(&self, _new: &mut Object, _old: &Object) {}

    /// Validates a change: what the kind forbids to change, then [`Strategy::validate`].
    fn validate_update(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
    }

    /// Whether what validates a change validates the whole of a new object besides, metadata and all: what is wrong with metadata
    /// is then reported once more.
    fn validates_metadata_again(&self) -> bool {
        false
    }

    /// Whether what validates a change compares the metadata with what it was: upstream's storage does so for every kind, and
    /// what is wrong is then reported once more.
    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        true
    }

    /// Validates a new object or a change, for a kind whose rules look into the types of its own description.
    fn validate_with_kind(&self, _kind: &KindInfo, new: &Object, old: Option<&Object>, errors: &mut Errors) {
        match old {
            None => self.validate(new, errors),
            Some(old) => self.validate_update(new, old, errors),
        }
    }

    /// Writes the time of the change into a changed object or subresource that is prepared otherwise.
    fn stamp(&self, _part: Part<'_>, _new: &mut Object, _old: &Object, _moment: Moment) {}

    /// Last touches once everything is valid, on each write; whether there were any.
    fn canonicalize(&self, _new: &mut Object) -> bool {
        false
    }

    /// Warnings for whoever writes this.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }
}

/// What a kind does when its status or another subresource is written.
pub trait SubresourceStrategy: Send + Sync {
    /// Prepares a write of the status: all but metadata and status is the old object's already.
    fn prepare_status(&self, _new: &mut Object, _old: &Object) {}

    /// Validates a write of the status.
    fn validate_status(&self, _new: &Object, _old: &Object, _errors: &mut Errors) {}

    /// Prepares a write of another subresource.
    fn prepare_subresource(&self, _subresource: &str, _new: &mut Object, _old: &Object) {}

    /// Validates a write of another subresource.
    fn validate_subresource(&self, _subresource: &str, _new: &Object, _old: &Object, _errors: &mut Errors) {}

    /// Warnings for whoever writes the status.
    fn status_warnings(&self, _new: &Object, _old: &Object) -> Vec<String> {
        Vec::new()
    }
}

/// What a kind does when its objects are deleted.
pub trait DeleteStrategy: Send + Sync {
    /// Whether a deletion that finalizers no longer hold may be carried out.
    fn may_be_removed(&self, _object: &Object) -> bool {
        true
    }

    /// Seconds that a graceful kind's object is given to end, from what the caller wants.
    fn grace_period(&self, _object: &Object, wanted: Option<i64>) -> i64 {
        wanted.unwrap_or(0)
    }

    /// A refusal before anything of a delete is looked at.
    fn check_delete(&self, _resource: &GroupResource, _name: &str) -> Option<Status> {
        None
    }

    /// Warnings for whoever deletes, one object or many.
    fn delete_warnings(&self, _options: &DeleteOptions) -> Vec<String> {
        Vec::new()
    }

    /// Whether upstream's code for a DELETE of this kind is its own, which shows in the words of refusals.
    fn deletes_by_itself(&self) -> bool {
        false
    }

    /// What a delete does before the generic rules: with the object, which has the finalizers that the caller wants and is
    /// marked with nothing else yet, and as it was.
    fn own_delete(&self, _wanted: &Object, _old: &Object, _moment: Moment) -> OwnDelete {
        OwnDelete::Generic
    }
}

/// Which fields of a kind can be selected by, and what they are called.
pub trait FieldStrategy: Send + Sync {
    /// The value of a selectable field; by default what stands at that path.
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        Cow::Borrowed(object.str_at(field))
    }

    /// What the storage version calls a field that selectors name in the served one.
    fn stored_field<'f>(&self, field: &'f str) -> Cow<'f, str> {
        Cow::Borrowed(field)
    }

    /// The error for a field that cannot be selected by, where others than the name and namespace can.
    fn unknown_field(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }
}

/// How a kind is shown in tables.
pub trait TableStrategy: Send + Sync {
    /// The cell of a column whose data names a function of the registry.
    fn cell(&self, _function: &str, _object: &Object) -> Cell {
        Cell::Null
    }

    /// An annotation that upstream holds in a field of its own, so that rows of tables do not carry it.
    fn annotation_for_field(&self) -> Option<&'static str> {
        None
    }

    /// Primary sort key of the rows of a list; `None` if they are sorted by name alone.
    fn row_order(&self) -> Option<fn(&Object) -> i64> {
        None
    }

    /// Why an object of which these selectable fields are known is done for good: reason and message of its row.
    fn completion(&self, _field: &dyn Fn(&str) -> String) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// A kind whose objects are computed whenever they are read, and never stored.
pub trait ComputedStrategy: Send + Sync {
    /// All of its objects.
    fn computed(&self, kind: &GroupVersionKind) -> Vec<Object>;
}

/// All that code defines of one kind.
#[derive(Clone, Copy)]
pub struct Strategies {
    /// Creates and updates.
    pub main: &'static dyn Strategy,
    /// Decoded bodies, and versions.
    pub decode: &'static dyn DecodeStrategy,
    /// The status and other subresources.
    pub subresources: &'static dyn SubresourceStrategy,
    /// Deletes.
    pub delete: &'static dyn DeleteStrategy,
    /// Selectable fields.
    pub fields: &'static dyn FieldStrategy,
    /// Tables.
    pub table: &'static dyn TableStrategy,
    /// Where its objects come from, when they are not stored.
    pub computed: Option<&'static dyn ComputedStrategy>,
}

impl Default for Strategies {
    /// Of kinds with nothing of their own.
    fn default() -> Self {
        Self {
            main: &Plain,
            decode: &Plain,
            subresources: &Plain,
            delete: &Plain,
            fields: &Plain,
            table: &Plain,
            computed: None,
        }
    }
}

/// A kind with nothing of its own in code.
struct Plain;

impl DecodeStrategy for Plain {}

impl Strategy for Plain {}

impl SubresourceStrategy for Plain {}

impl DeleteStrategy for Plain {}

impl FieldStrategy for Plain {}

impl TableStrategy for Plain {}
