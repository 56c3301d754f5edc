# Shared parts of Flux's controllers: their definitions, and artifacts in the form of source-controller.
# shellcheck shell=bash disable=SC2154

# start_controller NAME: starts a controller with an account that has all permissions, as in Flux.
start_controller() {
  local account
  kubectl create -f "$programs/flux.d" >/dev/null
  kubectl wait --for=condition=Established crd --all --timeout=20s >/dev/null
  account=$(account flux-system "$1")
  kubectl create clusterrolebinding "$1" --clusterrole cluster-admin --serviceaccount "flux-system:$1" >/dev/null
  mkdir -p artifacts
  artifacts=$(free_port)
  python3 -m http.server "$artifacts" --bind 127.0.0.1 --directory artifacts >artifacts.out 2>&1 & running+=($!)
  # Leases are in the namespace of its pod, which does not exist here: no election.
  RUNTIME_NAMESPACE=flux-system TMPDIR=$scratch KUBECONFIG=$account start "$1" "$programs/$1" --watch-all-namespaces --log-level=info --log-encoding=json \
    --metrics-addr "127.0.0.1:$(free_port)" --health-addr "127.0.0.1:$(free_port)" --interval-jitter-percentage 0
}

# publish RESOURCE/NAME FILE REVISION: publishes an artifact of a source. Writes the status that source-controller would write.
publish() {
  cp "$2" artifacts/
  kubectl -n flux-system patch "$1" --subresource=status --type=merge >/dev/null -p "{\"status\": {\"observedGeneration\": 1,
    \"artifact\": {\"url\": \"http://127.0.0.1:$artifacts/$(basename "$2")\", \"path\": \"$(basename "$2")\", \"revision\": \"$3\",
    \"digest\": \"sha256:$(sha256sum "$2" | cut -d' ' -f1)\", \"size\": $(stat -c %s "$2"), \"lastUpdateTime\": \"$(date -u +%FT%TZ)\"},
    \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\", \"reason\": \"Succeeded\", \"message\": \"stored\", \"lastTransitionTime\": \"$(date -u +%FT%TZ)\"}]}}"
}

# reconcile KIND/NAME: requests a reconciliation as `flux reconcile` does.
reconcile() { kubectl -n flux-system annotate --overwrite "$1" "reconcile.fluxcd.io/requestedAt=$(date +%s%N)" >/dev/null; }
# is_ready KIND/NAME STATUS REVISION
revision_of() { kubectl -n flux-system get "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.lastAttemptedRevision} {.status.conditions[?(@.type=="Ready")].message}'; }
is_ready() { prints "^$2 $3" revision_of "$1"; }
