# Helm: a chart with definitions, hooks and a test is installed, upgraded, rolled back and uninstalled.
# shellcheck shell=bash disable=SC2034,SC2154
program=helm
. "$parts/hooks.sh"

helm() { "$programs/helm" "$@" 2>>"$scratch/helm.log"; }

of_release() { helm list -o json | python3 -c "import json, sys; print([(r['name'], r['revision'], r['status']) for r in json.load(sys.stdin)])"; }
text() { kubectl get configmap demo -o 'jsonpath={.data.text}'; }
history() { helm history demo -o json | python3 -c "import json, sys; print(*(r['status'] for r in json.load(sys.stdin)))"; }

run() {
  local waited
  namespace default
  cp -r "$parts/chart" chart
  # A wait for a hook blocks the script.
  finish_job demo-before & waited=$!
  helm install demo chart --set text=one --timeout 60s >install || fail "helm install: $(tail -3 helm.log)"
  wait "$waited"
  expect "after install" "[('demo', '1', 'deployed')]" of_release
  expect "the chart's object" one text
  expect "an object of the chart's definition" plain kubectl get widget demo -o 'jsonpath={.spec.finish}'
  expect "what lookup finds" default kubectl get configmap demo -o 'jsonpath={.data.namespace}'
  grep -q 'Widgets of demo' install || fail "no notes"
  helm get all demo >everything || fail "helm get all"
  grep -q '^HOOKS:' everything || fail "no hooks in helm get all"
  expect "values" '{"text":"one"}' helm get values demo -o json

  finish_pod demo-test & waited=$!
  helm test demo --timeout 60s >tested || fail "helm test: $(cat tested)"
  grep -q 'Phase: *Succeeded' tested || fail "helm test: $(cat tested)"
  wait "$waited"

  helm upgrade demo chart --set text=two --set replicas=3 --timeout 60s >/dev/null || fail "helm upgrade"
  expect "after an upgrade" two text
  expect "replicas" 3 kubectl get deployment demo -o 'jsonpath={.spec.replicas}'
  helm upgrade demo chart --set text=three --dry-run=server >tried || fail "a dry run"
  grep -q 'text: "three"' tried || fail "a dry run without its objects"
  expect "after a dry run" two text
  # An invalid port.
  ! helm upgrade demo chart --set text=four --set port=70000 --timeout 20s >/dev/null || fail "an invalid Service"
  expect "after a failed upgrade" "[('demo', '3', 'failed')]" of_release

  helm rollback demo 1 >/dev/null || fail "helm rollback"
  expect "after a rollback" one text
  expect "history" "superseded superseded failed deployed" history
  # Another client changes an object: the three-way merge of an upgrade restores the chart's fields, and keeps all others.
  kubectl patch configmap demo --type=merge -p '{"data": {"text": "mine", "other": "kept"}}' >/dev/null
  helm upgrade demo chart --set text=five --wait --set replicas=null --timeout 30s >/dev/null || fail "helm upgrade --wait"
  expect "after a merge" "five kept" kubectl get configmap demo -o 'jsonpath={.data.text} {.data.other}'

  helm uninstall demo --wait --timeout 30s >/dev/null || fail "helm uninstall"
  expect "after uninstall" "[]" of_release
  expect "what is left" "" kubectl get configmap/demo service/demo deployment/demo widget/demo --ignore-not-found -o name
  expect "its definition" "customresourcedefinition.apiextensions.k8s.io/widgets.example.com" kubectl get crd widgets.example.com -o name
}
