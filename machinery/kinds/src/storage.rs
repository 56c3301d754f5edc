//! Resolution of resource names in settings to stored resources.

use portico_machinery::gvk::GroupResource;

use crate::error::LoadError;
use crate::kind::KindInfo;
use crate::registry::Kinds;

/// Error for a name that does not refer to a stored resource.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageNameError {
    /// The embedded descriptions of kinds are invalid, which means that the build is broken.
    #[error(transparent)]
    Kinds(#[from] LoadError),
    /// The resource exists and is not stored.
    #[error("objects of {0} are not stored")]
    NotStored(GroupResource),
    /// The resource does not exist, but similar ones do.
    #[error("unknown resource {requested}: did you mean {}?", similar.join(" or "))]
    Misnamed {
        /// Requested name.
        requested: GroupResource,
        /// Similar names.
        similar: Vec<String>,
    },
    /// The resource does not exist, and a definition cannot create it.
    #[error("unknown resource {0}; a custom resource is written as `<plural>.<group>`")]
    Unknown(GroupResource),
}

impl Kinds {
    /// Returns the resource under which objects of `named` are stored. A resource in a group that is not built in is accepted,
    /// because a definition may create it later.
    ///
    /// # Errors
    /// [`StorageNameError`].
    pub fn storage_of(&self, named: &GroupResource) -> Result<GroupResource, StorageNameError> {
        let mut infos = self.iter().filter(|info| info.group_resource() == *named).peekable();
        if infos.peek().is_some() {
            let stored = infos.find(|info| info.stored).map(|info| info.storage.clone());
            return stored.ok_or_else(|| StorageNameError::NotStored(named.clone()));
        }
        // Groups of definitions contain a dot.
        let is_built_in = self.iter().any(|info| info.gvk.group == named.group);
        if named.group.contains('.') && !is_built_in {
            return Ok(named.clone());
        }
        let mut similar: Vec<_> =
            self.iter().filter(|info| info.stored && has_name(info, &named.resource)).collect();
        // If the group exists, suggest only its resources.
        if similar.iter().any(|info| info.gvk.group == named.group) {
            similar.retain(|info| info.gvk.group == named.group);
        }
        let mut similar: Vec<_> = similar.into_iter().map(|info| info.group_resource().to_string()).collect();
        similar.dedup();
        Err(match similar.is_empty() {
            true => StorageNameError::Unknown(named.clone()),
            false => StorageNameError::Misnamed { requested: named.clone(), similar },
        })
    }
}

fn has_name(info: &KindInfo, name: &str) -> bool {
    let mut names = [&info.resource, &info.singular, &info.gvk.kind].into_iter().chain(&info.short_names);
    names.any(|candidate| candidate.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unstored_resources_are_refused_with_suggestions() {
        let kinds = Kinds::all().unwrap();
        let storage = |group: &str, resource: &str| {
            let found = kinds.storage_of(&GroupResource::new(group, resource));
            found.map(|found| found.to_string()).map_err(|error| error.to_string())
        };
        for (group, resource, stored) in [
            ("", "configmaps", "configmaps"),
            ("apps", "deployments", "deployments.apps"),
            ("events.k8s.io", "events", "events"),
            ("example.com", "widgets", "widgets.example.com"),
        ] {
            assert_eq!(storage(group, resource).as_deref(), Ok(stored));
        }
        for (group, resource, message) in [
            ("", "deployments", "unknown resource deployments: did you mean deployments.apps?"),
            ("", "cm", "unknown resource cm: did you mean configmaps?"),
            ("apps", "Deployment", "unknown resource Deployment.apps: did you mean deployments.apps?"),
            ("app", "deployments", "unknown resource deployments.app: did you mean deployments.apps?"),
            (
                "authentication.k8s.io",
                "tokenreviews",
                "objects of tokenreviews.authentication.k8s.io are not stored",
            ),
        ] {
            assert_eq!(storage(group, resource), Err(message.to_owned()));
        }
        assert!(storage("", "widgets").unwrap_err().starts_with("unknown resource widgets; a custom"));
        assert!(storage("batch", "widgets").is_err() && storage("example", "widgets").is_err());
    }
}
