//! Access that each gRPC method requires, checked before its message is read. A test compares the table with the
//! descriptors; docs/reference/grpc.md lists it.

/// Access that a method requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// none is required.
    Anyone,
    /// the Kubernetes verb on the resource in the message.
    Object,
    /// the verb `post` on the path `/grpc/<service>/<method>`.
    Path,
    /// a facade certificate.
    Facade,
}

/// Access by prefix of the path; the first match applies, and [`Access::Path`] if there is none.
pub(crate) const TABLE: &[(&str, Access)] = &[
    ("/grpc.health.v1.Health/", Access::Anyone),
    ("/portico.apiregistration.v1.APIServices/", Access::Object),
    ("/portico.objects.v1.Objects/", Access::Object),
    ("/portico.history.v1.History/", Access::Object),
    ("/portico.config.v1.Config/Facades", Access::Path),
    ("/portico.config.v1.Config/WatchFacades", Access::Path),
    ("/portico.config.v1.Config/", Access::Facade),
    ("/portico.catalog.v1.Catalog/", Access::Facade),
    ("/portico.routes.v1.Routes/", Access::Path),
    ("/portico.admin.v1.Admin/", Access::Path),
    ("/portico.apiextensions.v1.Definitions/", Access::Path),
];

/// Access that the method at this path requires.
pub(crate) fn access(path: &str) -> Access {
    TABLE.iter().find(|(prefix, _)| path.starts_with(prefix)).map_or(Access::Path, |(_, access)| *access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_matches_decides_and_the_unknown_is_a_path() {
        assert_eq!(access("/grpc.health.v1.Health/Check"), Access::Anyone);
        assert_eq!(access("/portico.config.v1.Config/Stream"), Access::Facade);
        assert_eq!(access("/portico.config.v1.Config/Facades"), Access::Path);
        assert_eq!(access("/portico.config.v1.Config/WatchFacades"), Access::Path);
        assert_eq!(access("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), Access::Path);
        assert_eq!(access("/portico.objects.v1.ObjectsElse/Do"), Access::Path);
    }
}
