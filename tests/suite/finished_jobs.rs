//! Deletion of finished jobs after their `ttlSecondsAfterFinished`.

use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn job(name: &str, ttl: u64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"ttlSecondsAfterFinished": ttl,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
}

/// Returns a finished status, as job-controller would write it.
fn finished() -> Value {
    let now = "2026-01-01T00:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    json!({"status": {"startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_jobs_are_deleted_after_their_ttl() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let long = 10 * 365 * 24 * 3600;
    for (name, ttl) in [("soon", 1), ("running", 0), ("later", long)] {
        let created = admin.post(JOBS, &job(name, ttl)).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    for name in ["later", "soon"] {
        let written = admin.merge(&format!("{JOBS}/{name}/status"), &finished()).await;
        assert_eq!(written.status, 200, "{}", written.text());
    }
    wait_until("the job is deleted", async || admin.get(&format!("{JOBS}/soon")).await.status == 404).await;
    for name in ["running", "later"] {
        assert_eq!(admin.get(&format!("{JOBS}/{name}")).await.status, 200, "{name}");
    }
    // A shorter TTL applies at once.
    let shorter = json!({"spec": {"ttlSecondsAfterFinished": 0}});
    assert_eq!(admin.merge(&format!("{JOBS}/later"), &shorter).await.status, 200);
    wait_until("the other job is deleted", async || admin.get(&format!("{JOBS}/later")).await.status == 404)
        .await;
}
