# Crossplane's core: it installs its definitions and webhooks, composite resources are defined and served, an instance reports a reason
# while there is no function, and is deleted.
# shellcheck shell=bash disable=SC2034,SC2154
program=crossplane

condition() { kubectl get "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status} {.status.conditions[?(@.type==\"$2\")].reason}{\"\\n\"}"; }

run() {
  local account
  kubectl create namespace crossplane-system >/dev/null
  account=$(account crossplane-system crossplane)
  kubectl create clusterrolebinding crossplane --clusterrole cluster-admin --serviceaccount crossplane-system:crossplane >/dev/null
  export POD_NAMESPACE=crossplane-system POD_SERVICE_ACCOUNT=crossplane
  # Its chart creates empty Secrets, which it fills.
  export TLS_CA_SECRET_NAME=root-ca TLS_SERVER_SECRET_NAME=tls-server TLS_CLIENT_SECRET_NAME=tls-client
  export TLS_SERVER_CERTS_DIR=$scratch/tls-server TLS_CLIENT_CERTS_DIR=$scratch/tls-client
  local secret
  for secret in root-ca tls-server tls-client; do kubectl -n crossplane-system create secret generic "$secret" >/dev/null; done
  # A cluster would restart it until its definitions are served.
  initialized() { KUBECONFIG=$account CRDS_PATH=$programs/crossplane.d/crds "$programs/crossplane" core init --webhook-enabled=false >init.log 2>&1; }
  eventually 40 initialized
  kubectl get crd -o name | grep -c crossplane.io >answers
  mkdir -p cache tls-server tls-client
  for secret in tls-server tls-client; do
    for file in tls.crt tls.key ca.crt; do
      kubectl -n crossplane-system get secret "$secret" -o "jsonpath={.data.${file/./\\.}}" | base64 -d >"$secret/$file"
    done
  done
  KUBECONFIG=$account start crossplane "$programs/crossplane" core start --enable-webhooks=false --xpkg-cache-dir cache \
    --metrics-port "$(free_port)" --health-probe-port "$(free_port)"
  kubectl create -f - >/dev/null <<'YAML'
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: apps.example.com}
spec:
  scope: Namespaced
  group: example.com
  names: {kind: App, plural: apps}
  versions:
    - name: v1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, required: [image], properties: {image: {type: string}}}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: apps}
spec:
  compositeTypeRef: {apiVersion: example.com/v1, kind: App}
  mode: Pipeline
  pipeline: [{step: make, functionRef: {name: function-make}}]
YAML
  kubectl wait --for=condition=Established xrd/apps.example.com --timeout=60s >/dev/null || fail "the XRD is not established"
  eventually 20 prints '^compositionrevision' kubectl get compositionrevisions -o name
  kubectl get crd apps.example.com -o 'jsonpath={.spec.names.categories} {.spec.versions[0].additionalPrinterColumns[*].name}{"\n"}' >>answers
  made() { kubectl -n default create -f - <<<'{"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "one"}, "spec": {"image": "i"}}'; }
  eventually 20 made
  ! kubectl -n default create -f - >>answers 2>&1 <<<'{"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "two"}, "spec": {}}' || fail "what is required may be missing"
  eventually 40 prints '^False' condition app/one Synced
  condition app/one Synced >>answers
  kubectl -n default delete app one --timeout=30s >/dev/null || fail "the finalizer stays"
  kubectl delete xrd apps.example.com --timeout=40s >/dev/null || fail "the definition's finalizer stays"
  eventually 20 prints '^$' kubectl get crd apps.example.com --ignore-not-found -o name
}
