//! Checks of kubelets' certificate requests (upstream's `ValidateKubeletClientCSR` and `ValidateKubeletServingCSR`).

use std::collections::BTreeSet;

use portico_kit::pki::CertificateRequest;

const ORGANIZATION: &str = "system:nodes";
const COMMON_NAME: &str = "system:node:";

/// Checks a request for a kubelet's client certificate.
///
/// # Errors
/// Returns the reason if the request is not valid.
pub(super) fn check_client(asked: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    check_organization(asked)?;
    refuse(&asked.dns_names, "DNS subjectAltNames are not allowed")?;
    refuse(&asked.email_addresses, "Email subjectAltNames are not allowed")?;
    refuse(&asked.ip_addresses, "IP subjectAltNames are not allowed")?;
    refuse(&asked.uris, "URI subjectAltNames are not allowed")?;
    check_common_name(asked)?;
    check_usages(usages, "client auth")
}

/// Checks a request for a kubelet's serving certificate.
///
/// # Errors
/// Returns the reason if the request is not valid.
pub(super) fn check_serving(asked: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    check_organization(asked)?;
    if asked.dns_names.is_empty() && asked.ip_addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    refuse(&asked.email_addresses, "Email subjectAltNames are not allowed")?;
    refuse(&asked.uris, "URI subjectAltNames are not allowed")?;
    check_usages(usages, "server auth")?;
    check_common_name(asked)
}

fn refuse<T>(names: &[T], why: &str) -> Result<(), String> {
    if names.is_empty() { Ok(()) } else { Err(why.to_owned()) }
}

fn check_organization(asked: &CertificateRequest) -> Result<(), String> {
    match asked.organizations() {
        [one] if one == ORGANIZATION => Ok(()),
        _ => Err("subject organization is not system:nodes".to_owned()),
    }
}

fn check_common_name(asked: &CertificateRequest) -> Result<(), String> {
    match asked.common_name().starts_with(COMMON_NAME) {
        true => Ok(()),
        false => Err("subject common name does not begin with system:node:".to_owned()),
    }
}

/// Checks that the usages are the digital signature and this purpose, with or without the key encipherment of RSA keys.
fn check_usages(usages: &[&str], purpose: &str) -> Result<(), String> {
    let usages: BTreeSet<&str> = usages.iter().copied().collect();
    let mut wanted = BTreeSet::from(["digital signature", purpose]);
    if usages == wanted {
        return Ok(());
    }
    wanted.insert("key encipherment");
    if usages == wanted {
        return Ok(());
    }
    let wanted: Vec<&str> = wanted.into_iter().collect();
    Err(format!("usages did not match [{}]", wanted.join(" ")))
}
