# Writes the statuses that controllers and kubelets would write for the Jobs and Pods of a chart's hooks.
# shellcheck shell=bash

finish_job() {
  kubectl -n default wait --for=create "job/$1" --timeout=40s >/dev/null || fail "no hook $1"
  kubectl -n default patch job "$1" --subresource=status --type=merge >/dev/null -p '{"status": {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:00:01Z", "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}}' ||
    fail "the hook's Job does not finish"
}

finish_pod() {
  kubectl -n default wait --for=create "pod/$1" --timeout=40s >/dev/null || fail "no test $1"
  kubectl -n default patch pod "$1" --subresource=status --type=merge -p '{"status": {"phase": "Succeeded"}}' >/dev/null
}
