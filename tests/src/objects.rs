//! Objects that tests write, as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Path of the APIServices.
pub const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// Path of the ConfigMaps of the namespace `default`.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Path of the Pods of the namespace `default`.
pub const PODS: &str = "/api/v1/namespaces/default/pods";
/// Path of the CustomResourceDefinitions.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns an APIService of version v1 of this group without a backend: local, and therefore Available at once.
pub fn local_api_service(group: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10},
    })
}

/// Returns an APIService with the Service `default/backend` on this port.
pub fn remote_api_service(group: &str, ca: &str, port: u16) -> Value {
    let mut object = local_api_service(group);
    object["spec"]["service"] = json!({"namespace": "default", "name": "backend", "port": port});
    object["spec"]["caBundle"] = STANDARD.encode(ca).into();
    object
}

/// Returns an APIService with the URLs of its backends as an annotation.
pub fn api_service_with_urls(group: &str, ca: &str, urls: &str) -> Value {
    let mut object = remote_api_service(group, ca, 443);
    object["metadata"]["annotations"] = json!({"portico.dev/backend-urls": urls});
    object
}

/// Returns the Available condition of an APIService: status, reason, message.
pub fn available_condition(object: &Value) -> (String, String, String) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let condition = conditions.iter().find(|c| c["type"] == "Available").cloned().unwrap_or_default();
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}
