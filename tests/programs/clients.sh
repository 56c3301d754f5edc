# What the parts of client libraries share: a script of this repository on each, and what it asks for and is answered, by the server's
# audit log.
# shellcheck shell=bash disable=SC2034,SC2154

scripts=$parts/..
server_flags=(--audit-policy-file "$parts/audit-policy.yaml" --audit-log-path audit.json)
# What controllers make would be in what is listed.
portico_flags=(--controllers "")

# Which requests are compared: all, if none is named.
verbs=()

# client COMMAND …: to its end, with the administrator's kubeconfig.
client() {
  "$@" "$KUBECONFIG" >said.out 2>"$name.log" || { cat said.out >&2; fail "does not do its work"; }
  python3 -B "$parts/audited.py" audit.json "${verbs[@]}" >answers
  [ -s answers ] || fail "nothing of it is in the audit log"
}
