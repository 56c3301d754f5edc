//! Controllers that approve CertificateSigningRequests of kubelets, sign those for the built-in signers, and clean them up
//! (kube-controller-manager's `certificatesigningrequest-*` controllers), and the trust bundle of the API's own certificate.

pub mod approving;
pub mod cleaner;
mod kubelet;
mod queue;
pub mod request;
pub mod signing;
pub mod trust_bundle;
mod usages;

/// Service account of the CertificateSigningRequest controllers.
const USER: &str = "certificate-controller";
