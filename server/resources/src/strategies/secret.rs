//! Secret: `stringData`, keys required by the type, and immutability.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::Object;
use portico_machinery::field::{Error, Path};

use super::configmap::{validate_bytes, validate_immutable};
use portico_registry::{DecodeStrategy, RequestTime, Strategy};
use portico_validation::{Errors, pem};

pub(crate) struct Secret;

impl DecodeStrategy for Secret {
    /// Merges `stringData` before ownership is tracked, as upstream's conversion does, so that the writer owns fields of `data`.
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        merge_string_data(object);
    }
}

impl Strategy for Secret {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_bytes(&new.at(&["data"]), errors);
        match new.at(&["type"]).str() {
            "kubernetes.io/service-account-token" => {
                const KEY: &str = "kubernetes.io/service-account.name";
                if new.annotation(KEY).unwrap_or_default().is_empty() {
                    errors.push(Error::required(&Path::from("metadata.annotations").key(KEY), ""));
                }
            }
            "kubernetes.io/tls" => require_keys(new, &["tls.crt", "tls.key"], errors),
            "kubernetes.io/dockercfg" => validate_docker_config(new, ".dockercfg", errors),
            "kubernetes.io/dockerconfigjson" => validate_docker_config(new, ".dockerconfigjson", errors),
            "kubernetes.io/basic-auth" => {
                let data = new.at(&["data"]);
                if !data.field("username").is_present() && !data.field("password").is_present() {
                    require_keys(new, &["username", "password"], errors);
                }
            }
            "kubernetes.io/ssh-auth" if new.at(&["data", "ssh-privatekey"]).str().is_empty() => {
                errors.push(Error::required(&Path::from("data").key("ssh-privatekey"), ""));
            }
            _ => {}
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        if new.str_at("type") != "kubernetes.io/tls" {
            return Vec::new();
        }
        let data = |key| STANDARD.decode(new.at(&["data", key]).str()).unwrap_or_default();
        pem::key_pair(&data("tls.crt"), &data("tls.key")).err().into_iter().collect()
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        if !new.at(&["type"]).same_as(&old.at(&["type"])) {
            errors.push(new.at(&["type"]).invalid("field is immutable"));
        }
        validate_immutable(new, old, &["data"], errors);
        self.validate(new, errors);
    }
}

/// Merges `stringData` into `data`. `stringData` takes precedence and is never stored.
fn merge_string_data(object: &mut Object) {
    let text: Vec<(String, String)> =
        object.at(&["stringData"]).entries().map(|(k, v)| (k.to_owned(), STANDARD.encode(v.str()))).collect();
    for (key, value) in text {
        object.set(&["data", &key], value);
    }
    object.remove(&["stringData"]);
}

fn require_keys(object: &Object, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        if !object.at(&["data", key]).is_present() {
            errors.push(Error::required(&Path::from("data").key(key), ""));
        }
    }
}

/// Checks that registry credentials are a JSON object. The error does not contain the content.
fn validate_docker_config(object: &Object, key: &str, errors: &mut Errors) {
    let value = object.at(&["data", key]);
    if !value.is_present() {
        return require_keys(object, &[key], errors);
    }
    let bytes = STANDARD.decode(value.str()).unwrap_or_default();
    if let Err(error) = Object::from_json(&bytes) {
        let path = Path::from("data").key(key);
        errors.push(Error::invalid(&path, "<secret contents redacted>", &parser_message(&error)));
    }
}

fn parser_message(error: &portico_machinery::object::NotAnObject) -> String {
    use portico_machinery::object::NotAnObject;
    match error {
        // The parser error has a position and no content.
        NotAnObject::Json(error) => format!("not JSON at line {} column {}", error.line(), error.column()),
        _ => "not a JSON object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_is_merged_into_data_and_takes_precedence() {
        let mut secret = Object::default();
        secret.set(&["data", "a"], "b2xk");
        secret.set(&["stringData", "a"], "new");
        merge_string_data(&mut secret);
        assert_eq!(secret.at(&["data", "a"]).str(), "bmV3");
        assert!(!secret.at(&["stringData"]).is_present());
    }
}
