//! ServiceAccount: secrets reduced to their names, and a warning about a deprecated annotation.

use portico_machinery::Object;

use portico_registry::{RequestTime, Strategy};

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(crate) struct ServiceAccount;

impl Strategy for ServiceAccount {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        reduce_secrets_to_names(new);
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _moment: RequestTime) {
        reduce_secrets_to_names(new);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let newly =
            new.annotation(ENFORCE).is_some() && old.is_none_or(|old| old.annotation(ENFORCE).is_none());
        let text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        newly.then(|| format!("metadata.annotations[{ENFORCE}]: {text}")).into_iter().collect()
    }
}

fn reduce_secrets_to_names(account: &mut Object) {
    account.edit_each(&["secrets"], |secret| {
        let name = secret.str_at("name").to_owned();
        *secret = Object::default();
        secret.set(&["name"], name);
    });
}
