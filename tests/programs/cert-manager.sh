# cert-manager: its webhook, CA injector and controller, with the definitions, roles and webhook configurations of its chart. The webhook
# mutates, accepts and refuses objects, a certificate is issued, and writes during an outage of the webhook use its failure policy.
# shellcheck shell=bash disable=SC2034,SC2154
program=cert-manager-controller

start_webhook() {
  start webhook "$programs/cert-manager-webhook" --kubeconfig "$account" --secure-port "$port" --healthz-port 0 \
    --dynamic-serving-ca-secret-namespace cert-manager --dynamic-serving-ca-secret-name cert-manager-webhook-ca \
    --dynamic-serving-dns-names cert-manager-webhook.cert-manager.svc
  webhook=$!
}

issuer() { kubectl apply -f - <<<'{"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "self"}, "spec": {"selfSigned": {}}}'; }

# certify NAME [, "field": value …]
certify() {
  kubectl apply -f - <<<"{\"apiVersion\": \"cert-manager.io/v1\", \"kind\": \"Certificate\", \"metadata\": {\"name\": \"$1\"},
    \"spec\": {\"secretName\": \"$1\", \"issuerRef\": {\"name\": \"self\"}${2:-}}}"
}

# refused WHY: checks the refusal of a certificate without names.
refused() { ! certify bad >refusal 2>&1 && grep -q "$1" refusal; }
# Stores the message of the refusal; the port varies.
keep_refusal() { sed -E 's/(10\.99\.0\.1):[0-9]+/\1:PORT/' refusal >>answers; }

conditions() { kubectl get "$1" -o 'jsonpath={range .items[*].status.conditions[*]}{.type} {.status} {.reason} {.message}{"\n"}{end}' | sort; }

run() {
  local account webhook others
  port=$(free_port)
  kubectl create namespace cert-manager >/dev/null
  kubectl apply -f "$programs/cert-manager.d/objects.yaml" >/dev/null
  kubectl wait --for=condition=Established crd --all --timeout=20s >/dev/null
  backend cert-manager cert-manager-webhook "$port"
  account=$(account cert-manager cert-manager-cainjector)
  start cainjector "$programs/cert-manager-cainjector" --kubeconfig "$account" --namespace cert-manager --leader-election-namespace cert-manager
  account=$(account cert-manager cert-manager)
  start controller "$programs/cert-manager-controller" --kubeconfig "$account" --leader-election-namespace cert-manager \
    --cluster-resource-namespace cert-manager --metrics-listen-address 127.0.0.1:0
  others=("${watched[@]}")
  account=$(account cert-manager cert-manager-webhook)
  start_webhook
  eventually 60 issuer
  certify good ', "dnsNames": ["a.example.com"]' >/dev/null || fail "a certificate is refused"
  kubectl wait --for=condition=Ready certificate/good --timeout=60s >/dev/null || fail "no certificate is issued"
  kubectl get secret good -o 'jsonpath={.data.tls\.crt}' | base64 -d | openssl x509 -noout -text | grep -q DNS:a.example.com ||
    fail "the certificate has another name"
  conditions issuers >answers
  conditions certificates >>answers
  conditions certificaterequests | sed -E 's/[0-9]{4}-[^ ]*/TIME/g' >>answers
  # The mutating webhook records the user who requests a certificate.
  kubectl get certificaterequests -o 'jsonpath={range .items[*]}{.metadata.annotations.cert-manager\.io/certificate-name} {.spec.username} {.spec.groups} {.spec.usages}{"\n"}{end}' >>answers
  kubectl get secret good -o 'jsonpath={.type} {.metadata.annotations} {.metadata.labels}{"\n"}' >>answers
  kubectl get events -o 'jsonpath={range .items[*]}{.involvedObject.kind} {.type} {.reason}{"\n"}{end}' | sort -u >>answers

  refused 'webhook "webhook.cert-manager.io" denied the request: spec: Invalid value' || fail "what is invalid is not refused"
  keep_refusal
  kill "$webhook"
  wait "$webhook" 2>/dev/null || true
  watched=("${others[@]}")
  refused 'failed calling webhook "webhook.cert-manager.io"' || fail "a webhook that is away does not fail the write"
  keep_refusal
  kubectl create configmap unconcerned >/dev/null || fail "what no webhook matches is refused"
  start_webhook
  eventually 60 refused 'denied the request'
}
