# Functions for all programs: start processes, wait for conditions, fail with the relevant log lines.
# shellcheck shell=bash

# Kills all processes: a graceful end of a kube-apiserver would wait for its etcd.
finish() {
  [ ${#running[@]} -eq 0 ] || kill -KILL "${running[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  [ -n "${PORTICO_PROGRAMS_KEEP:-}" ] && cp -r "$scratch/." "$PORTICO_PROGRAMS_KEEP" 2>/dev/null
  rm -rf "$scratch"
}

fail() {
  echo "$name: $1" >&2
  tail -v -n 8 "$scratch"/*.log >&2 2>/dev/null
  exit 1
}

# eventually SECONDS COMMAND …: repeats a command until it succeeds.
eventually() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >"$scratch/last-try" 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { cat "$scratch/last-try" >&2; fail "not in time: $*"; }
    sleep 0.2
  done
}

# expect WHAT WANTED COMMAND …: fails unless the command prints exactly this.
expect() {
  local what=$1 wanted=$2 got
  shift 2
  got=$("$@") || fail "$what: $* failed"
  [ "$got" = "$wanted" ] || fail "$what: '$got' is not '$wanted'"
}

# prints PATTERN COMMAND …: fails unless the command succeeds and its output matches.
prints() {
  local pattern=$1 got
  shift
  got=$("$@" 2>&1) || { echo "$got"; return 1; }
  grep -q -- "$pattern" <<<"$got" || { echo "$got"; return 1; }
}

# start NAME PROGRAM …: starts a program that runs until the end; its output is in NAME.log, and checked for warnings.
start() {
  local log=$1
  shift
  "$@" >>"$scratch/$log.log" 2>&1 &
  running+=($!)
  watched+=("$!")
}
watched=()

# A program that has ended has not done its work.
still_running() {
  local pid
  for pid in "${watched[@]}"; do kill -0 "$pid" 2>/dev/null || fail "a program ended by itself"; done
}

free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# namespace NAME: creates a namespace in which pods can be created, with their account if no controller creates it.
namespace() {
  kubectl get namespace "$1" >/dev/null 2>&1 || kubectl create namespace "$1" >/dev/null
  kubectl -n "$1" create serviceaccount default >/dev/null 2>&1 || eventually 10 kubectl -n "$1" get serviceaccount default
}

# account NAMESPACE NAME: prints the path of a kubeconfig of this service account, creating the account if necessary.
account() {
  local path=$scratch/$1-$2.kubeconfig
  kubectl get namespace "$1" >/dev/null 2>&1 || kubectl create namespace "$1" >/dev/null
  kubectl -n "$1" get serviceaccount "$2" >/dev/null 2>&1 || kubectl -n "$1" create serviceaccount "$2" >/dev/null
  kubectl config view --raw --minify >"$path"
  kubectl --kubeconfig "$path" config unset "users" >/dev/null
  kubectl --kubeconfig "$path" config set-credentials account --token "$(kubectl -n "$1" create token "$2")" >/dev/null
  kubectl --kubeconfig "$path" config set-context --current --user account >/dev/null
  echo "$path"
}

# certificate NAME HOST: creates a self-signed certificate, NAME.crt, and its key.
certificate() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$2" -addext "subjectAltName=DNS:$2" -keyout "$1.key" -out "$1.crt" 2>/dev/null
}

# backend NAMESPACE SERVICE PORT: creates a Service whose endpoint is this port of this host.
backend() {
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Service
metadata: {name: $2, namespace: $1}
spec: {ports: [{name: https, port: 443, targetPort: $3}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: $2-here, namespace: $1, labels: {kubernetes.io/service-name: $2, endpointslice.kubernetes.io/managed-by: tests}}
addressType: IPv4
endpoints: [{addresses: [10.99.0.1], conditions: {ready: true}}]
ports: [{name: https, port: $3, protocol: TCP}]
YAML
}
