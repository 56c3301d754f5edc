//! Secrets of type `kubernetes.io/service-account-token` (`serviceaccount-token-controller`): filled with a token, the namespace
//! and the root CA, and deleted with their service account.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use portico_identity::TokenAuthority;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::selector::FieldSelector;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{
    Context, DeleteOptions, ListOptions, LogEntry, ObjectPart, ObjectRef, Preconditions, Registry,
    StoredObject, UpdateOptions,
};

use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "serviceaccount-token-controller";

/// Type of Secrets with legacy tokens.
pub(crate) const TYPE: &str = "kubernetes.io/service-account-token";
pub(crate) const ACCOUNT: &str = "kubernetes.io/service-account.name";
pub(crate) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

const USER: &str = "system:serviceaccount:kube-system:service-account-controller";
const WORKERS: usize = 2;

/// Item of the work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TokenItem {
    /// All token Secrets: at the start and after missed changes.
    All,
    /// A Secret with a token of the service account of this name, which may be deleted.
    Secret(ObjectRef, String),
    /// A deleted service account, with its UID.
    DeletedAccount(ObjectRef, String),
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct ServiceAccountTokens {
    /// CA in PEM with which users of tokens verify this API's certificate.
    root_ca: Arc<str>,
    /// Issuer and signer of tokens.
    token_issuer: Arc<TokenAuthority>,
    queue: WorkQueue<TokenItem>,
}

impl ServiceAccountTokens {
    /// Creates the controller, which fills Secrets with this CA (PEM) and with tokens of this issuer.
    #[must_use]
    pub fn new(root_ca: &str, token_issuer: Arc<TokenAuthority>, metrics: &QueueMetrics) -> Self {
        let queue =
            WorkQueue::with_metrics("serviceaccount_tokens_secret", BackoffPolicy::CONTROLLER, metrics);
        Self { root_ca: root_ca.into(), token_issuer, queue }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, NAME, WORKERS, self.queue.clone(), move |item| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, item).await.map(|()| ReconcileOutcome::Done) }
        });
    }

    async fn reconcile(&self, registry: &Registry, item: TokenItem) -> Result<(), Box<Status>> {
        match item {
            TokenItem::All => {
                let all = tokens(registry, "").await?;
                all.iter().for_each(|secret| self.queue.add(item_of(secret)));
                Ok(())
            }
            TokenItem::Secret(secret, account) => match registry.get_stored(&secret).await? {
                Some(stored) => self.reconcile_secret(registry, &stored).await,
                None => drop_reference(registry, &secret, account).await,
            },
            TokenItem::DeletedAccount(account, uid) => {
                for secret in tokens(registry, &account.namespace).await? {
                    if belongs_to(secret.object(), &account.name, &uid) {
                        delete(registry, &secret).await?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Fills a Secret whose service account exists, and deletes any other.
    async fn reconcile_secret(&self, registry: &Registry, secret: &StoredObject) -> Result<(), Box<Status>> {
        if secret.object().at(&["type"]).str() != TYPE {
            return Ok(());
        }
        let account = account_of(secret.namespace(), secret.object().annotation(ACCOUNT).unwrap_or_default());
        let account = registry.get_stored(&account).await?;
        let Some(account) = account.filter(|a| belongs_to(secret.object(), a.name(), a.uid())) else {
            return delete(registry, secret).await;
        };
        let Some(mut updated) = with_missing_fields(secret.object(), &self.root_ca) else { return Ok(()) };
        if updated.at(&["data", "token"]).str().is_empty() {
            let Some(token) = self.token_issuer.legacy_token(&account, secret.name())? else { return Ok(()) };
            updated.set(&["data", "token"], STANDARD.encode(token));
        }
        updated.set(&["metadata", "annotations", ACCOUNT], account.name());
        updated.set(&["metadata", "annotations", ACCOUNT_UID], account.uid());
        if updated == *secret.object() {
            return Ok(());
        }
        let (context, options) = (Context::system(USER), UpdateOptions::default());
        let written = registry.update(&context, &secrets(), ObjectPart::Main, updated, &options).await;
        // An event delivers the newer state.
        ignore_reasons(written, &[Reason::NotFound, Reason::Conflict])
    }
}

impl Listener for ServiceAccountTokens {
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.queue.add(TokenItem::All);
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        if !resource.group.is_empty() {
            return;
        }
        match resource.resource.as_str() {
            "secrets" if change.field("type") == Some(TYPE) => self.queue.add(item_of(&change.stored())),
            "serviceaccounts" if change.is_deleted() => {
                self.queue.add(TokenItem::DeletedAccount(change.object(), change.uid().to_owned()));
            }
            _ => {}
        }
    }
}

/// Returns the Secret with missing fields other than the token; `None` if nothing is missing. Pure.
fn with_missing_fields(secret: &Object, root_ca: &str) -> Option<Object> {
    let data = secret.at(&["data"]);
    let (ca, is_missing) =
        (STANDARD.encode(root_ca), |key| data.entry_str(key).unwrap_or_default().is_empty());
    let wrong_ca = !root_ca.is_empty() && data.entry_str("ca.crt") != Some(&ca);
    if !wrong_ca && !is_missing("namespace") && !is_missing("token") {
        return None;
    }
    let mut updated = secret.clone();
    if wrong_ca {
        updated.set(&["data", "ca.crt"], ca);
    }
    if is_missing("namespace") {
        updated.set(&["data", "namespace"], STANDARD.encode(secret.namespace()));
    }
    Some(updated)
}

/// Returns true if a Secret belongs to this service account. A Secret without a UID matches by name.
pub(crate) fn belongs_to(secret: &Object, account: &str, uid: &str) -> bool {
    let account_uid = secret.annotation(ACCOUNT_UID).unwrap_or_default();
    secret.annotation(ACCOUNT) == Some(account) && (account_uid.is_empty() || account_uid == uid)
}

fn item_of(secret: &StoredObject) -> TokenItem {
    let (namespace, name) = (secret.namespace().to_owned(), secret.name().to_owned());
    let account = secret.object().annotation(ACCOUNT).unwrap_or_default();
    TokenItem::Secret(ObjectRef { resource: secrets(), namespace, name }, account.to_owned())
}

/// Returns the token Secrets of a namespace, or of all namespaces if it is empty.
pub(crate) async fn tokens(registry: &Registry, namespace: &str) -> Result<Vec<StoredObject>, Box<Status>> {
    let fields = FieldSelector::parse(&format!("type={TYPE}")).map_err(Status::internal)?;
    let select = ListOptions { fields, ..ListOptions::default() };
    Ok(registry.list(&secrets(), namespace, &select).await?.items)
}

async fn delete(registry: &Registry, secret: &StoredObject) -> Result<(), Box<Status>> {
    let preconditions = Preconditions { uid: Some(secret.uid().to_owned()), ..Preconditions::default() };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let deleted = registry
        .delete(&Context::system(USER), &secrets(), secret.namespace(), secret.name(), &options)
        .await;
    ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict])
}

/// Removes a deleted Secret from the list in its service account.
async fn drop_reference(registry: &Registry, secret: &ObjectRef, account: String) -> Result<(), Box<Status>> {
    let account_ref = account_of(&secret.namespace, &account);
    let Some(account) = registry.get_stored(&account_ref).await? else { return Ok(()) };
    let names = |reference: &Object| reference.str_at("name") == secret.name;
    if !account.object().at(&["secrets"]).items().any(|r| r.field("name").str() == secret.name) {
        return Ok(());
    }
    let mut changed = account.object().clone();
    changed.retain(&["secrets"], |reference| !names(reference));
    let (context, options) = (Context::system(USER), UpdateOptions::default());
    let written = registry.update(&context, &account_ref.resource, ObjectPart::Main, changed, &options).await;
    ignore_reasons(written, &[Reason::NotFound])
}

fn account_of(namespace: &str, name: &str) -> ObjectRef {
    let resource = GroupResource::new("", "serviceaccounts");
    ObjectRef { resource, namespace: namespace.to_owned(), name: name.to_owned() }
}

pub(crate) fn secrets() -> GroupResource {
    GroupResource::new("", "secrets")
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    fn secret() -> Object {
        let mut secret = Object::new(&GroupVersion::new("", "v1").kind("Secret"));
        secret.set(&["metadata", "namespace"], "n");
        secret.set(&["metadata", "annotations", ACCOUNT], "s");
        secret
    }

    #[test]
    fn missing_fields_are_filled_and_correct_ones_are_not_changed() {
        let mut secret = with_missing_fields(&secret(), "PEM").unwrap();
        assert_eq!(secret.at(&["data", "ca.crt"]).str(), STANDARD.encode("PEM"));
        assert_eq!(secret.at(&["data", "namespace"]).str(), STANDARD.encode("n"));
        secret.set(&["data", "token"], "dG9rZW4=");
        assert_eq!(with_missing_fields(&secret, "PEM"), None);
        assert_eq!(with_missing_fields(&secret, ""), None);
        assert_eq!(with_missing_fields(&secret, "NEW").unwrap().at(&["data", "token"]).str(), "dG9rZW4=");
    }

    #[test]
    fn a_secret_belongs_to_an_account_by_name_and_by_uid_if_present() {
        let mut secret = secret();
        assert!(belongs_to(&secret, "s", "1") && !belongs_to(&secret, "t", "1"));
        secret.set(&["metadata", "annotations", ACCOUNT_UID], "1");
        assert!(belongs_to(&secret, "s", "1") && !belongs_to(&secret, "s", "2"));
    }
}
