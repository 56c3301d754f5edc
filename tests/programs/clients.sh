# Shared parts of client libraries: each runs a script of this repository, and its requests and responses are compared through the server's
# audit log.
# shellcheck shell=bash disable=SC2034,SC2154

scripts=$parts/..
server_flags=(--audit-policy-file "$parts/audit-policy.yaml" --audit-log-path audit.json)
# Objects of controllers would appear in lists.
portico_flags=(--controllers "")

# Verbs of the compared requests; all if empty.
verbs=()

# client COMMAND …: runs a command to its end, with the administrator's kubeconfig.
client() {
  "$@" "$KUBECONFIG" >said.out 2>"$name.log" || { cat said.out >&2; fail "does not do its work"; }
  python3 -B "$parts/audited.py" audit.json "${verbs[@]}" >answers
  [ -s answers ] || fail "nothing of it is in the audit log"
}
