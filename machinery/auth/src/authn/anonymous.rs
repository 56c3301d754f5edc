//! Anonymous access, for callers without credentials.
//!
//! Upstream rules: pkg/authentication/request/anonymous.

use std::sync::Arc;

/// Setting of anonymous access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// No anonymous access.
    #[default]
    No,
    /// Anonymous access to all paths.
    Yes,
    /// Anonymous access to exactly these paths, without their subpaths.
    Paths(Arc<[String]>),
}

impl From<bool> for Anonymous {
    fn from(on: bool) -> Self {
        if on { Self::Yes } else { Self::No }
    }
}

impl Anonymous {
    /// True if a caller without credentials may access this path. An unknown path (`None`) matches no listed path.
    #[must_use]
    pub fn admits(&self, path: Option<&str>) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::Paths(paths) => path.is_some_and(|path| paths.iter().any(|one| one == path)),
        }
    }

    /// Encodes the setting as JSON: true, false, or the paths.
    #[must_use]
    pub fn to_setting(&self) -> String {
        match self {
            Self::No => "false".to_owned(),
            Self::Yes => "true".to_owned(),
            // Encoding strings cannot fail.
            Self::Paths(paths) => serde_json::to_string(&**paths).unwrap_or_default(),
        }
    }

    /// Parses the output of [`Self::to_setting`]; invalid text denies access.
    #[must_use]
    pub fn of_setting(text: &str) -> Self {
        match text {
            "true" => Self::Yes,
            paths => {
                serde_json::from_str::<Vec<String>>(paths).map_or(Self::No, |paths| Self::Paths(paths.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_whole_paths_and_travel_as_they_are() {
        let paths = Anonymous::Paths(["/healthz".to_owned(), "/a b\n".to_owned()].into());
        for (anonymous, path, admits) in [
            (&Anonymous::No, "/healthz", false),
            (&Anonymous::Yes, "/x", true),
            (&paths, "/healthz", true),
            (&paths, "/healthz/", false),
            (&paths, "/a b\n", true),
        ] {
            assert_eq!(anonymous.admits(Some(path)), admits, "{anonymous:?} {path}");
            assert_eq!(Anonymous::of_setting(&anonymous.to_setting()), *anonymous);
        }
        assert!(!paths.admits(None) && Anonymous::Yes.admits(None));
        assert_eq!(Anonymous::of_setting("maybe"), Anonymous::No);
    }
}
