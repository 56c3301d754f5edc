//! What a custom resource's schema does: the structural schema with the types of metadata beside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use portico_cel::{DeclType, Meter};
use portico_machinery::Object;
use portico_machinery::field::{Error, ErrorType, Path};
use serde_json::Value;

use super::at::At;
use super::compile_error::CompileError;
use super::compiled::Structural;
use super::correlate::Pair;
use super::embedded::Place;
use super::meta::{self, Embedded, Misfits};
use super::rules::{self, Findings};
use super::{default, embedded, lists, nulls, prune, validate};
use crate::model::FieldType;
use crate::typed::Typed;

/// What makes a schema when the first object is walked along it.
type Compile = Box<dyn FnOnce() -> Compiled + Send + Sync>;
type Compiled = Result<Arc<Structural>, CompileError>;

/// What stands in for a schema that cannot be used: objects are shown as they are stored, and none may be written.
static ANYTHING: LazyLock<Arc<Structural>> = LazyLock::new(Structural::anything);

/// The schema of one version of a custom resource, in force.
#[derive(Debug)]
pub struct CustomResource {
    schema: LazyLock<Compiled, Compile>,
    object_meta: Typed,
    /// The type of `metadata`, for walks over types.
    meta_type: FieldType,
    /// Rules, compiled when the first object is validated.
    rules: OnceLock<Option<Box<rules::Tree>>>,
    /// Whether the schema was compiled.
    compiled: Arc<AtomicBool>,
}

impl CustomResource {
    pub(crate) fn new(compile: Compile, object_meta: Typed) -> Self {
        let meta_type = FieldType::Ref(object_meta.root_id());
        let compiled = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&compiled);
        let compile: Compile = Box::new(move || {
            let outcome = compile();
            done.store(true, Ordering::Release);
            outcome
        });
        Self { schema: LazyLock::new(compile), object_meta, meta_type, rules: OnceLock::new(), compiled }
    }

    /// Whether an object can be read, or checked when it is written, without compiling the schema or its rules first.
    #[must_use]
    pub fn is_compiled(&self, for_write: bool) -> bool {
        self.compiled.load(Ordering::Acquire)
            && (!for_write || !self.has_rules() || self.rules.get().is_some())
    }

    /// The compiled schema; one that takes anything in the place of one that cannot be used.
    #[must_use]
    pub fn schema(&self) -> &Arc<Structural> {
        self.schema.as_ref().unwrap_or(&ANYTHING)
    }

    /// Whether there is a schema to validate objects by. Compiles it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn check(&self) -> Result<(), &CompileError> {
        self.schema.as_ref().map(drop)
    }

    /// The type of an object as the schema alone declares it; nothing where expressions do not see it.
    pub(crate) fn declared_type(&self) -> Option<Arc<DeclType>> {
        rules::declare(self.schema().root(), true)
    }

    /// The types of `metadata`.
    pub(crate) fn object_meta(&self) -> &Typed {
        &self.object_meta
    }

    /// The type of `metadata` in its set.
    pub(crate) fn meta_type(&self) -> &FieldType {
        &self.meta_type
    }

    /// As [`Schema::default`](crate::Schema::default). Whether anything changed.
    pub(crate) fn default(&self, object: &mut Object) -> bool {
        default::object(object.map_mut(), self.schema().root()).any
    }

    /// As [`Schema::normalise`](crate::Schema::normalise).
    pub(crate) fn normalise(&self, object: &mut Object) {
        let map = object.map_mut();
        if let Some(metadata @ Value::Object(_)) = map.get_mut("metadata") {
            let mut alone = Object::from_map(
                std::mem::take(metadata).as_object_mut().map(std::mem::take).unwrap_or_default(),
            );
            crate::normalise::object(&self.object_meta, &mut alone);
            *metadata = Value::Object(std::mem::take(alone.map_mut()));
        }
        object.sort_keys();
    }

    /// As [`Schema::whole_numbers`](crate::Schema::whole_numbers).
    pub(crate) fn whole_numbers(object: &mut Object) {
        crate::normalise::whole_object(object.map_mut());
    }

    /// As [`Schema::settle`](crate::Schema::settle).
    pub(crate) fn settle(&self, object: &mut Object) -> bool {
        self.coerce(object) | self.default(object)
    }

    /// As [`Schema::coerce`](crate::Schema::coerce).
    pub(crate) fn coerce(&self, object: &mut Object) -> bool {
        let (map, root) = (object.map_mut(), self.schema().root());
        let mut any = prune::object(map, root, false).any;
        any |= nulls::object(map, root);
        any |= self.settle_metadata(map);
        let mut embedded = Embedded::new(&self.object_meta, Misfits::Drop);
        // What does not fit goes: there is nothing to refuse.
        let walked = embedded.fields(map, root, &At::root(""));
        any | embedded.any | walked.is_err()
    }

    /// Metadata as its types read it, what does not fit left out; a generation of 0 is one that was never counted.
    fn settle_metadata(&self, map: &mut serde_json::Map<String, Value>) -> bool {
        let Some(metadata @ Value::Object(_)) = map.get_mut("metadata") else { return false };
        let mut read = meta::read_leniently(&self.object_meta, metadata);
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

    /// What is wrong with `apiVersion` and `kind` of embedded resources. Not ratcheted.
    #[must_use]
    pub fn validate_embedded(&self, object: &Object) -> Vec<Error> {
        embedded::validate(object.map(), self.schema().root())
    }

    /// Visits the metadata of embedded resources: each as an object that holds only `metadata`, with the place of
    /// the resource. Upstream applies the rules of ObjectMeta: a path segment as name, which may be empty; any namespace.
    pub fn each_embedded_metadata(&self, object: &Object, mut visit: impl FnMut(&Place<'_>, &Object)) {
        embedded::metadata(object.map(), self.schema().root(), &mut visit);
    }

    /// What is wrong with a new object along its schema: types, formats, bounds, required fields, logical operators. Upstream's
    /// texts, as kube-openapi's validation and apiextensions print them.
    #[must_use]
    pub fn validate(&self, object: &Object) -> Vec<Error> {
        validate::object(object.map(), None, self.schema().root())
    }

    /// As [`Self::validate`] for a changed object: what was wrong before and stays as it was is forgiven (ratcheting), but
    /// not beneath logical operators.
    #[must_use]
    pub fn validate_update(&self, new: &Object, old: &Object) -> Vec<Error> {
        validate::object(new.map(), Some(old.map()), self.schema().root())
    }

    /// As [`Self::validate_update`] for the status subresource, which is validated by what the schema says of `status` alone.
    #[must_use]
    pub fn validate_status_update(&self, new: &Object, old: &Object) -> Vec<Error> {
        let root = self.schema().root();
        let (Some(status), Some(node)) = (new.map().get("status"), root.property("status")) else {
            return Vec::new();
        };
        let pair = Pair::of_objects(new.map(), old.map(), root).key("status");
        validate::field("status", status, node, pair.as_ref())
    }

    /// Whether there are rules (`x-kubernetes-validations`).
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.schema().root().marks.rules
    }

    /// What rules say of an object, and of what became of it. Only to be asked when [`rules_not_checked`] lets them run.
    /// What was wrong before at places that stay as they were is a warning (ratcheting). Once `interrupted` returns true, the
    /// evaluation ends with an error.
    #[must_use]
    pub fn check_rules(
        &self,
        new: &Object,
        old: Option<&Object>,
        interrupted: &dyn Fn() -> bool,
    ) -> Findings {
        let compile =
            || rules::Tree::compile(self.schema().root(), true, &Meter::of_compilation()).map(Box::new);
        match self.rules.get_or_init(compile) {
            Some(tree) => rules::validate(tree, new.map(), old.map(Object::map), interrupted),
            None => Findings::default(),
        }
    }

    /// Which elements of sets and keyed lists stand there twice.
    #[must_use]
    pub fn validate_lists(&self, object: &Object) -> Vec<Error> {
        lists::validate(object.map(), self.schema().root())
    }

    /// As [`Self::validate_lists`] for a changed object: nothing is reported when the old one had any duplicate.
    #[must_use]
    pub fn validate_lists_update(&self, new: &Object, old: &Object) -> Vec<Error> {
        let errors = self.validate_lists(new);
        if errors.is_empty() || !self.validate_lists(old).is_empty() { Vec::new() } else { errors }
    }
}

/// The field of the error that [`rules_not_checked`] returns: it is about no field.
pub const NO_FIELD: &str = "<nil>";

/// What is reported in the place of rules (`x-kubernetes-validations`) when these errors keep them from being evaluated: a
/// missing field, a value outside an enumeration, of a wrong type, too long or too many.
#[must_use]
pub fn rules_not_checked(errors: &[Error]) -> Option<Error> {
    const TEXT: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let blocks = |error: &Error| {
        use ErrorType as E;
        matches!(error.kind, E::NotSupported | E::Required | E::TooLong | E::TooMany | E::TypeInvalid)
    };
    errors.iter().any(blocks).then(|| Error::invalid_printed(&Path::new(NO_FIELD), "null", TEXT))
}
