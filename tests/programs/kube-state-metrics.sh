# kube-state-metrics: an object of each kind, and of a definition, has series; these equal those with a kube-apiserver.
# shellcheck shell=bash disable=SC2034,SC2154
program=kube-state-metrics
# As with a kube-apiserver alone: objects of controllers would be counted as well.
portico_flags=(--controllers "" --disable-admission-plugins ServiceAccount)

# The objects that the Go client's tests create, with names. The first line marks that the file is no JSON stream.
objects() {
  echo '# objects'
  sed 's/generateName: a-/name: sample/' "$parts/../go/samples.yaml"
}

series() { curl -sf "http://127.0.0.1:$port/metrics"; }

# Series of these objects, without variable parts.
of_samples() {
  series | grep -E '[{,](namespace="shop"|node="sample"|name="sample|persistentvolume="sample"|storageclass="sample"|customresource_)' |
    grep -vE '_created|_resource_version|_owner|(start|completion|transition|schedule|renew|deletion)_?time|kube_secret_|kube_serviceaccount_' |
    sed -E -e 's/uid="[^"]*"/uid=""/' -e 's/cluster_ip="[^"]*"/cluster_ip=""/' | sort
}

# Kinds are read one after the other: wait until all series exist, or, while recording, until no series is added.
settled() {
  local try
  for try in 1 2 3 4 5; do
    [ ! -f answers ] || mv answers earlier
    cat create.out <(of_samples) >answers
    if [ "$server" = portico ]; then diff "$parts/$name.answers" answers; return; fi
    cmp earlier answers || return 1
  done
}

counted() { prints '^widget_size{.*name="blue".* 7' series; }

run() {
  local manifests=$programs/kube-state-metrics.d config=custom.yaml kubeconfig telemetry
  port=$(free_port)
  telemetry=$(free_port)
  namespace shop
  kubectl config set-context --current --namespace shop >/dev/null
  objects | kubectl create --validate=false -f - >create.out 2>&1 || true
  kubectl create -f "$parts/chart/crds/widgets.yaml" >/dev/null
  kubectl create -f "$manifests/cluster-role.yaml" -f "$manifests/cluster-role-binding.yaml" -f "$manifests/service-account.yaml" >/dev/null
  kubectl create clusterrole widgets --resource widgets.example.com,customresourcedefinitions.apiextensions.k8s.io --verb list,watch,get >/dev/null
  kubectl create clusterrolebinding widgets --clusterrole widgets --serviceaccount kube-system:kube-state-metrics >/dev/null
  kubeconfig=$(account kube-system kube-state-metrics)
  cat >$config <<'YAML'
kind: CustomResourceStateMetrics
spec:
  resources:
    - groupVersionKind: {group: example.com, kind: "*", version: v1}
      metricNamePrefix: ""
      labelsFromPath: {name: [metadata, name]}
      metrics: [{name: widget_size, help: sizes, each: {type: Gauge, gauge: {path: [spec, size]}}}]
YAML
  start kube-state-metrics "$programs/kube-state-metrics" --kubeconfig "$kubeconfig" --host 127.0.0.1 --port "$port" \
    --telemetry-host 127.0.0.1 --telemetry-port "$telemetry" --custom-resource-state-config-file $config
  eventually 20 curl -sf "http://127.0.0.1:$telemetry/readyz"
  eventually 20 prints '^kube_deployment_spec_replicas{namespace="shop",deployment="sample"} ' series
  # Created and refused objects are counted as well.
  sed -i 's/error when creating "STDIN": //' create.out
  eventually 30 settled
  # Later changes: a scaled Deployment, an object of a definition, a deleted object.
  kubectl scale deployment sample --replicas 9 >/dev/null
  eventually 10 prints '^kube_deployment_spec_replicas{namespace="shop",deployment="sample"} 9' series
  kubectl create -f - >/dev/null <<<'{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "blue"}, "spec": {"size": 7}}'
  eventually 20 counted
  kubectl delete deployment sample >/dev/null
  gone() { ! series | grep -q 'kube_deployment_spec_replicas{.*deployment="sample"'; }
  eventually 10 gone
}
