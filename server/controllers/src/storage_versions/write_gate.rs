//! Refuses writes until storage versions are reported, as the last filter of upstream's chain.

use portico_machinery::{GroupResource, RequestInfo, Status, UserInfo};

use super::{GROUP, RESOURCE, StorageVersions};

impl StorageVersions {
    /// Returns the error for a request that cannot be served yet: 503 for writes of resources with an unreported storage version.
    #[must_use]
    pub fn refusal(&self, request: &RequestInfo, user: &UserInfo) -> Option<Status> {
        if self.shared.reported.is_signaled() || is_exempt(request, user) {
            return None;
        }
        let resource = GroupResource::new(&request.api_group, &request.resource);
        let pending = self.shared.pending.read();
        let error = pending.get(&resource)?.as_deref().unwrap_or("<nil>");
        Some(Status::unavailable(format!(
            "wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
        )))
    }
}

/// Returns true for requests that are never refused: reads, the reports, and their prerequisites, which are the system namespaces
/// that the server creates and its identity lease.
fn is_exempt(request: &RequestInfo, user: &UserInfo) -> bool {
    if !request.is_resource_request || matches!(request.verb.as_str(), "get" | "list" | "watch") {
        return true;
    }
    match (request.api_group.as_str(), request.resource.as_str()) {
        (GROUP, RESOURCE) => true,
        ("coordination.k8s.io", "leases") => request.namespace == "kube-system",
        ("", "namespaces") => {
            request.verb == "create"
                && user.name == "system:apiserver"
                && user.groups.iter().any(|group| group == "system:masters")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Registration;
    use super::*;

    fn unreported(resources: &[(&str, &str)]) -> StorageVersions {
        let registration = |(group, resource): &(&str, &str)| Registration {
            resource: GroupResource::new(*group, *resource),
            encoding: "v1".to_owned(),
            decodable: Vec::new(),
            served: Vec::new(),
            covers: vec![GroupResource::new(*group, *resource)],
        };
        StorageVersions::new("a", resources.iter().map(registration).collect())
    }

    fn request(verb: &str, group: &str, resource: &str, namespace: &str) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            verb: verb.to_owned(),
            api_group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            ..RequestInfo::default()
        }
    }

    #[test]
    fn writes_are_refused_except_those_needed_for_reports() {
        let resources =
            [("", "pods"), ("apps", "deployments"), ("", "namespaces"), ("coordination.k8s.io", "leases")];
        let versions = unreported(&resources);
        let user = UserInfo { name: "anyone".to_owned(), ..UserInfo::default() };
        let server = UserInfo {
            name: "system:apiserver".to_owned(),
            groups: vec!["system:masters".to_owned()],
            ..UserInfo::default()
        };
        let rows = [
            (request("create", "", "pods", "x"), &user, true),
            (request("delete", "apps", "deployments", "x"), &user, true),
            (request("get", "", "pods", "x"), &user, false),
            (request("watch", "", "pods", "x"), &user, false),
            (request("create", "", "bindings", "x"), &user, false),
            (request("patch", GROUP, RESOURCE, ""), &user, false),
            (request("update", "coordination.k8s.io", "leases", "kube-system"), &user, false),
            (request("update", "coordination.k8s.io", "leases", "default"), &user, true),
            (request("create", "", "namespaces", ""), &user, true),
            (request("create", "", "namespaces", ""), &server, false),
            (RequestInfo { verb: "post".to_owned(), ..RequestInfo::default() }, &user, false),
        ];
        for (request, user, waits) in rows {
            assert_eq!(versions.refusal(&request, user).is_some(), waits, "{request:?}");
        }
    }

    #[test]
    fn the_refusal_names_the_resource_and_ends_when_all_are_reported() {
        let versions = unreported(&[("apps", "deployments")]);
        let (create, user) = (request("create", "apps", "deployments", "x"), UserInfo::default());
        let status = versions.refusal(&create, &user).unwrap();
        assert_eq!(status.code, 503);
        assert_eq!(
            status.message,
            "wait for storage version registration to complete for resource: deployments.apps, last seen error: <nil>"
        );
        versions.reported().signal();
        assert!(versions.refusal(&create, &user).is_none());
    }
}
