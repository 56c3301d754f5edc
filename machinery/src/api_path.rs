//! Position of a path in the API: parsed once for the director's delegates, discovery and OpenAPI.
//!
//! Trailing slashes are ignored unless noted. Parsing does not check if the named group or version exists.

/// Meaning of a decoded path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiPath<'p> {
    /// `/api`
    Core,
    /// `/apis`, with or without a trailing slash.
    Groups {
        /// True for `/apis/`.
        slash: bool,
    },
    /// `/apis/GROUP`
    Group(&'p str),
    /// `/api/VERSION` or `/apis/GROUP/VERSION`
    Version {
        /// Group name, empty for core.
        group: &'p str,
        /// Version, empty if missing (`/api//`).
        version: &'p str,
    },
    /// A path below a version, or below a missing version (`/api//v1`).
    Below {
        /// Group name, empty for core.
        group: &'p str,
        /// Version, empty if missing.
        version: &'p str,
    },
    /// `/openapi/v2`; with a trailing slash, it is [`ApiPath::Other`].
    OpenApiV2,
    /// `/openapi/v3`; with a trailing slash, it is [`ApiPath::OpenApiV3Document`].
    OpenApiV3,
    /// `/openapi/v3/DOCUMENT`
    OpenApiV3Document(&'p str),
    /// Any other path. `/apis//...` names no group, because the core group has no name there.
    Other,
}

impl<'p> ApiPath<'p> {
    /// Parses a decoded path.
    #[must_use]
    pub fn parse(path: &'p str) -> Self {
        let Some(path) = path.strip_prefix('/') else { return Self::Other };
        let (first, rest) = split(path);
        match (first, rest) {
            ("api", None | Some("")) => Self::Core,
            ("api", Some(rest)) => Self::of_group("", rest),
            ("apis", None) => Self::Groups { slash: false },
            ("apis", Some("")) => Self::Groups { slash: true },
            ("apis", Some(rest)) => match split(rest) {
                ("", _) => Self::Other,
                (group, None | Some("")) => Self::Group(group),
                (group, Some(rest)) => Self::of_group(group, rest),
            },
            ("openapi", Some("v2")) => Self::OpenApiV2,
            ("openapi", Some("v3")) => Self::OpenApiV3,
            ("openapi", Some(rest)) => rest.strip_prefix("v3/").map_or(Self::Other, Self::OpenApiV3Document),
            _ => Self::Other,
        }
    }

    fn of_group(group: &'p str, rest: &'p str) -> Self {
        match split(rest) {
            (version, None | Some("")) => Self::Version { group, version },
            (version, Some(_)) => Self::Below { group, version },
        }
    }
}

fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_upstreams_web_services_split_them() {
        let version = |group, version| ApiPath::Version { group, version };
        let below = |group, version| ApiPath::Below { group, version };
        for (path, want) in [
            ("/api", ApiPath::Core),
            ("/api/", ApiPath::Core),
            ("/api/v1", version("", "v1")),
            ("/api/v1/", version("", "v1")),
            ("/api/v1/pods", below("", "v1")),
            ("/api//v1", below("", "")),
            ("/apis", ApiPath::Groups { slash: false }),
            ("/apis/", ApiPath::Groups { slash: true }),
            ("/apis/apps", ApiPath::Group("apps")),
            ("/apis/apps/", ApiPath::Group("apps")),
            ("/apis/apps/v1", version("apps", "v1")),
            ("/apis/apps/v1/", version("apps", "v1")),
            ("/apis/apps/v1/x/y", below("apps", "v1")),
            ("/apis/apps//x", below("apps", "")),
            ("/apis//v1/x", ApiPath::Other),
            ("/openapi/v2", ApiPath::OpenApiV2),
            ("/openapi/v2/", ApiPath::Other),
            ("/openapi/v3", ApiPath::OpenApiV3),
            ("/openapi/v3/", ApiPath::OpenApiV3Document("")),
            ("/openapi/v3/apis/apps/v1", ApiPath::OpenApiV3Document("apis/apps/v1")),
            ("//api", ApiPath::Other),
            ("/apisx", ApiPath::Other),
            ("api", ApiPath::Other),
            ("", ApiPath::Other),
        ] {
            assert_eq!(ApiPath::parse(path), want, "{path}");
        }
    }
}
