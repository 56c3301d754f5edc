//! ConfigMap `kube-system/extension-apiserver-authentication`, which lists the CAs and front proxies that backends trust.
//!
//! Several API servers of one store may publish different CAs. As in a kube-apiserver, each server adds its own missing
//! entries and keeps those published by others, so that the servers do not overwrite each other repeatedly.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_kit::pki::{CertInfo, FRONT_PROXY_CA, parse_certs, pem_text};
use portico_machinery::{FrontProxy, GroupResource, GroupVersion, Object};

use super::SystemObject;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";
const PROXY_CA: &str = "requestheader-client-ca-file";
const ALLOWED_NAMES: &str = "requestheader-allowed-names";
/// Keys with settings of front proxies.
const PROXY_KEYS: [&str; 6] = [
    PROXY_CA,
    ALLOWED_NAMES,
    "requestheader-username-headers",
    "requestheader-uid-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
];
/// Maximum number of times that a process withdraws trust. A withdrawal may lose a race, and another control service that still
/// uses its own front proxy adds the trust again; the limit ends this.
const MAX_WITHDRAWALS: usize = 3;
/// Time for which an expired CA is still published, to allow for clock skew. As upstream.
const EXPIRY_GRACE: Duration = Duration::from_secs(300);

/// Content of the ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationInfo {
    /// CAs of client certificates in PEM.
    pub client_ca: Option<String>,
    /// CAs of front proxies' certificates in PEM, and the headers in which front proxies name the caller; `None` if
    /// front proxies are not used.
    pub front_proxy: Option<(String, FrontProxy)>,
    /// Client name of a front proxy that an earlier start may have created and this one does not use. Trust in this
    /// front proxy is withdrawn.
    pub withdrawn: Option<String>,
}

impl AuthenticationInfo {
    /// Returns the maintained object. Other keys of the ConfigMap are preserved.
    #[must_use]
    pub fn object(self) -> SystemObject {
        let remaining = AtomicUsize::new(MAX_WITHDRAWALS);
        SystemObject::new(GroupResource::new("", "configmaps"), NAMESPACE, NAME, move |current| {
            let may_withdraw = current.filter(|_| remaining.load(Ordering::Relaxed) > 0);
            let withdrawn = may_withdraw
                .zip(self.withdrawn.as_deref())
                .and_then(|(now, name)| without_own_proxy(now, name));
            if withdrawn.is_some() {
                remaining.fetch_sub(1, Ordering::Relaxed);
            }
            self.updated(withdrawn.as_ref().or(current)).or(withdrawn)
        })
    }

    fn updated(&self, current: Option<&Object>) -> Option<Object> {
        let published =
            |key: &str| current.and_then(|now| now.at(&["data"]).entry_str(key)).unwrap_or_default();
        let desired = self.merged_data(&published);
        if current.is_some() && desired.iter().all(|(key, value)| published(key) == value) {
            return None;
        }
        let new = || Object::new(&GroupVersion::new("", "v1").kind("ConfigMap"));
        let mut updated = current.cloned().unwrap_or_else(new);
        for (key, value) in &desired {
            updated.set(&["data", key], value);
        }
        Some(updated)
    }

    /// Returns the published entries merged with the own ones, for each key with own entries.
    fn merged_data<'a>(&self, published: &impl Fn(&str) -> &'a str) -> Vec<(&'static str, String)> {
        let mut data = Vec::new();
        data.extend(self.client_ca.as_ref().map(|ca| (CLIENT_CA, merge_cas(published(CLIENT_CA), ca))));
        let Some((ca, proxy)) = &self.front_proxy else { return data };
        data.push((PROXY_CA, merge_cas(published(PROXY_CA), ca)));
        let own: [&[String]; 5] = [
            &proxy.allowed_names,
            &proxy.username_headers,
            &proxy.uid_headers,
            &proxy.group_headers,
            &proxy.extra_headers_prefix,
        ];
        for (key, own) in PROXY_KEYS.into_iter().skip(1).zip(own) {
            let mut names = names(published(key));
            for name in own {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            // Older servers publish nothing about UIDs.
            if key != "requestheader-uid-headers" || !names.is_empty() {
                data.push((key, format_list(&names)));
            }
        }
        data
    }
}

/// Returns the ConfigMap without the CA of Portico's own front proxy and its client name; `None` if the CA is not published.
/// The name is kept if it is the only one: with no names, backends would accept any name certified by the remaining CAs.
fn without_own_proxy(current: &Object, name: &str) -> Option<Object> {
    let data = current.at(&["data"]);
    let published = certificates(data.entry_str(PROXY_CA).unwrap_or_default());
    let others: Vec<&(CertInfo, String)> =
        published.iter().filter(|(info, _)| info.common_name != FRONT_PROXY_CA).collect();
    if others.len() == published.len() {
        return None;
    }
    let mut updated = current.clone();
    if others.is_empty() {
        for key in PROXY_KEYS {
            updated.remove(&["data", key]);
        }
        return Some(updated);
    }
    let pem: String = others.iter().map(|(_, pem)| pem.as_str()).collect();
    updated.set(&["data", PROXY_CA], pem);
    let mut names = names(data.entry_str(ALLOWED_NAMES).unwrap_or_default());
    names.retain(|other| other != name);
    if !names.is_empty() {
        updated.set(&["data", ALLOWED_NAMES], format_list(&names));
    }
    Some(updated)
}

/// Returns the distinct CAs of both texts that have not expired.
fn merge_cas(published: &str, own: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let oldest = i64::try_from(now.saturating_sub(EXPIRY_GRACE).as_secs()).unwrap_or(i64::MAX);
    let mut all: Vec<String> = Vec::new();
    for (info, pem) in certificates(published).into_iter().chain(certificates(own)) {
        if info.not_after > oldest && !all.contains(&pem) {
            all.push(pem);
        }
    }
    all.concat()
}

/// Parses the certificates of a bundle. Invalid ones are skipped, because backends could not use them either.
fn certificates(pem: &str) -> Vec<(CertInfo, String)> {
    let ders = parse_certs(NAME, pem.as_bytes()).unwrap_or_default();
    let read = |der: &_| CertInfo::parse(der).ok().map(|info| (info, pem_text("CERTIFICATE", der)));
    ders.iter().filter_map(read).collect()
}

/// Parses a list of names; empty if the text is not a list.
fn names(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

fn format_list(names: &[String]) -> String {
    // Encoding strings cannot fail.
    serde_json::to_string(names).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use portico_kit::pki::Authority;

    use super::*;

    fn info(ca: &str, names: &[&str]) -> AuthenticationInfo {
        let allowed_names = names.iter().map(ToString::to_string).collect();
        let front_proxy = Some((ca.to_owned(), FrontProxy { allowed_names, ..FrontProxy::default() }));
        AuthenticationInfo { front_proxy, ..AuthenticationInfo::default() }
    }

    fn text(object: &Object, key: &str) -> Option<String> {
        object.at(&["data"]).entry_str(key).map(str::to_owned)
    }

    #[test]
    fn several_servers_add_missing_entries_without_overwriting_each_other() {
        let (one, two) = (Authority::create("one").unwrap(), Authority::create("two").unwrap());
        let (a, b) = (info(one.cert_pem(), &["front"]), info(two.cert_pem(), &["b"]));
        let first = a.updated(None).unwrap();
        assert_eq!(text(&first, "requestheader-group-headers").unwrap(), "[]");
        assert_eq!(text(&first, "requestheader-uid-headers"), None);
        assert_eq!(a.updated(Some(&first)), None);
        let both = b.updated(Some(&first)).unwrap();
        assert_eq!(text(&both, ALLOWED_NAMES).unwrap(), r#"["front","b"]"#);
        assert_eq!(text(&both, PROXY_CA).unwrap(), format!("{}{}", one.cert_pem(), two.cert_pem()));
        assert_eq!((a.updated(Some(&both)), b.updated(Some(&both))), (None, None));
    }

    #[test]
    fn trust_in_the_own_front_proxy_is_withdrawn_and_other_cas_are_kept() {
        let (own, other) = (Authority::create(FRONT_PROXY_CA).unwrap(), Authority::create("other").unwrap());
        let mut published = info(own.cert_pem(), &["front"]).updated(None).unwrap();
        published.set(&["data", "kept"], "of others");
        let remaining = without_own_proxy(&published, "front").unwrap();
        let keys: Vec<&str> = remaining.at(&["data"]).entries().map(|(key, _)| key).collect();
        assert_eq!(keys, ["kept"]);
        assert_eq!(without_own_proxy(&remaining, "front"), None);
        let both = info(other.cert_pem(), &["b"]).updated(Some(&published)).unwrap();
        let remaining = without_own_proxy(&both, "front").unwrap();
        assert_eq!(text(&remaining, PROXY_CA).unwrap(), other.cert_pem());
        assert_eq!(text(&remaining, ALLOWED_NAMES).unwrap(), r#"["b"]"#);
    }
}
