//! Checks of kubelets' certificate requests (upstream's `ValidateKubeletClientCSR` and `ValidateKubeletServingCSR`).

use std::collections::BTreeSet;

use portico_kit::pki::CertificateRequest;

const ORGANIZATION: &str = "system:nodes";
const COMMON_NAME: &str = "system:node:";

/// Checks a request for a kubelet's client certificate.
///
/// # Errors
/// Returns the reason if the request is not valid.
pub(super) fn check_client(requested: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    check_organization(requested)?;
    require_empty(&requested.dns_names, "DNS subjectAltNames are not allowed")?;
    require_empty(&requested.email_addresses, "Email subjectAltNames are not allowed")?;
    require_empty(&requested.ip_addresses, "IP subjectAltNames are not allowed")?;
    require_empty(&requested.uris, "URI subjectAltNames are not allowed")?;
    check_common_name(requested)?;
    check_usages(usages, "client auth")
}

/// Checks a request for a kubelet's serving certificate.
///
/// # Errors
/// Returns the reason if the request is not valid.
pub(super) fn check_serving(requested: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    check_organization(requested)?;
    if requested.dns_names.is_empty() && requested.ip_addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    require_empty(&requested.email_addresses, "Email subjectAltNames are not allowed")?;
    require_empty(&requested.uris, "URI subjectAltNames are not allowed")?;
    check_usages(usages, "server auth")?;
    check_common_name(requested)
}

fn require_empty<T>(names: &[T], why: &str) -> Result<(), String> {
    if names.is_empty() { Ok(()) } else { Err(why.to_owned()) }
}

fn check_organization(requested: &CertificateRequest) -> Result<(), String> {
    match requested.organizations() {
        [one] if one == ORGANIZATION => Ok(()),
        _ => Err("subject organization is not system:nodes".to_owned()),
    }
}

fn check_common_name(requested: &CertificateRequest) -> Result<(), String> {
    match requested.common_name().starts_with(COMMON_NAME) {
        true => Ok(()),
        false => Err("subject common name does not begin with system:node:".to_owned()),
    }
}

/// Checks that the usages are the digital signature and this purpose, with or without the key encipherment of RSA keys.
fn check_usages(usages: &[&str], purpose: &str) -> Result<(), String> {
    let usages: BTreeSet<&str> = usages.iter().copied().collect();
    let mut required = BTreeSet::from(["digital signature", purpose]);
    if usages == required {
        return Ok(());
    }
    required.insert("key encipherment");
    if usages == required {
        return Ok(());
    }
    let expected: Vec<&str> = required.into_iter().collect();
    Err(format!("usages did not match [{}]", expected.join(" ")))
}
