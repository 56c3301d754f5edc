//! Who may approve and sign certificate requests and attest trust bundles, and what nobody may ask for: CertificateApproval,
//! CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest.

mod approval;
mod attest;
mod signer;
mod signing;
mod subject;

pub(super) use approval::CertificateApproval;
pub(super) use attest::ClusterTrustBundleAttest;
pub(super) use signing::CertificateSigning;
pub(super) use subject::CertificateSubjectRestriction;
