//! Anonymous access, for callers without credentials.
//!
//! Upstream rules: pkg/authentication/request/anonymous.

use std::sync::Arc;

/// Setting of anonymous access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AnonymousAccess {
    /// No anonymous access.
    #[default]
    Denied,
    /// Anonymous access to all paths.
    Allowed,
    /// Anonymous access to exactly these paths, without their subpaths.
    Paths(Arc<[String]>),
}

impl From<bool> for AnonymousAccess {
    fn from(on: bool) -> Self {
        if on { Self::Allowed } else { Self::Denied }
    }
}

impl AnonymousAccess {
    /// True if a caller without credentials may access this path. An unknown path (`None`) matches no listed path.
    #[must_use]
    pub fn admits(&self, path: Option<&str>) -> bool {
        match self {
            Self::Denied => false,
            Self::Allowed => true,
            Self::Paths(paths) => path.is_some_and(|path| paths.iter().any(|one| one == path)),
        }
    }

    /// Encodes the setting as JSON: true, false, or the paths.
    #[must_use]
    pub fn to_setting(&self) -> String {
        match self {
            Self::Denied => "false".to_owned(),
            Self::Allowed => "true".to_owned(),
            // Encoding strings cannot fail.
            Self::Paths(paths) => serde_json::to_string(&**paths).unwrap_or_default(),
        }
    }

    /// Parses the output of [`Self::to_setting`]; invalid text denies access.
    #[must_use]
    pub fn from_setting(text: &str) -> Self {
        match text {
            "true" => Self::Allowed,
            paths => serde_json::from_str::<Vec<String>>(paths)
                .map_or(Self::Denied, |paths| Self::Paths(paths.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_whole_paths_and_travel_as_they_are() {
        let paths = AnonymousAccess::Paths(["/healthz".to_owned(), "/a b\n".to_owned()].into());
        for (anonymous, path, admits) in [
            (&AnonymousAccess::Denied, "/healthz", false),
            (&AnonymousAccess::Allowed, "/x", true),
            (&paths, "/healthz", true),
            (&paths, "/healthz/", false),
            (&paths, "/a b\n", true),
        ] {
            assert_eq!(anonymous.admits(Some(path)), admits, "{anonymous:?} {path}");
            assert_eq!(AnonymousAccess::from_setting(&anonymous.to_setting()), *anonymous);
        }
        assert!(!paths.admits(None) && AnonymousAccess::Allowed.admits(None));
        assert_eq!(AnonymousAccess::from_setting("maybe"), AnonymousAccess::Denied);
    }
}
