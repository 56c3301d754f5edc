//! Permission checks for approving and signing certificate requests and for attesting trust bundles, and restrictions of
//! certificate subjects: CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest.

mod approval;
mod attest;
mod signer;
mod signing;
mod subject;

pub(super) use approval::CertificateApproval;
pub(super) use attest::ClusterTrustBundleAttest;
pub(super) use signing::CertificateSigning;
pub(super) use subject::CertificateSubjectRestriction;
