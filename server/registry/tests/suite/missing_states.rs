//! Databases with missing states: writes that the missing states might forbid are refused.

use portico_store::Resource;

use crate::harness::{Harness, object};

const ADMISSION: &str = "admissionregistration.k8s.io";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

#[tokio::test]
async fn writes_are_refused_while_states_of_rules_that_might_forbid_them_are_missing() {
    let harness = Harness::open().await;
    let map = object("ConfigMap", "m", "");
    let claim = r#","spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}"#;
    let claim = object("PersistentVolumeClaim", "c", claim);
    for (group, resource, url, object) in [
        (ADMISSION, "validatingadmissionpolicies", MAPS, &map),
        (ADMISSION, "validatingadmissionpolicybindings", MAPS, &map),
        (ADMISSION, "mutatingadmissionpolicies", MAPS, &map),
        (ADMISSION, "mutatingadmissionpolicybindings", MAPS, &map),
        (ADMISSION, "validatingwebhookconfigurations", MAPS, &map),
        (ADMISSION, "mutatingwebhookconfigurations", MAPS, &map),
        ("", "resourcequotas", MAPS, &map),
        ("", "limitranges", CLAIMS, &claim),
        ("storage.k8s.io", "storageclasses", CLAIMS, &claim),
    ] {
        // Admission read the rules before without an error.
        let dry_run = format!("{url}?dryRun=All");
        assert_eq!(harness.post(&dry_run, object).await.code, 201, "{resource}");
        harness.store.report_missing(Some(Resource::new(group, resource)));
        for url in [url, &*dry_run] {
            let refused = harness.post(url, object).await;
            assert_eq!(refused.code, 403, "{resource}: {}", refused.text);
            let message = refused.at("message");
            assert!(message.contains("not yet ready to handle request"), "{resource}: {message}");
            assert!(message.contains("may be missing from the storage"), "{resource}: {message}");
        }
        harness.store.report_missing(None);
    }
    assert_eq!(harness.post(MAPS, &map).await.code, 201);
    assert_eq!(harness.post(CLAIMS, &claim).await.code, 201);
}
