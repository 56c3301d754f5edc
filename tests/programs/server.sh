# A fresh server for one program: Portico, or a kube-apiserver with its etcd. KUBECONFIG is its administrator's.
# shellcheck shell=bash

# Starts a separate etcd on a free port; its address is in `etcd_address`.
start_etcd() {
  local peers
  etcd_address=http://127.0.0.1:$(free_port)
  peers=http://127.0.0.1:$(free_port)
  "${ETCD:-$programs/etcd}" --data-dir "$scratch/etcd-$RANDOM" --listen-client-urls "$etcd_address" --advertise-client-urls "$etcd_address" \
    --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers" >"$scratch/etcd.out" 2>&1 &
  running+=($!)
  eventually 30 curl -sf "$etcd_address/health"
}

authority() { openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.crt" 2>/dev/null; }

# signed AUTHORITY NAME SUBJECT
signed() {
  openssl req -new -newkey rsa:2048 -nodes -subj "$3" -keyout "$2.key" -out "$2.csr" 2>/dev/null
  openssl x509 -req -in "$2.csr" -CA "$1.crt" -CAkey "$1.key" -CAcreateserial -days 2 \
    -extfile <(echo "extendedKeyUsage=clientAuth,serverAuth${4:+$'\n'subjectAltName=$4}") -out "$2.crt" 2>/dev/null
}

# Flags with which a kube-apiserver sends identity headers to aggregated API servers; Portico does so without flags.
front_proxy=(--requestheader-client-ca-file front-ca.crt --requestheader-allowed-names front-proxy
  --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group
  --requestheader-extra-headers-prefix X-Remote-Extra- --proxy-client-cert-file front-proxy.crt
  --proxy-client-key-file front-proxy.key)

make_front_proxy() {
  authority front-ca
  signed front-ca front-proxy /CN=front-proxy
}

# A program may add flags, for both servers or for Portico.
server_flags=()
portico_flags=()
start_portico() {
  "$binary" --data-dir "$scratch/data" --addresses-file "$scratch/addresses" --secure-port 0 --control-address 127.0.0.1:0 \
    --enable-aggregator-routing --allow-privileged "${server_flags[@]}" "${portico_flags[@]}" >"$scratch/server.out" 2>&1 &
  running+=($!)
  eventually 60 test -f "$scratch/addresses"
  export KUBECONFIG=$scratch/data/admin.kubeconfig
}

start_upstream() {
  local port
  port=$(free_port)
  start_etcd
  authority ca
  make_front_proxy
  signed ca apiserver /CN=apiserver IP:127.0.0.1,IP:10.0.0.1
  signed ca admin /O=system:masters/CN=admin
  openssl genrsa -out accounts.key 2048 2>/dev/null
  # No controllers run here, so that no controller creates the accounts of pods.
  "$KUBE_APISERVER" --etcd-servers "$etcd_address" --secure-port "$port" --bind-address 127.0.0.1 --advertise-address 10.99.0.1 \
    --authorization-mode Node,RBAC --client-ca-file ca.crt --tls-cert-file apiserver.crt --tls-private-key-file apiserver.key \
    --service-account-key-file accounts.key --service-account-signing-key-file accounts.key \
    --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.0.0.0/16 \
    "${front_proxy[@]}" --enable-aggregator-routing --allow-privileged "${server_flags[@]}" \
    --disable-admission-plugins ServiceAccount >"$scratch/server.out" 2>&1 &
  running+=($!)
  export KUBECONFIG=$scratch/admin.kubeconfig
  kubectl config set-cluster upstream --server "https://127.0.0.1:$port" --certificate-authority ca.crt --embed-certs >/dev/null
  kubectl config set-credentials admin --client-certificate admin.crt --client-key admin.key --embed-certs >/dev/null
  kubectl config set-context upstream --cluster upstream --user admin >/dev/null
  kubectl config use-context upstream >/dev/null
  eventually 60 kubectl get --raw /readyz
  eventually 30 kubectl get namespace default
}
