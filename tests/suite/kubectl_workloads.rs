//! kubectl with workloads: create, scale, roll out, label, explain, delete.

use portico_tests::Portico;
use portico_tests::tools::is_installed;

use crate::kubectl::prints;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_scales_rolls_out_and_orphans_a_deployment() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let run = |args: &[&str]| prints(&portico, args);
    run(&["create", "deployment", "web", "--image=nginx:1.27", "--replicas=2"]);
    let wide = run(&["get", "deployments", "-o", "wide"]);
    assert!(wide.contains("0/2") && wide.contains("nginx:1.27") && wide.contains("app=web"), "{wide}");
    run(&["scale", "deployment/web", "--replicas=5"]);
    run(&["scale", "deployment/web", "--current-replicas=5", "--replicas=3"]);
    run(&["set", "image", "deployment/web", "nginx=nginx:1.28"]);
    run(&["rollout", "restart", "deployment/web"]);
    run(&["rollout", "pause", "deployment/web"]);
    run(&["rollout", "resume", "deployment/web"]);
    assert!(run(&["rollout", "history", "deployment/web"]).contains("No rollout history"));
    let status = run(&["rollout", "status", "deployment/web", "--watch=false"]);
    assert!(status.contains("Waiting for deployment spec update"), "{status}");
    run(&["autoscale", "deployment/web", "--min=1", "--max=4", "--cpu-percent=60"]);
    let table = run(&["get", "hpa"]);
    assert!(table.contains("Deployment/web") && table.contains("cpu: <unknown>/60%"), "{table}");
    run(&["label", "deployment/web", "tier=front"]);
    run(&["annotate", "deployment/web", "note=hello"]);
    let path = "jsonpath={.spec.replicas} {.metadata.labels.tier} {.spec.template.spec.containers[0].image}";
    assert_eq!(run(&["get", "deployment/web", "-o", path]), "3 front nginx:1.28");
    let explained = run(&["explain", "deployment.spec.strategy.rollingUpdate"]);
    assert!(explained.contains("maxSurge"), "{explained}");
    assert!(run(&["describe", "deployment", "web"]).contains("3 desired"));
    assert!(run(&["delete", "deployment/web", "--cascade=orphan"]).contains("deleted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_jobs_and_cron_jobs() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let run = |args: &[&str]| prints(&portico, args);
    run(&["create", "job", "pi", "--image=perl:5", "--", "perl", "-e", "print"]);
    run(&["create", "cronjob", "night", "--image=busybox", "--schedule=0 3 * * *", "--", "date"]);
    run(&["create", "job", "now", "--from=cronjob/night"]);
    let jobs = run(&["get", "jobs", "-o", "wide"]);
    assert!(jobs.contains("Running") && jobs.contains("batch.kubernetes.io/controller-uid="), "{jobs}");
    let timetable = run(&["get", "cronjobs"]);
    assert!(timetable.contains("0 3 * * *") && timetable.contains("False"), "{timetable}");
    run(&["create", "poddisruptionbudget", "keep", "--selector=app=web", "--min-available=50%"]);
    assert!(run(&["get", "pdb"]).contains("50%"));
    assert!(run(&["delete", "job", "pi"]).contains("deleted"));
}
