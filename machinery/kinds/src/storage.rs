//! Which stored resource operators mean who name one in a setting.

use portico_machinery::gvk::GroupResource;

use crate::error::LoadError;
use crate::kind::KindInfo;
use crate::registry::Kinds;

/// Why a resource that somebody names stores nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoStorage {
    /// The embedded descriptions of kinds do not load: a broken build.
    #[error(transparent)]
    Kinds(#[from] LoadError),
    /// Its requests are answered, and nothing is kept.
    #[error("objects of {0} are not stored")]
    NotStored(GroupResource),
    /// There is none, and there are these.
    #[error("unknown resource {asked}: do you mean {}?", meant.join(" or "))]
    Misnamed {
        /// As it was named.
        asked: GroupResource,
        /// As it may be meant.
        meant: Vec<String>,
    },
    /// There is none, nor can a definition make it.
    #[error("unknown resource {0}; a custom resource is written as `<plural>.<group>`")]
    Unknown(GroupResource),
}

impl Kinds {
    /// The resource that objects of a named one are stored under. Any of a group that is not built in may be a definition's, which
    /// may be there later.
    ///
    /// # Errors
    /// [`NoStorage`].
    pub fn storage_of(&self, named: &GroupResource) -> Result<GroupResource, NoStorage> {
        let mut infos = self.iter().filter(|info| info.group_resource() == *named).peekable();
        if infos.peek().is_some() {
            let stored = infos.find(|info| info.stored).map(|info| info.storage.clone());
            return stored.ok_or_else(|| NoStorage::NotStored(named.clone()));
        }
        // Groups of definitions have a dot.
        let is_built_in = self.iter().any(|info| info.gvk.group == named.group);
        if named.group.contains('.') && !is_built_in {
            return Ok(named.clone());
        }
        let mut meant: Vec<_> =
            self.iter().filter(|info| info.stored && is_called(info, &named.resource)).collect();
        // Whoever named the group knows it.
        if meant.iter().any(|info| info.gvk.group == named.group) {
            meant.retain(|info| info.gvk.group == named.group);
        }
        let mut meant: Vec<_> = meant.into_iter().map(|info| info.group_resource().to_string()).collect();
        meant.dedup();
        Err(match meant.is_empty() {
            true => NoStorage::Unknown(named.clone()),
            false => NoStorage::Misnamed { asked: named.clone(), meant },
        })
    }
}

fn is_called(info: &KindInfo, name: &str) -> bool {
    let mut names = [&info.resource, &info.singular, &info.gvk.kind].into_iter().chain(&info.short_names);
    names.any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stores_nothing_is_refused_with_what_may_be_meant() {
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
        for (group, resource, why) in [
            ("", "deployments", "unknown resource deployments: do you mean deployments.apps?"),
            ("", "cm", "unknown resource cm: do you mean configmaps?"),
            ("apps", "Deployment", "unknown resource Deployment.apps: do you mean deployments.apps?"),
            ("app", "deployments", "unknown resource deployments.app: do you mean deployments.apps?"),
            (
                "authentication.k8s.io",
                "tokenreviews",
                "objects of tokenreviews.authentication.k8s.io are not stored",
            ),
        ] {
            assert_eq!(storage(group, resource), Err(why.to_owned()));
        }
        assert!(storage("", "widgets").unwrap_err().starts_with("unknown resource widgets; a custom"));
        assert!(storage("batch", "widgets").is_err() && storage("example", "widgets").is_err());
    }
}
