//! Custom resources: a structural schema with the types of metadata, and its operations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use portico_cel::{DeclType, Meter};
use portico_machinery::Object;
use portico_machinery::field::{Error, ErrorType, Path};
use serde_json::Value;

use super::compile_error::CompileError;
use super::compiled::Structural;
use super::correlate::CorrelatedPair;
use super::embedded::LazyPath;
use super::location::Location;
use super::meta::{self, EmbeddedMetadata, OnTypeMismatch};
use super::rules::{self, RuleFindings};
use super::{default, embedded, lists, nulls, prune, validate};
use crate::model::FieldType;
use crate::typed::Typed;

/// Function that compiles a schema at the first use.
type CompileFn = Box<dyn FnOnce() -> CompileResult + Send + Sync>;
type CompileResult = Result<Arc<Structural>, CompileError>;

/// Replacement for a schema that cannot be compiled: objects are returned as stored, and writes are rejected.
static ANY_OBJECT: LazyLock<Arc<Structural>> = LazyLock::new(Structural::any_object);

/// Schema of one version of a custom resource.
#[derive(Debug)]
pub struct CustomResource {
    schema: LazyLock<CompileResult, CompileFn>,
    object_meta: Typed,
    /// Type of `metadata`, for walks over types.
    meta_type: FieldType,
    /// Rules, compiled when the first object is validated.
    rules: OnceLock<Option<Box<rules::RuleTree>>>,
    /// True if the schema has been compiled.
    compiled: Arc<AtomicBool>,
}

impl CustomResource {
    pub(crate) fn new(compile: CompileFn, object_meta: Typed) -> Self {
        let meta_type = FieldType::Ref(object_meta.root_id());
        let compiled = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&compiled);
        let compile: CompileFn = Box::new(move || {
            let outcome = compile();
            done.store(true, Ordering::Release);
            outcome
        });
        Self { schema: LazyLock::new(compile), object_meta, meta_type, rules: OnceLock::new(), compiled }
    }

    /// True if an object can be read, or if `for_write` validated, without compiling the schema or its rules first.
    #[must_use]
    pub fn is_compiled(&self, for_write: bool) -> bool {
        self.compiled.load(Ordering::Acquire)
            && (!for_write || !self.has_rules() || self.rules.get().is_some())
    }

    /// Returns the compiled schema, or a schema that accepts any object if it cannot be compiled.
    #[must_use]
    pub fn schema(&self) -> &Arc<Structural> {
        self.schema.as_ref().unwrap_or(&ANY_OBJECT)
    }

    /// Compiles the schema.
    ///
    /// # Errors
    /// Error of the compilation.
    pub fn check(&self) -> Result<(), &CompileError> {
        self.schema.as_ref().map(drop)
    }

    /// Returns the type of an object as the schema declares it, or `None` if expressions cannot access it.
    pub(crate) fn declared_type(&self) -> Option<Arc<DeclType>> {
        rules::declare(self.schema().root(), true)
    }

    /// Returns the typed schema of `metadata`.
    pub(crate) fn object_meta(&self) -> &Typed {
        &self.object_meta
    }

    /// Returns the type of `metadata` in its set.
    pub(crate) fn meta_type(&self) -> &FieldType {
        &self.meta_type
    }

    /// Implements [`Schema::default`](crate::Schema::default). Returns true if the object changed.
    pub(crate) fn default(&self, object: &mut Object) -> bool {
        default::set_defaults(object.map_mut(), self.schema().root()).has_changed
    }

    /// Implements [`Schema::normalize`](crate::Schema::normalize).
    pub(crate) fn normalize(&self, object: &mut Object) {
        let map = object.map_mut();
        if let Some(metadata @ Value::Object(_)) = map.get_mut("metadata") {
            let mut metadata_object = Object::from_map(
                std::mem::take(metadata).as_object_mut().map(std::mem::take).unwrap_or_default(),
            );
            crate::normalize::normalize_object(&self.object_meta, &mut metadata_object);
            *metadata = Value::Object(std::mem::take(metadata_object.map_mut()));
        }
        object.sort_keys();
    }

    /// Implements [`Schema::floats_to_integers`](crate::Schema::floats_to_integers).
    pub(crate) fn floats_to_integers(object: &mut Object) {
        crate::normalize::object_floats_to_integers(object.map_mut());
    }

    /// Implements [`Schema::coerce_and_default`](crate::Schema::coerce_and_default).
    pub(crate) fn coerce_and_default(&self, object: &mut Object) -> bool {
        self.coerce(object) | self.default(object)
    }

    /// Implements [`Schema::coerce`](crate::Schema::coerce).
    pub(crate) fn coerce(&self, object: &mut Object) -> bool {
        let (map, root) = (object.map_mut(), self.schema().root());
        let mut any = prune::prune_object(map, root, false).has_changed;
        any |= nulls::drop_nulls(map, root);
        any |= self.coerce_metadata(map);
        let mut embedded = EmbeddedMetadata::new(&self.object_meta, OnTypeMismatch::Drop);
        // Type mismatches are dropped, so there are no errors.
        let walked = embedded.fields(map, root, &Location::root(""));
        any | embedded.has_changed | walked.is_err()
    }

    /// Decodes metadata by its types and drops type mismatches. A generation of 0 becomes 1: it was never set.
    fn coerce_metadata(&self, map: &mut serde_json::Map<String, Value>) -> bool {
        let Some(metadata @ Value::Object(_)) = map.get_mut("metadata") else { return false };
        let mut read = meta::decode_leniently(&self.object_meta, metadata);
        if read.get("generation").and_then(Value::as_i64).unwrap_or_default() == 0 {
            read.insert("generation".to_owned(), 1.into());
            read.sort_keys();
        }
        let any = metadata.as_object() != Some(&read);
        if any {
            *metadata = Value::Object(read);
        }
        any
    }

    /// Validates `apiVersion` and `kind` of embedded resources. Not ratcheted.
    #[must_use]
    pub fn validate_embedded(&self, object: &Object) -> Vec<Error> {
        embedded::validate(object.map(), self.schema().root())
    }

    /// Visits the metadata of embedded resources. Each visit gets an object that contains only `metadata`, and the path of the
    /// resource. Upstream applies the rules of ObjectMeta: the name is a path segment and may be empty; any namespace is valid.
    pub fn visit_embedded_metadata(&self, object: &Object, mut visit: impl FnMut(&LazyPath<'_>, &Object)) {
        embedded::visit_embedded_metadata(object.map(), self.schema().root(), &mut visit);
    }

    /// Validates a new object: types, formats, bounds, required fields, logical operators. Messages are those of upstream's
    /// kube-openapi validation and apiextensions.
    #[must_use]
    pub fn validate(&self, object: &Object) -> Vec<Error> {
        validate::validate_object(object.map(), None, self.schema().root())
    }

    /// Validates an updated object. Errors of unchanged values are dropped (ratcheting), except below logical operators.
    #[must_use]
    pub fn validate_update(&self, new: &Object, old: &Object) -> Vec<Error> {
        validate::validate_object(new.map(), Some(old.map()), self.schema().root())
    }

    /// Validates an update of the status subresource, like [`Self::validate_update`] but only against the schema of `status`.
    #[must_use]
    pub fn validate_status_update(&self, new: &Object, old: &Object) -> Vec<Error> {
        let root = self.schema().root();
        let (Some(status), Some(node)) = (new.map().get("status"), root.property("status")) else {
            return Vec::new();
        };
        let pair = CorrelatedPair::of_objects(new.map(), old.map(), root).key("status");
        validate::field("status", status, node, pair.as_ref())
    }

    /// True if the schema has rules (`x-kubernetes-validations`).
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.schema().root().subtree_flags.rules
    }

    /// Evaluates the rules for an object and its previous state. Must only be called if [`rules_not_checked`] returns `None`.
    /// Errors of unchanged values become warnings (ratcheting). The evaluation ends with an error as soon as `interrupted`
    /// returns true.
    #[must_use]
    pub fn check_rules(
        &self,
        new: &Object,
        old: Option<&Object>,
        interrupted: &dyn Fn() -> bool,
    ) -> RuleFindings {
        let compile =
            || rules::RuleTree::compile(self.schema().root(), true, &Meter::of_compilation()).map(Box::new);
        match self.rules.get_or_init(compile) {
            Some(tree) => rules::validate(tree, new.map(), old.map(Object::map), interrupted),
            None => RuleFindings::default(),
        }
    }

    /// Reports duplicate elements of sets and keyed lists.
    #[must_use]
    pub fn validate_lists(&self, object: &Object) -> Vec<Error> {
        lists::validate(object.map(), self.schema().root())
    }

    /// Reports duplicate elements of an updated object. Returns no errors if the old object had any duplicate.
    #[must_use]
    pub fn validate_lists_update(&self, new: &Object, old: &Object) -> Vec<Error> {
        let errors = self.validate_lists(new);
        if errors.is_empty() || !self.validate_lists(old).is_empty() { Vec::new() } else { errors }
    }
}

/// Field of the error that [`rules_not_checked`] returns, which does not belong to a field.
pub const NO_FIELD: &str = "<nil>";

/// Returns the error that replaces the evaluation of rules (`x-kubernetes-validations`) if the object has errors that prevent
/// it: a missing field, a value outside an enumeration, of a wrong type, too long or with too many elements.
#[must_use]
pub fn rules_not_checked(errors: &[Error]) -> Option<Error> {
    const TEXT: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let blocks = |error: &Error| {
        use ErrorType as E;
        matches!(error.kind, E::NotSupported | E::Required | E::TooLong | E::TooMany | E::TypeInvalid)
    };
    errors.iter().any(blocks).then(|| Error::invalid_printed(&Path::new(NO_FIELD), "null", TEXT))
}
