# Flux's helm-controller: a chart is installed, tested, upgraded, and corrected after a change of its objects.
# shellcheck shell=bash disable=SC2034,SC2154
program=helm-controller
. "$parts/flux.sh"
. "$parts/hooks.sh"

text() { kubectl get configmap demo -o 'jsonpath={.data.text}'; }
text_is() { [ "$(text)" = "$1" ]; }
value() { kubectl -n flux-system patch helmrelease demo --type=merge -p "{\"spec\": {\"values\": $1}}" >/dev/null; }
is_ready() { prints "^$1" kubectl -n flux-system get helmrelease demo -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}'; }
has_no() { [ -z "$(kubectl get "$@" --ignore-not-found -o name)" ]; }

run() {
  local waited
  start_controller helm-controller
  tar czf demo-0.1.0.tgz -C "$parts" --transform 's/^chart/demo/' chart
  kubectl create -f - >/dev/null <<'YAML'
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: demo, namespace: flux-system}
spec: {interval: 10m, chart: demo, sourceRef: {kind: HelmRepository, name: demo}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: demo, namespace: flux-system}
spec:
  interval: 10m
  timeout: 40s
  releaseName: demo
  targetNamespace: default
  chartRef: {kind: HelmChart, name: demo}
  driftDetection: {mode: enabled}
  install: {disableWait: true}
  upgrade: {disableWait: true, remediation: {retries: 0}}
  test: {enable: true}
  values: {text: one}
YAML
  (finish_job demo-before && finish_pod demo-test) & waited=$!
  publish helmchart/demo demo-0.1.0.tgz 0.1.0
  wait "$waited"
  eventually 30 is_ready "True Helm test succeeded"
  expect "what was installed" one text
  kubectl -n flux-system get helmrelease demo -o 'jsonpath={.metadata.finalizers} {.status.history[0].name} {.status.history[0].status}{"\n"}' >answers
  kubectl -n flux-system patch helmrelease demo --type=merge -p '{"spec": {"test": {"enable": false}}}' >/dev/null
  value '{"text": "two"}'
  eventually 30 text_is two
  eventually 20 is_ready "True Helm upgrade succeeded"
  kubectl patch configmap demo --type=merge -p '{"data": {"text": "mine"}}' >/dev/null
  kubectl delete service demo >/dev/null
  reconcile helmrelease/demo
  eventually 30 text_is two
  eventually 20 kubectl get service demo
  value '{"text": "three", "port": 70000}'
  eventually 40 is_ready False
  kubectl -n flux-system get helmrelease demo -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}{"\n"}' | sed 's/@.*v[0-9]* //' >>answers
  value '{"text": "four", "port": 81}'
  eventually 40 text_is four
  kubectl -n flux-system delete helmrelease demo --timeout=40s >/dev/null || fail "the finalizer stays"
  eventually 10 has_no configmap/demo service/demo widget/demo
  kubectl -n flux-system get events --field-selector involvedObject.name=demo -o 'jsonpath={range .items[*]}{.type} {.reason}{"\n"}{end}' | sort -u >>answers
}
