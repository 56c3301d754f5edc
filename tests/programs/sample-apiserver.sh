# sample-apiserver: an aggregated API server that delegates authentication and authorization to this server, used through kubectl.
# shellcheck shell=bash disable=SC2034,SC2154
program=sample-apiserver

kind=v1alpha1.wardle.example.com

start_it() {
  start sample-apiserver "$programs/sample-apiserver" --etcd-servers "$etcd_address" --secure-port "$port" --bind-address 10.99.0.1 \
    --tls-cert-file api.crt --tls-private-key-file api.key \
    --kubeconfig "$account" --authentication-kubeconfig "$account" --authorization-kubeconfig "$account"
  serving=$!
}

is_available() { kubectl wait --for=condition=Available="$1" "apiservice/$kind" --timeout=1s; }
flunders() { kubectl get flunders -o name "$@"; }

run() {
  local manifests=$programs/sample-apiserver.d account serving
  port=$(free_port)
  start_etcd
  certificate api api.wardle.svc
  account=$(account wardle apiserver)
  kubectl apply -f "$manifests/rbac.yaml" -f "$manifests/rbac-bind.yaml" -f "$manifests/auth-delegator.yaml" -f "$manifests/auth-reader.yaml" >/dev/null
  # Kinds that are newer than those manifests.
  kubectl create clusterrole newer-policies --verb list,watch \
    --resource mutatingadmissionpolicies.admissionregistration.k8s.io,mutatingadmissionpolicybindings.admissionregistration.k8s.io >/dev/null
  kubectl create clusterrolebinding newer-policies --clusterrole newer-policies --serviceaccount wardle:apiserver >/dev/null
  start_it
  backend wardle api "$port"
  # All of the manifest except for the verification of certificates.
  kubectl patch --local -f "$manifests/apiservice.yaml" --type=merge -o yaml \
    -p "{\"spec\": {\"insecureSkipTLSVerify\": null, \"caBundle\": \"$(base64 -w0 api.crt)\"}}" | kubectl create -f - >/dev/null
  eventually 40 is_available true
  eventually 20 flunders
  kubectl api-resources --api-group wardle.example.com --no-headers -o name | sort >answers
  kubectl explain flunder.spec >>answers || fail "kubectl explain"

  kubectl apply -f "$manifests/01-flunder.yaml" >/dev/null || fail "no flunder is created"
  expect "applied again" "flunder.wardle.example.com/my-first-flunder unchanged" kubectl apply -f "$manifests/01-flunder.yaml"
  kubectl label flunder my-first-flunder seen=yes >/dev/null || fail "kubectl label"
  kubectl get flunders -l seen=yes --no-headers -o 'custom-columns=:.metadata.name,:.metadata.labels' >>answers
  timeout 20 kubectl get flunders -w -o name >watched & watching=$!
  eventually 10 prints my-first cat watched
  kubectl create -f - >/dev/null <<<'{"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "second"}}'
  eventually 10 prints second cat watched
  kill "$watching"
  # Policies of this server apply to its objects, and so does its own admission.
  kubectl create -f - >/dev/null <<<'{"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}, "disallowedFlunders": ["banned"]}'
  banned() { ! kubectl create --dry-run=server -f - <<<'{"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "banned"}}'; }
  eventually 10 banned

  # Permissions are configured here, and reviewed by the sample API server.
  ! kubectl --as jane get flunders >>answers 2>&1 || fail "everybody reads flunders"
  kubectl create clusterrole flunders --resource flunders.wardle.example.com --verb get,list >/dev/null
  kubectl create clusterrolebinding flunders --clusterrole flunders --user jane >/dev/null
  eventually 20 flunders --as jane
  ! kubectl --as jane delete flunder second >>answers 2>&1 || fail "a reader deletes"
  kubectl delete flunders --all >>answers || fail "kubectl delete"
  expect "after a delete" "" flunders

  # The sample API server stops, and starts again.
  kill "$serving"
  eventually 40 is_available false
  ! kubectl get flunders >/dev/null 2>&1 || fail "what is away answers"
  kubectl create configmap unconcerned >/dev/null || fail "others are concerned"
  watched=()
  start_it
  eventually 60 is_available true
  eventually 20 flunders
}
