//! The annotations that say where what stands behind a Service is: of APIServices and of configurations of webhooks.

use portico_machinery::field::{Error, Path};
use portico_machinery::resolve::{
    BACKEND_POLICY, BACKEND_SERVER_NAME, BACKEND_URLS, backend_urls, check_backend_policy,
};
use portico_machinery::{Object, names};
use portico_validation::Errors;

/// Validates those of the annotations that are there; `forbidden` says why there may be none.
pub(super) fn validate(new: &Object, keys: &[&str], forbidden: Option<&str>, errors: &mut Errors) {
    let annotations = new.metadata().field("annotations");
    for key in keys {
        let Some(value) = annotations.field(key).opt_str() else { continue };
        let path = Path::from("metadata.annotations").key(key);
        if let Some(why) = forbidden {
            errors.push(Error::forbidden(&path, why));
            continue;
        }
        match *key {
            BACKEND_URLS => {
                let wrong = backend_urls(value).err();
                errors.extend(wrong.map(|wrong| Error::invalid(&path, value, &wrong.to_string())));
            }
            BACKEND_SERVER_NAME => {
                let wrong = names::dns1123_subdomain(value).into_iter().next();
                errors.extend(wrong.map(|wrong| Error::invalid(&path, value, &wrong)));
            }
            key if BACKEND_POLICY.contains(&key) => {
                let wrong = check_backend_policy(new, key, value).err();
                errors.extend(wrong.map(|wrong| Error::invalid(&path, value, &wrong)));
            }
            _ if matches!(value, "h2" | "http/1.1") => {}
            _ => errors.push(Error::not_supported(&path, value, &["h2", "http/1.1"])),
        }
    }
}
