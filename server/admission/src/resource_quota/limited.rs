//! What may be used only where a quota covers it (`limitedResources` of a `ResourceQuotaConfiguration`).

/// A resource of quotas, or scopes of objects, that a quota has to cover (upstream's `LimitedResource`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedResource {
    /// The group of the kind.
    pub api_group: String,
    /// The resource of the kind.
    pub resource: String,
    /// What an object of the kind uses has to be covered when its name contains any of these.
    pub match_contains: Vec<String>,
    /// An object that is in any of these scopes has to be covered by a quota that names the scope, whatever its kind.
    pub match_scopes: Vec<MatchScope>,
}

/// A scope (upstream's `ScopedResourceSelectorRequirement`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchScope {
    /// The scope's name.
    pub scope_name: String,
    /// `Exists`, `DoesNotExist`, `In` or `NotIn`.
    pub operator: String,
    /// What `In` and `NotIn` compare with.
    pub values: Vec<String>,
}
