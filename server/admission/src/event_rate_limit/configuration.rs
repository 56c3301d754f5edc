//! Configuration of EventRateLimit (upstream's `eventratelimit.admission.k8s.io/v1alpha1`).

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use crate::configuration_kinds::{ConfigKind, PluginConfigurationError, Scheme};

const SCHEME: Scheme = Scheme {
    kinds: &[ConfigKind {
        version: "eventratelimit.admission.k8s.io/v1alpha1",
        kind: "Configuration",
        ty: "Configuration",
    }],
    types: r#"{
        "Configuration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"}, "limits": {"type": "[]Limit"}
        }},
        "Limit": {"fields": {
            "type": {"type": "string"}, "qps": {"type": "int32"}, "burst": {"type": "int32"},
            "cacheSize": {"type": "int32"}
        }}
    }"#,
    strict: false,
};

/// Buckets of a limit of EventRateLimit without `cacheSize`.
///
/// Limit (Admission and quota): the least recently used bucket is removed and is full when it is used again.
const DEFAULT_BUCKETS: usize = 4_096;

/// Configuration of EventRateLimit.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventRateLimitConfiguration {
    pub(super) limits: Vec<Limit>,
}

/// Limit of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) ty: LimitType,
    /// Maximum rate, in events per second.
    pub(super) qps: i32,
    /// Maximum number of events in a burst.
    pub(super) burst: i32,
    /// Maximum number of buckets as configured; zero selects the default.
    pub(super) cache_size: i32,
}

/// Scope within which a limit counts events together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitType {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

impl LimitType {
    const ALL: [Self; 4] = [Self::Server, Self::Namespace, Self::User, Self::SourceAndObject];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Namespace => "Namespace",
            Self::User => "User",
            Self::SourceAndObject => "SourceAndObject",
        }
    }
}

impl Limit {
    /// Returns the maximum number of buckets.
    pub(super) fn max_buckets(&self) -> usize {
        match (self.ty, usize::try_from(self.cache_size)) {
            (LimitType::Server, _) => 1,
            (_, Ok(0) | Err(_)) => DEFAULT_BUCKETS,
            (_, Ok(size)) => size,
        }
    }
}

impl EventRateLimitConfiguration {
    /// Reads a configuration. A missing configuration has no limits and is refused.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let object = bytes.map_or_else(|| Ok(Object::default()), |bytes| SCHEME.decode(bytes))?;
        let mut errors = Vec::new();
        let limits: Vec<Limit> =
            object.at(&["limits"]).items().filter_map(|limit| read(&limit, &mut errors)).collect();
        if object.at(&["limits"]).is_empty() {
            errors.push(Error::invalid_printed(&Path::new("limits"), "null", "must not be empty"));
        }
        if errors.is_empty() { Ok(Self { limits }) } else { Err(PluginConfigurationError::Invalid(errors)) }
    }
}

fn read(limit: &Cursor<'_>, errors: &mut Vec<Error>) -> Option<Limit> {
    let number = |field| i32::try_from(limit.field(field).i64().unwrap_or(0)).unwrap_or(0);
    let (qps, burst, cache_size) = (number("qps"), number("burst"), number("cacheSize"));
    let ty = LimitType::ALL.into_iter().find(|ty| ty.name() == limit.field("type").str());
    if ty.is_none() {
        errors.push(limit.field("type").not_supported(&LimitType::ALL.map(LimitType::name)));
    }
    let mut refuse = |field, value: i32, message| {
        errors.push(Error::invalid(&limit.field(field).path(), value, message));
    };
    if burst <= 0 {
        refuse("burst", burst, "must be positive");
    }
    if qps <= 0 {
        refuse("qps", qps, "must be positive");
    }
    if ty != Some(LimitType::Server) && cache_size < 0 {
        refuse("cacheSize", cache_size, "must not be negative");
    }
    Some(Limit { ty: ty?, qps, burst, cache_size })
}
