//! Approves client certificates of kubelets whose users have the permission
//! (`certificatesigningrequest-approving-controller`, upstream's `sarApprover`).

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use portico_kit::pki::CertificateRequest;
use portico_kit::workqueue::QueueMetrics;
use portico_machinery::{Attributes, Object, Status, UserInfo};
use portico_registry::{ObjectPart, Registry, UpdateOptions};

use super::controller::{Handler, RequestController};
use super::request::{self, KUBELET_CLIENT, add_condition, has_condition, parse_request, usages};
use super::{USER, kubelet};
use crate::account::service_account_context;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "certificatesigningrequest-approving-controller";

/// Subresource that a requester must be allowed to create, and the message of the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Permission {
    subresource: &'static str,
    message: &'static str,
}

const SELF_CLIENT: Permission = Permission {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const ANY_CLIENT: Permission = Permission {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// Creates the approving controller.
#[must_use]
pub fn controller(metrics: &QueueMetrics) -> RequestController {
    RequestController::new(Approver, metrics)
}

struct Approver;

/// Returns the permissions of which one suffices; empty if the request is not a kubelet's or already has a decision.
fn permissions(request: &Object, requested: &CertificateRequest) -> &'static [Permission] {
    let is_kubelet = request.str_at("spec.signerName") == KUBELET_CLIENT
        && kubelet::check_client(requested, &usages(request)).is_ok();
    match is_kubelet {
        true if request.str_at("spec.username") == requested.common_name() => &[SELF_CLIENT, ANY_CLIENT],
        true => &[ANY_CLIENT],
        false => &[],
    }
}

/// Returns the subresources of which the requester must be allowed to create one.
#[cfg(test)]
pub(super) fn subresources(request: &Object, requested: &CertificateRequest) -> Vec<&'static str> {
    permissions(request, requested).iter().map(|permission| permission.subresource).collect()
}

/// Returns the user who made the request.
fn requester(request: &Object) -> UserInfo {
    let spec = request.at(&["spec"]);
    let texts =
        |list: portico_machinery::Cursor<'_>| list.items().map(|item| item.str().to_owned()).collect();
    let extra = spec.field("extra");
    let extra: BTreeMap<String, Vec<String>> =
        extra.entries().map(|(key, values)| (key.to_owned(), texts(values))).collect();
    UserInfo {
        name: spec.field("username").str().to_owned(),
        uid: spec.field("uid").str().to_owned(),
        groups: texts(spec.field("groups")),
        extra,
    }
}

impl Handler for Approver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle<'a>(
        &'a self,
        registry: &'a Registry,
        mut request: Object,
    ) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            if has_condition(&request, "Approved") || has_condition(&request, "Denied") {
                return Ok(());
            }
            let permissions = permissions(&request, &parse_request(&request)?);
            let (user, authorizer) = (requester(&request), &registry.objects().authorizer);
            let mut granted = None;
            for permission in permissions {
                let question = Attributes::resource(user.clone(), "create", &request::resource(), "", "")
                    .with_subresource(permission.subresource)
                    .with_version("*");
                if authorizer.decide(&question).await.is_allowed() {
                    granted = Some(permission);
                    break;
                }
            }
            if let Some(permission) = granted {
                add_condition(&mut request, "Approved", "AutoApproved", permission.message);
                let (context, options) = (service_account_context(USER), UpdateOptions::default());
                let part = ObjectPart::Subresource("approval");
                registry.update(&context, &request::resource(), part, request, &options).await?;
                return Ok(());
            }
            // Upstream retries with backoff, because a role binding may be created later.
            match permissions {
                [] => Ok(()),
                tried => Err(Box::new(Status::internal(not_approved(request.name(), tried)))),
            }
        })
    }
}

fn not_approved(name: &str, permissions: &[Permission]) -> String {
    let subresources: Vec<&str> = permissions.iter().map(|permission| permission.subresource).collect();
    format!(
        "recognized csr {name:?} as [{}] but subject access review was not approved",
        subresources.join(" ")
    )
}
