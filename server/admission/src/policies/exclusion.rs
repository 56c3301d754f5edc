//! Resources that no policy applies to (upstream's `pkg/kubeapiserver/admission/exclusion`).

use portico_registry::ServedResource;

/// Reviews of callers, in all versions: policies on them could refuse every request.
const EXCLUDED: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// True if policies ignore requests for this resource.
pub(crate) fn is_excluded(served: &ServedResource) -> bool {
    let resource = &served.resource;
    EXCLUDED.contains(&(&*resource.group, &*resource.resource))
}
