//! Labels of slices: those of the Service, and those that identify the slice (`setEndpointSliceLabels`).

use std::collections::BTreeMap;

use crate::service_endpoints::service::{HEADLESS_LABEL, Service};
use crate::service_endpoints::slice::{MANAGED_BY_LABEL, SERVICE_LABEL};

/// Value of the label `managed-by` of slices of Services with selectors.
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";

type Labels = BTreeMap<String, String>;

/// Returns true for labels that are not copied from the Service.
fn is_reserved(key: &str) -> bool {
    [SERVICE_LABEL, MANAGED_BY_LABEL, HEADLESS_LABEL].contains(&key)
}

/// Returns the labels of a slice; true if its current labels differ in those copied from the Service.
pub(super) fn labels_of(service: &Service, current: &Labels) -> (Labels, bool) {
    let own = |labels: &Labels| -> Labels {
        labels.iter().filter(|(key, _)| !is_reserved(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let mut labels = own(&service.metadata.labels);
    let changed = own(current) != labels;
    if service.is_headless() {
        labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    }
    labels.insert(SERVICE_LABEL.to_owned(), service.metadata.name.clone());
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
    (labels, changed)
}
