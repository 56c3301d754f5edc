//! Certificate signing requests: a kubelet may request certificates of its node.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_registry::{Operation, Result};
use portico_validation::pem;

use super::node_request::NodeRequest;

/// Signers of kubelet certificates.
const SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

/// Checks a new request (upstream's `admitCSR`).
pub(super) fn check(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    let Some(new) = node_request.new.filter(|_| node_request.has_operation(Operation::Create)) else {
        return Ok(());
    };
    if !SIGNERS.contains(&new.str_at("spec.signerName")) {
        return Ok(());
    }
    let csr = pem::certificate_request(&STANDARD.decode(new.str_at("spec.request")).unwrap_or_default());
    let csr = csr.map_err(|error| node_request.forbidden(&format!("unable to parse csr: {error}")))?;
    match csr.common_name().strip_prefix("system:node:") == Some(node) {
        true => Ok(()),
        false => {
            Err(node_request.forbidden(&format!("can only create a node CSR with CN=system:node:{node}")))
        }
    }
}
