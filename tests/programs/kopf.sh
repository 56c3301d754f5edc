# kopf: an operator that is killed at several positions and restarted. The server must collect the dependents of its objects.
# shellcheck shell=bash disable=SC2034,SC2154
program=python/bin/kopf
. "$parts/clients.sh"
portico_flags=(--controllers garbage-collector-controller)
# Reads depend on timing.
verbs=(create update patch delete)
# The operator is started twelve times.
seconds=400

# A kube-apiserver alone collects no garbage: the script deletes dependents like kube-controller-manager.
collect() {
  local page owner owners
  while sleep 0.5; do
    kubectl -n kopf get configmaps -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.ownerReferences[0].uid}{"\n"}{end}' >owned
    owners=$(kubectl -n kopf get tomes -o 'jsonpath={.items[*].metadata.uid}') || continue
    while read -r page owner; do
      [ -z "$owner" ] || [[ $owners == *"$owner"* ]] || kubectl -n kopf delete configmap "$page"
    done <owned
  done
}

run() {
  if [ "$server" = upstream ]; then collect >collected.out 2>&1 & running+=($!); fi
  client "$programs/python/bin/python" -B "$scripts/python/operated.py"
}
