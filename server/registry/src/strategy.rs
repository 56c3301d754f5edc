//! Strategies: behavior of a kind beyond its data, in traits with few methods (upstream's
//! `rest.RESTCreateStrategy` and related interfaces).
//!
//! A strategy receives decoded objects with defaults. The verbs call strategies and contain no code for single kinds.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_kinds::KindInfo;
use portico_machinery::table::Cell;
use portico_machinery::{GroupResource, GroupVersionKind, Object, Status, UserInfo};
use portico_validation::Errors;

use crate::options::DeleteOptions;
use crate::verb_types::ObjectPart;

/// Time of a request, for strategies.
#[derive(Clone, Copy, Debug)]
pub struct RequestTime {
    /// Start of the request, in whole seconds.
    pub now: Timestamp,
}

/// Result of a kind's own delete logic.
pub enum DeleteOverride {
    /// Continue with the generic delete.
    Generic,
    /// Store the object with these changes and keep it.
    Update(Object),
    /// Keep the object unchanged.
    Keep,
}

/// Processing of decoded bodies of a kind, and conversion between its versions.
pub trait DecodeStrategy: Send + Sync {
    /// Sets defaults that depend on other fields. Runs on every decoded body, after the static defaults, in the storage version.
    fn default(&self, _object: &mut Object, _request_time: RequestTime) {}

    /// Error for a value in a body of the served version that upstream's conversion cannot read; refused like a value
    /// of a wrong type.
    fn conversion_error(&self, _object: &Object) -> Option<String> {
        None
    }

    /// Renames fields of the served version to those of the storage version.
    fn to_storage(&self, _object: &mut Object) {}

    /// Renames fields of the storage version to those of the served version.
    fn to_version(&self, _object: &mut Object) {}
}

/// Behavior of a kind when its objects are created and changed. The default methods correspond to upstream's defaults.
pub trait Strategy: Send + Sync {
    /// Sets fields of a new object that identify the requesting user.
    fn set_requester(&self, _new: &mut Object, _user: &UserInfo) {}

    /// Prepares a new object. A status that has a subresource is already removed.
    fn prepare_create(&self, _new: &mut Object, _request_time: RequestTime) {}

    /// Validates a new object, without its metadata.
    fn validate(&self, _new: &Object, _errors: &mut Errors) {}

    /// Prepares a changed object. Its status is already that of the old object.
    fn prepare_update(&self, _new: &mut Object, _old: &Object, _request_time: RequestTime) {}

    /// Updates counters of changes other than the generation; both objects are in canonical form.
    fn count_changes(&self, _new: &mut Object, _old: &Object) {}

    /// Validates a change: first the immutable fields, then as [`Strategy::validate`].
    fn validate_update(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
    }

    /// True if the validation of a change also validates the complete new object including its metadata, so that errors of
    /// metadata are reported a second time.
    fn validates_metadata_again(&self) -> bool {
        false
    }

    /// True if the validation of a change also compares the metadata with the old metadata, as upstream's storage does for every
    /// kind, so that errors are reported a second time.
    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        true
    }

    /// Validates a new object or a change, for kinds whose validation needs the types of their own description.
    fn validate_with_kind(&self, _kind: &KindInfo, new: &Object, old: Option<&Object>, errors: &mut Errors) {
        match old {
            None => self.validate(new, errors),
            Some(old) => self.validate_update(new, old, errors),
        }
    }

    /// Sets the time of the change in an object or subresource that other methods prepare.
    fn set_change_time(
        &self,
        _part: ObjectPart<'_>,
        _new: &mut Object,
        _old: &Object,
        _request_time: RequestTime,
    ) {
    }

    /// Canonicalizes a valid object on each write. Returns true if the object changed.
    fn canonicalize(&self, _new: &mut Object) -> bool {
        false
    }

    /// Warnings for the writer of an object.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }
}

/// Behavior of a kind when its status or another subresource is written.
pub trait SubresourceStrategy: Send + Sync {
    /// Prepares a write of the status. All fields except metadata and status are already those of the old object.
    fn prepare_status(&self, _new: &mut Object, _old: &Object) {}

    /// Validates a write of the status.
    fn validate_status(&self, _new: &Object, _old: &Object, _errors: &mut Errors) {}

    /// Prepares a write of another subresource.
    fn prepare_subresource(&self, _subresource: &str, _new: &mut Object, _old: &Object) {}

    /// Validates a write of another subresource.
    fn validate_subresource(&self, _subresource: &str, _new: &Object, _old: &Object, _errors: &mut Errors) {}

    /// Warnings for the writer of the status.
    fn status_warnings(&self, _new: &Object, _old: &Object) -> Vec<String> {
        Vec::new()
    }
}

/// Behavior of a kind when its objects are deleted.
pub trait DeleteStrategy: Send + Sync {
    /// True if an object without finalizers may be removed.
    fn may_be_removed(&self, _object: &Object) -> bool {
        true
    }

    /// Grace period in seconds for a graceful kind, from the period that the caller requests.
    fn grace_period(&self, _object: &Object, requested: Option<i64>) -> i64 {
        requested.unwrap_or(0)
    }

    /// Refuses a delete before any other check.
    fn check_delete(&self, _resource: &GroupResource, _name: &str) -> Option<Status> {
        None
    }

    /// Warnings for the caller of a delete or deletecollection.
    fn delete_warnings(&self, _options: &DeleteOptions) -> Vec<String> {
        Vec::new()
    }

    /// True if upstream has separate delete code for this kind, which uses other messages.
    fn has_separate_delete(&self) -> bool {
        false
    }

    /// Overrides the generic rules of a delete. `new` is the object with the finalizers that the caller requests and no other
    /// changes, `old` the object before.
    fn override_delete(&self, _new: &Object, _old: &Object, _request_time: RequestTime) -> DeleteOverride {
        DeleteOverride::Generic
    }
}

/// Selectable fields of a kind.
pub trait FieldStrategy: Send + Sync {
    /// Value of a selectable field; by default the value at that path.
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        Cow::Borrowed(object.str_at(field))
    }

    /// Name in the storage version of a field that selectors of the served version use.
    fn stored_field<'f>(&self, field: &'f str) -> Cow<'f, str> {
        Cow::Borrowed(field)
    }

    /// Error for an unknown field, for kinds with selectable fields other than name and namespace.
    fn unknown_field(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }
}

/// Tables of a kind.
pub trait TableStrategy: Send + Sync {
    /// Cell of a column whose data names a function of the registry.
    fn cell(&self, _function: &str, _object: &Object) -> Cell {
        Cell::Null
    }

    /// Annotation that upstream stores in a separate field, so that table rows do not contain it.
    fn annotation_for_field(&self) -> Option<&'static str> {
        None
    }

    /// Primary sort key of the rows of a list; `None` if they are sorted by name alone.
    fn row_order(&self) -> Option<fn(&Object) -> i64> {
        None
    }

    /// Reason and message for the row of a completed object, determined from its selectable fields.
    fn completion(&self, _field: &dyn Fn(&str) -> String) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// Kind whose objects are computed by each read and never stored.
pub trait ComputedStrategy: Send + Sync {
    /// All objects of the kind.
    fn computed(&self, kind: &GroupVersionKind) -> Vec<Object>;
}

/// All strategies of one kind.
#[derive(Clone, Copy)]
pub struct Strategies {
    /// Strategy of creates and updates.
    pub main: &'static dyn Strategy,
    /// Strategy of decoded bodies and versions.
    pub decode: &'static dyn DecodeStrategy,
    /// Strategy of the status and other subresources.
    pub subresources: &'static dyn SubresourceStrategy,
    /// Strategy of deletes.
    pub delete: &'static dyn DeleteStrategy,
    /// Strategy of selectable fields.
    pub fields: &'static dyn FieldStrategy,
    /// Strategy of tables.
    pub table: &'static dyn TableStrategy,
    /// Source of computed objects; `None` for stored kinds.
    pub computed: Option<&'static dyn ComputedStrategy>,
}

impl Default for Strategies {
    /// Default strategies for kinds without code.
    fn default() -> Self {
        Self {
            main: &DefaultStrategy,
            decode: &DefaultStrategy,
            subresources: &DefaultStrategy,
            delete: &DefaultStrategy,
            fields: &DefaultStrategy,
            table: &DefaultStrategy,
            computed: None,
        }
    }
}

/// Strategy with the default behavior.
struct DefaultStrategy;

impl DecodeStrategy for DefaultStrategy {}

impl Strategy for DefaultStrategy {}

impl SubresourceStrategy for DefaultStrategy {}

impl DeleteStrategy for DefaultStrategy {}

impl FieldStrategy for DefaultStrategy {}

impl TableStrategy for DefaultStrategy {}
