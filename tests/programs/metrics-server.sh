# metrics-server: an aggregated API server with its released manifests; `kubectl top` prints the data of a kubelet.
# shellcheck shell=bash disable=SC2034,SC2154
program=metrics-server

make_node() {
  kubectl create -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one", "labels": {"kubernetes.io/hostname": "one"}}}'
  kubectl patch node one --subresource=status --type=merge >/dev/null -p "{\"status\": {\"capacity\": {\"cpu\": \"2\", \"memory\": \"1Gi\"},
    \"allocatable\": {\"cpu\": \"2\", \"memory\": \"1Gi\"}, \"addresses\": [{\"type\": \"InternalIP\", \"address\": \"10.99.0.1\"}],
    \"daemonEndpoints\": {\"kubeletEndpoint\": {\"Port\": $1}}, \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}"
  kubectl create -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"nodeName": "one", "automountServiceAccountToken": false, "containers": [{"name": "app", "image": "i"}, {"name": "side", "image": "i"}]}}'
  kubectl patch pod web --subresource=status --type=merge -p '{"status": {"phase": "Running"}}' >/dev/null
}

is_available() { kubectl wait --for=condition=Available apiservice/v1beta1.metrics.k8s.io --timeout=1s; }
top() { kubectl top "$@" --no-headers; }

run() {
  local manifests=$programs/metrics-server.d account port kubelet
  kubelet=$(free_port)
  certificate kubelet 10.99.0.1
  certificate api metrics-server.kube-system.svc
  python3 "$parts/kubelet.py" 10.99.0.1 "$kubelet" kubelet.crt kubelet.key 2>kubelet.out & running+=($!)
  namespace default
  make_node "$kubelet"
  account=$(account kube-system metrics-server)
  kubectl apply -f "$manifests/rbac.yaml" >/dev/null 2>&1
  port=$(free_port)
  start metrics-server "$programs/metrics-server" --secure-port "$port" --bind-address 10.99.0.1 --kubeconfig "$account" \
    --authentication-kubeconfig "$account" --authorization-kubeconfig "$account" --tls-cert-file api.crt --tls-private-key-file api.key \
    --kubelet-insecure-tls --kubelet-use-node-status-port --kubelet-preferred-address-types InternalIP --metric-resolution 10s --kubelet-request-timeout 5s
  backend kube-system metrics-server "$port"
  kubectl patch --local -f "$manifests/apiservice.yaml" --type=merge -o yaml \
    -p "{\"spec\": {\"insecureSkipTLSVerify\": null, \"caBundle\": \"$(base64 -w0 api.crt)\"}}" | kubectl create -f - >/dev/null
  eventually 40 is_available
  eventually 60 top pod web
  kubectl top node one --no-headers | awk '{ print $1, $4 }' >answers
  kubectl top pod web --containers --no-headers | awk '{ print $1, $2, $4 }' | sort >>answers
  kubectl top pod -l app=web -A --no-headers | awk '{ print $1, $2, $4 }' >>answers
  # Only users with the role `view` may see it: the roles of the chart are aggregated into `view`.
  ! kubectl --as jane -n default top pod >>answers 2>&1 || fail "everybody reads"
  kubectl -n default create rolebinding jane --clusterrole view --user jane >/dev/null
  [ $server = upstream ] || eventually 20 top --as jane -n default pod web
  kubectl get --raw /apis/metrics.k8s.io/v1beta1 | python3 -c 'import json, sys; print(sorted(r["name"] for r in json.load(sys.stdin)["resources"]))' >>answers
}
