//! The ConfigMap from which backends learn whom to trust: `kube-system/extension-apiserver-authentication`.

use portico_machinery::{FrontProxy, GroupResource, GroupVersion, Object};

use super::SystemObject;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What the ConfigMap tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationInfo {
    /// The CAs of client certificates, PEM.
    pub client_ca: Option<String>,
    /// How front proxies say who calls, when there may be any, and the CAs of their certificates, PEM.
    pub front_proxy: Option<(String, FrontProxy)>,
}

impl AuthenticationInfo {
    fn data(&self) -> Vec<(&'static str, String)> {
        let list = |names: &[String]| {
            let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("[{}]", quoted.join(","))
        };
        let mut data = Vec::new();
        data.extend(self.client_ca.clone().map(|ca| ("client-ca-file", ca)));
        if let Some((ca, proxy)) = &self.front_proxy {
            data.push(("requestheader-client-ca-file", ca.clone()));
            data.push(("requestheader-allowed-names", list(&proxy.allowed_names)));
            data.push(("requestheader-username-headers", list(&proxy.username_headers)));
            if !proxy.uid_headers.is_empty() {
                data.push(("requestheader-uid-headers", list(&proxy.uid_headers)));
            }
            data.push(("requestheader-group-headers", list(&proxy.group_headers)));
            data.push(("requestheader-extra-headers-prefix", list(&proxy.extra_headers_prefix)));
        }
        data
    }

    /// The object that is kept. Keys of others in it stay.
    #[must_use]
    pub fn object(self) -> SystemObject {
        let data = self.data();
        SystemObject::new(GroupResource::new("", "configmaps"), NAMESPACE, NAME, move |current| {
            reported(current, &data)
        })
    }
}

fn reported(current: Option<&Object>, data: &[(&'static str, String)]) -> Option<Object> {
    let right = |object: &Object| {
        let there = object.at(&["data"]);
        data.iter().all(|(key, value)| there.entry_str(key) == Some(value.as_str()))
    };
    if current.is_some_and(right) {
        return None;
    }
    let new = || Object::new(&GroupVersion::new("", "v1").kind("ConfigMap"));
    let mut reported = current.cloned().unwrap_or_else(new);
    for (key, value) in data {
        reported.set(&["data", key], value);
    }
    Some(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_as_json_and_absent_uid_headers_not_at_all() {
        let info = AuthenticationInfo {
            client_ca: Some("CA".to_owned()),
            front_proxy: Some((
                "PROXY".to_owned(),
                FrontProxy {
                    allowed_names: vec!["front".to_owned(), "b".to_owned()],
                    ..FrontProxy::default()
                },
            )),
        };
        let data = info.data();
        let reported = reported(None, &data).unwrap();
        let text = |key: &str| reported.at(&["data"]).entry_str(key).map(str::to_owned);
        assert_eq!(text("requestheader-allowed-names").unwrap(), r#"["front","b"]"#);
        assert_eq!(text("requestheader-group-headers").unwrap(), "[]");
        assert_eq!(text("requestheader-uid-headers"), None);
        assert_eq!(super::reported(Some(&reported), &data), None);
    }
}
