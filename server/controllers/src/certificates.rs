//! Controllers that approve CertificateSigningRequests of kubelets, sign those for the built-in signers, and clean them up
//! (kube-controller-manager's `certificatesigningrequest-*` controllers), and the trust bundle of the API's own certificate.

pub mod approver;
pub mod cleaner;
mod controller;
mod kubelet;
pub mod request;
pub mod signing;
pub mod trust_bundle;
mod usages;

/// Service account of the CertificateSigningRequest controllers.
const USER: &str = "certificate-controller";
