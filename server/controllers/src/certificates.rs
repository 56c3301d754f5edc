//! CertificateSigningRequests: approved for kubelets, signed for the built-in signers, cleaned up (kube-controller-manager's
//! `certificatesigningrequest-*` controllers), and the trust bundle of the API's own certificate.

pub mod approving;
pub mod cleaner;
mod kubelet;
mod queue;
pub mod request;
pub mod signing;
pub mod trust_bundle;
mod usages;

/// As whom the controllers of requests act.
const USER: &str = "certificate-controller";
