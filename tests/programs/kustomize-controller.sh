# Flux's kustomize-controller: applies the objects of a source, waits for them, reverts changes of others, prunes removed objects.
# shellcheck shell=bash disable=SC2034,SC2154
program=kustomize-controller
. "$parts/flux.sh"

demo() { kubectl -n demo get "$@"; }
text() { demo configmap settings -o 'jsonpath={.data.text}'; }
corrected() { [ "$(text)" = two ]; }
has_no() { [ -z "$(kubectl get "$@" --ignore-not-found -o name)" ]; }

# revision NAME TEXT: publishes an artifact of a source.
revision() {
  tar czf "$1.tar.gz" -C source .
  publish gitrepository/demo "$1.tar.gz" "main@sha1:$(printf '%040d' "${1#r}")"
}

run() {
  start_controller kustomize-controller
  mkdir source
  cp "$parts/chart/crds/widgets.yaml" source/
  cat >source/objects.yaml <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo}
data: {text: "${text}", extra: kept}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: blue, namespace: demo}
spec: {size: 7}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: demo}
spec:
  replicas: 0
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}], resources: {requests: {cpu: 0.1}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: demo}
spec: {selector: {app: front}, ports: [{port: 80}]}
YAML
  kubectl create -f - >/dev/null <<'YAML'
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: demo, namespace: flux-system}
spec: {interval: 10m, url: "https://git.example.com/demo"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: demo, namespace: flux-system}
spec:
  interval: 10m
  path: ./
  prune: true
  timeout: 30s
  sourceRef: {kind: GitRepository, name: demo}
  postBuild: {substitute: {text: one}}
  healthChecks: [{apiVersion: example.com/v1, kind: Widget, name: blue, namespace: demo}]
YAML
  revision r1
  eventually 40 is_ready kustomization/demo True "main@sha1:0*1"
  expect "what was applied" one text
  expect "an object of a definition of the same source" "7 plain" demo widget blue -o 'jsonpath={.spec.size} {.spec.finish}'
  demo configmap settings -o 'jsonpath={.metadata.managedFields[*].manager} {.metadata.managedFields[*].operation}{"\n"}' --show-managed-fields >answers
  kubectl -n flux-system get kustomization demo -o 'jsonpath={range .status.inventory.entries[*]}{.id} {.v}{"\n"}{end}' | sort >>answers

  # A second apply changes nothing, as a dry run shows.
  demo configmap/settings deployment/front service/front -o 'jsonpath={.items[*].metadata.resourceVersion}' >before
  kubectl -n flux-system patch kustomization demo --type=merge -p '{"spec": {"postBuild": {"substitute": {"text": "two"}}}}' >/dev/null
  eventually 30 corrected
  expect "what did not change" "$(cut -d' ' -f2- before)" demo configmap/settings deployment/front service/front -o 'jsonpath={.items[1:].metadata.resourceVersion}'

  kubectl -n demo patch configmap settings --type=merge -p '{"data": {"text": "mine", "own": "x"}}' >/dev/null
  kubectl -n demo scale deployment front --replicas 5 >/dev/null
  reconcile kustomization/demo
  eventually 30 corrected
  eventually 10 prints '^0$' demo deployment front -o 'jsonpath={.spec.replicas}'
  demo configmap settings -o 'jsonpath={.data}{"\n"}' >>answers

  # Objects that cannot be applied are reported, and nothing of them remains.
  cp source/objects.yaml kept.yaml
  sed -i 's/port: 80}/port: 80000}/' source/objects.yaml
  revision r2
  eventually 40 is_ready kustomization/demo False "main@sha1:0*2"
  revision_of kustomization/demo >>answers
  sed '/kind: Service/,$d' kept.yaml | sed '$d' | sed '$d' >source/objects.yaml
  revision r3
  eventually 40 is_ready kustomization/demo True "main@sha1:0*3"
  eventually 20 has_no -n demo service/front
  expect "what stays" deployment.apps/front demo deployment front -o name
  kubectl -n flux-system delete kustomization demo --timeout=30s >/dev/null || fail "the finalizer stays"
  eventually 20 has_no -n demo configmap/settings
  kubectl -n flux-system get events --field-selector involvedObject.name=demo -o 'jsonpath={range .items[*]}{.type} {.reason}{"\n"}{end}' | sort -u >>answers
}
