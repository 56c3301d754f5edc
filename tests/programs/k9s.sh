# k9s in a terminal: tables of several kinds, a description, an object's YAML; then it quits.
# shellcheck shell=bash disable=SC2034,SC2154,SC2086
program=k9s

run() {
  # With a kube-apiserver, k9s does not know definitions of the last minute.
  local objects=objects
  [ "$server" = portico ] || objects=
  export HOME=$scratch XDG_CONFIG_HOME=$scratch XDG_DATA_HOME=$scratch XDG_STATE_HOME=$scratch
  namespace shop
  kubectl config set-context --current --namespace shop >/dev/null
  kubectl create -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-one"},
    "spec": {"automountServiceAccountToken": false, "containers": [{"name": "app", "image": "i"}]}}'
  kubectl create deployment front --image i --replicas 2 >/dev/null
  kubectl create -f "$parts/chart/crds/widgets.yaml" >/dev/null
  kubectl wait --for=condition=Established crd/widgets.example.com --timeout=10s >/dev/null
  kubectl create -f - >/dev/null <<<'{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "blue"}, "spec": {"size": 7}}'
  # k9s reads discovery once.
  eventually 20 prints widgets kubectl get --raw /apis/example.com/v1
  # k9s shares kubectl's discovery cache.
  rm -rf "$scratch/.kube/cache"
  "$programs/python/bin/python" "$parts/k9s.py" "$programs/k9s" "$scratch/k9s.log" "$scratch/screen" $objects || fail "k9s"
}
