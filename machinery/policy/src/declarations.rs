//! Variables of expressions and their types (upstream's `BuildRequestType`, `BuildNamespaceType`).

use std::sync::{Arc, LazyLock};

use portico_cel::decl::{DeclKind, Field, ListKind};
use portico_cel::environment::Builder;
use portico_cel::kubernetes::{NEW_EXPRESSIONS, STORED_EXPRESSIONS};
use portico_cel::library::authorization::{AUTHORIZER, RESOURCE_CHECK};
use portico_cel::{DeclType, Language, PatternCache, Type};

/// Set of functions that an expression can use (upstream's `environment.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentType {
    /// Functions that the previous release also supports, for expressions that are written now.
    NewExpressions,
    /// All functions of this server, for stored expressions.
    StoredExpressions,
}

/// Languages of new and of stored expressions, which share a cache of regular expressions.
static LANGUAGES: LazyLock<[Arc<Language>; 2]> = LazyLock::new(|| {
    const MIB: usize = 1024 * 1024;
    let patterns = PatternCache::with_limits(8 * MIB, 48 * MIB);
    [NEW_EXPRESSIONS, STORED_EXPRESSIONS]
        .map(|minor| Arc::new(Language::of_release(minor).with_pattern_cache(patterns.clone())))
});

/// Variables that only some expressions have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declarations {
    /// True if `params` exists.
    pub(crate) params: bool,
    /// True if `authorizer` and `authorizer.requestResource` exist.
    pub(crate) authorizer: bool,
}

impl EnvironmentType {
    pub(crate) fn language(self) -> Arc<Language> {
        let [new, stored] = &*LANGUAGES;
        Arc::clone(match self {
            Self::NewExpressions => new,
            Self::StoredExpressions => stored,
        })
    }
}

impl Declarations {
    /// Adds the variables of expressions about a request.
    pub(crate) fn add_to(self, builder: Builder) -> Builder {
        let mut builder =
            with_request(builder.variable("object", Type::Dyn).variable("oldObject", Type::Dyn));
        if self.params {
            builder = builder.variable("params", Type::Dyn);
        }
        if self.authorizer {
            builder = builder
                .variable("authorizer", Type::opaque(AUTHORIZER))
                .variable("authorizer.requestResource", Type::opaque(RESOURCE_CHECK));
        }
        builder
    }
}

/// Adds the variables that all expressions about requests have.
pub(crate) fn with_request(builder: Builder) -> Builder {
    builder.variable("namespaceObject", NAMESPACE.ty.clone()).variable("request", REQUEST.ty.clone())
}

static REQUEST: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let kind = object("kubernetes.GroupVersionKind", texts(&["group", "version", "kind"]));
    let resource = object("kubernetes.GroupVersionResource", texts(&["group", "version", "resource"]));
    let extra = Arc::new(DeclType::map(list(text()), u64::MAX));
    let mut user_fields = texts(&["username", "uid"]);
    user_fields.extend([field("groups", &list(text())), field("extra", &extra)]);
    let mut fields = texts(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    fields.extend([
        field("kind", &kind),
        field("requestKind", &kind),
        field("resource", &resource),
        field("requestResource", &resource),
        field("userInfo", &object("kubernetes.UserInfo", user_fields)),
        field("dryRun", &scalar(DeclKind::Bool)),
        field("options", &dynamic()),
    ]);
    object("kubernetes.AdmissionRequest", fields)
});

static NAMESPACE: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let labels = Arc::new(DeclType::map(text(), u64::MAX));
    let mut metadata = texts(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    metadata.extend([
        field("labels", &labels),
        field("annotations", &labels),
        field("creationTimestamp", &scalar(DeclKind::DateTime)),
        field("deletionTimestamp", &scalar(DeclKind::DateTime)),
        field("deletionGracePeriodSeconds", &scalar(DeclKind::Int)),
        field("generation", &scalar(DeclKind::Int)),
        field("finalizers", &list(text())),
    ]);
    let mut condition = texts(&["status", "type", "message", "reason"]);
    condition.push(field("lastTransitionTime", &scalar(DeclKind::DateTime)));
    let conditions = list(object("kubernetes.NamespaceCondition", condition));
    let status = vec![field("conditions", &conditions), field("phase", &text())];
    let spec = vec![field("finalizers", &list(text()))];
    object(
        "kubernetes.Namespace",
        vec![
            field("metadata", &object("kubernetes.NamespaceMetadata", metadata)),
            field("spec", &object("kubernetes.NamespaceSpec", spec)),
            field("status", &object("kubernetes.NamespaceStatus", status)),
        ],
    )
});

fn scalar(kind: DeclKind) -> Arc<DeclType> {
    Arc::new(DeclType::scalar(kind, u64::MAX, 0))
}

fn text() -> Arc<DeclType> {
    scalar(DeclKind::String)
}

fn list(of: Arc<DeclType>) -> Arc<DeclType> {
    Arc::new(DeclType::list(of, ListKind::Atomic, u64::MAX))
}

fn object(name: &str, fields: Vec<Field>) -> Arc<DeclType> {
    Arc::new(DeclType::object(name, fields, 0))
}

fn dynamic() -> Arc<DeclType> {
    typed(Type::Dyn)
}

/// Returns a declaration for any JSON that has this type in the checker.
fn typed(ty: Type) -> Arc<DeclType> {
    Arc::new(DeclType {
        kind: DeclKind::Dyn,
        ty,
        nullable: true,
        max_elements: u64::MAX,
        min_serialized_size: 0,
    })
}

fn field(name: &str, of: &Arc<DeclType>) -> Field {
    let escaped = portico_cel::decl::escape(name).unwrap_or_else(|| name.to_owned());
    Field { name: name.into(), escaped: escaped.into(), of: Arc::clone(of) }
}

fn texts(names: &[&str]) -> Vec<Field> {
    let text = text();
    names.iter().map(|name| field(name, &text)).collect()
}
