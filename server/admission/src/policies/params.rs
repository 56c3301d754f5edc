//! Parameters of policies (upstream's `CollectParams`).

use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, GroupVersion, GroupVersionKind, Object};
use portico_registry::options::ListOptions;
use portico_registry::{Objects, ServedResource};
use portico_store::Record;

/// Size of the parameters of a binding, as JSON, that stay decoded between requests.
///
/// Decoded, they can take fifty times as much, and any tenant can write parameters.
///
/// Limit (Admission and quota, bytes): they are decoded for each request.
const MAX_DECODED_BYTES: usize = 64 * 1024;

/// Kind of a policy's parameters.
pub(super) struct ParamKind(Result<GroupVersionKind, String>);

/// Reference of a binding to its parameters.
pub(super) struct ParamRef {
    name: String,
    namespace: String,
    /// `None` if the reference has no selector; an error if the selector is invalid.
    selector: Option<Result<LabelSelector, String>>,
    /// Parameters that the selector matched for the last request.
    selected: Mutex<Arc<SelectedParams>>,
    /// True if a request is denied when no parameters are found.
    denies_if_not_found: bool,
}

/// Decoded parameters that a selector matched. The next request decodes only those that have changed.
#[derive(Default)]
struct SelectedParams {
    api_version: String,
    /// Records and their objects, in key order.
    params: Vec<(Arc<Record>, Arc<Object>)>,
}

impl SelectedParams {
    /// Returns the decoded object of a record, if the record and the version are unchanged.
    fn find(&self, api_version: &str, record: &Arc<Record>) -> Option<Arc<Object>> {
        let path = record.key.path();
        let at = self.params.binary_search_by(|(cached, _)| cached.key.path().cmp(path)).ok()?;
        let (cached, object) = &self.params[at];
        (self.api_version == api_version && Arc::ptr_eq(cached, record)).then(|| Arc::clone(object))
    }

    fn bytes(&self) -> usize {
        self.params.iter().map(|(record, _)| record.value.json().len()).sum()
    }
}

impl ParamKind {
    pub(super) fn read(kind: &Cursor<'_>) -> Self {
        let version = kind.field("apiVersion").str().parse::<GroupVersion>();
        Self(version.map(|version| version.kind(kind.field("kind").str())).map_err(|error| error.to_string()))
    }

    /// Returns the served resource of the kind.
    ///
    /// # Errors
    /// The kind is not served; the error is upstream's message.
    pub(super) fn served(&self, objects: &Objects) -> Result<Arc<ServedResource>, String> {
        let kind =
            self.0.as_ref().map_err(|error| format!("failed to parse paramKind APIVersion: {error}"))?;
        objects.by_kind(kind).ok_or_else(|| {
            let GroupVersionKind { group, version, kind } = kind;
            format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
        })
    }
}

impl ParamRef {
    pub(super) fn read(reference: &Cursor<'_>) -> Self {
        let selector = LabelSelector::from_object(&reference.field("selector"));
        Self {
            name: reference.field("name").str().to_owned(),
            namespace: reference.field("namespace").str().to_owned(),
            selector: selector.map_err(|error| error.to_string()).transpose(),
            selected: Mutex::default(),
            denies_if_not_found: reference.field("parameterNotFoundAction").str() == "Deny",
        }
    }

    /// Returns the parameters for a request in a namespace.
    ///
    /// # Errors
    /// The parameters cannot be found or read; the error is upstream's message.
    pub(super) async fn collect(
        &self,
        objects: &Objects,
        served: &ServedResource,
        namespace: &str,
    ) -> Result<Vec<Arc<Object>>, String> {
        let namespaced = served.info.namespaced;
        if !namespaced && !self.namespace.is_empty() {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        let namespace = match (namespaced, self.namespace.as_str()) {
            (false, _) => "",
            (true, "") => namespace,
            (true, namespace) => namespace,
        };
        if namespaced && namespace.is_empty() {
            let message =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(message.to_owned());
        }
        let found = match &self.selector {
            None => {
                let found = objects.read_in_version(served, namespace, &self.name).await;
                let found: Vec<_> =
                    found.map_err(|status| status.message)?.into_iter().map(Arc::new).collect();
                if found.is_empty() {
                    objects.check_complete(served, namespace).await.map_err(|status| status.message)?;
                }
                found
            }
            Some(selector) => self.list_selected(objects, served, namespace, selector.clone()?).await?,
        };
        if found.is_empty() && self.denies_if_not_found {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }

    async fn list_selected(
        &self,
        objects: &Objects,
        served: &ServedResource,
        namespace: &str,
        labels: LabelSelector,
    ) -> Result<Vec<Arc<Object>>, String> {
        let options = ListOptions { labels, ..ListOptions::default() };
        let page = objects.list(served, namespace, &options).await.map_err(|status| status.message)?;
        // An unreadable parameter object does not count as missing.
        let records =
            objects.require_complete(served, namespace, page).await.map_err(|status| status.message)?;
        let previous = Arc::clone(&self.selected.lock());
        let decoded = |record: Arc<Record>| {
            let object = previous.find(&served.api_version, &record);
            let object =
                object.unwrap_or_else(|| Arc::new(objects.decode_in_version(served, Arc::clone(&record))));
            (record, object)
        };
        let params: Vec<_> = records.into_iter().map(decoded).collect();
        let found = params.iter().map(|(_, object)| Arc::clone(object)).collect();
        let selected = SelectedParams { api_version: served.api_version.clone(), params };
        let cached = if selected.bytes() <= MAX_DECODED_BYTES { selected } else { SelectedParams::default() };
        *self.selected.lock() = Arc::new(cached);
        Ok(found)
    }
}
