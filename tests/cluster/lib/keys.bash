# The cluster's certificates and kubeconfigs: new ones for every cluster, gone with it.

# Makes $STATE/keys and $STATE/kubeconfig. Every component is the user that Kubernetes' own roles expect.
make_keys() {
    local alternatives="DNS:localhost,IP:127.0.0.1,IP:$NODE_IP,IP:$API_SERVICE_IP" name
    for name in kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local; do
        alternatives+=",DNS:$name"
    done
    mkdir -m 700 "$STATE/keys"
    cd "$STATE/keys" || return
    authority ca
    certificate ca apiserver /CN=kube-apiserver "subjectAltName=$alternatives" extendedKeyUsage=serverAuth
    certificate ca apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
    certificate ca admin /O=system:masters/CN=admin
    certificate ca controller-manager /CN=system:kube-controller-manager
    certificate ca scheduler /CN=system:kube-scheduler
    certificate ca proxy /CN=system:kube-proxy
    # The API server shows this one to aggregated API servers, which then believe whom it says it speaks for.
    authority front-proxy-ca
    certificate front-proxy-ca front-proxy-client /CN=front-proxy-client
    key service-account
    openssl pkey -in service-account.key -pubout -out service-account.pub
    for name in controller-manager scheduler proxy; do
        kubeconfig "$NODE_IP" "$name" >"$name.kubeconfig"
    done
    (umask 077 && kubeconfig "$NODE_IP" admin >"$STATE/kubeconfig")
    cd - >/dev/null || return
    node_keys 1
}

# node_keys K: what the kubelet of node K needs.
node_keys() {
    local name
    name=$(node_name "$1")
    (cd "$STATE/keys" && certificate ca "$name" "/O=system:nodes/CN=system:node:$name" &&
        kubeconfig "$NODE_IP" "$name" >"$name.kubeconfig")
}

key() {
    openssl ecparam -genkey -noout -name prime256v1 -out "$1.key"
}

# authority NAME: a certificate that signs others.
authority() {
    key "$1"
    openssl req -x509 -days 3650 -key "$1.key" -out "$1.crt" -subj "/CN=$1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}

# certificate AUTHORITY NAME SUBJECT [EXTENSION…]: a client's certificate, unless the extensions say otherwise.
certificate() {
    local authority=$1 name=$2 subject=$3 extension
    shift 3
    [ $# -gt 0 ] || set -- extendedKeyUsage=clientAuth
    local extensions=()
    for extension in "$@"; do
        extensions+=(-addext "$extension")
    done
    key "$name"
    openssl req -x509 -days 3650 -CA "$authority.crt" -CAkey "$authority.key" \
        -key "$name.key" -out "$name.crt" -subj "$subject" \
        -addext basicConstraints=critical,CA:FALSE -addext keyUsage=critical,digitalSignature "${extensions[@]}"
}

# kubeconfig ADDRESS USER: everything is in the file, so that it can be copied.
kubeconfig() {
    cat <<END
apiVersion: v1
kind: Config
clusters:
  - name: olmkit
    cluster:
      server: https://$1:6443
      certificate-authority-data: $(base64 -w0 ca.crt)
users:
  - name: $2
    user:
      client-certificate-data: $(base64 -w0 "$2.crt")
      client-key-data: $(base64 -w0 "$2.key")
contexts:
  - name: olmkit
    context: {cluster: olmkit, user: $2}
current-context: olmkit
END
}
