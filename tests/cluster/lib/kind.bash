# A cluster by kind, with a registry beside it, wired as kind's documentation says: nodes pull from the same name that
# images were pushed to. https://kind.sigs.k8s.io/docs/user/local-registry/

# The newest node image that Docker has, of any minor version of Kubernetes or of the one in KUBERNETES; and an image of a registry.
kind_node_image() {
    docker images --format '{{.Repository}}:{{.Tag}}' kindest/node 2>/dev/null | grep -F ":v${KUBERNETES:+$KUBERNETES.}" | sort -V | tail -n 1
}

kind_registry_image() {
    docker images --format '{{.Repository}}:{{.Tag}}' registry 2>/dev/null | grep -E ':[23](\.|$)' | sort -V | tail -n 1
}

# Whether kind can be used without pulling an image.
kind_at_hand() {
    type -P kind docker kubectl >/dev/null && docker info >/dev/null 2>&1 &&
        [ -n "$(kind_node_image)" ] && [ -n "$(kind_registry_image)" ]
}

kind_running() {
    type -P kind docker >/dev/null && kind get clusters 2>/dev/null | grep -qx "$KIND_NAME"
}

# What kind is to make.
kind_config() {
    local node
    cat <<'END'
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
containerdConfigPatches:
  - |-
    [plugins."io.containerd.grpc.v1.cri".registry]
      config_path = "/etc/containerd/certs.d"
nodes:
  - role: control-plane
END
    for ((node = 2; node <= ${NODES:-1}; node++)); do
        echo "  - role: worker"
    done
}

# kind_up KUBECONFIG
kind_up() {
    local node host
    # One that an earlier run left.
    kind_registry_down
    kind_registry_up
    kind_config | kind create cluster --name "$KIND_NAME" --image "$(kind_node_image)" --kubeconfig "$1" --wait 2m --config - >&2 || {
        kind_registry_down
        die "kind cannot create the cluster" "see its output above"
    }
    docker network connect kind "$KIND_REGISTRY"
    # Tests push what would come from the other two, since nothing is pulled from the outside.
    for node in $(kind get nodes --name "$KIND_NAME"); do
        for host in "localhost:$KIND_REGISTRY_PORT" docker.io gcr.io; do
            docker exec --interactive "$node" sh -c \
                "mkdir -p /etc/containerd/certs.d/$host && cat >/etc/containerd/certs.d/$host/hosts.toml" \
                <<<"[host.\"http://$KIND_REGISTRY:5000\"]"
        done
    done
}

# A registry that lets images be deleted, and does not remember blobs that are gone.
kind_registry_up() {
    local said
    said=$(docker run --detach --name "$KIND_REGISTRY" --publish "127.0.0.1:$KIND_REGISTRY_PORT:5000" \
        --env REGISTRY_STORAGE_DELETE_ENABLED=true --env REGISTRY_STORAGE_CACHE_BLOBDESCRIPTOR=disabled \
        "$(kind_registry_image)" 2>&1) && return
    kind_registry_down
    [[ $said != *"port is already allocated"* && $said != *"address already in use"* ]] ||
        die "port $KIND_REGISTRY_PORT of 127.0.0.1 is in use, the registry needs it" \
            "end what uses it (\`docker ps --filter publish=$KIND_REGISTRY_PORT\`), or choose another port with CLUSTER_REGISTRY_PORT"
    die "the registry does not start: $said"
}

kind_registry_down() {
    docker rm --force --volumes "$KIND_REGISTRY" >/dev/null 2>&1 || :
}

# Where the registry has its configuration: that of version 3 has another place.
kind_registry_config() {
    docker inspect --format '{{index .Config.Cmd 0}}' "$KIND_REGISTRY"
}

# Where nodes and pods reach the registry.
kind_registry_address() {
    docker inspect --format '{{(index .NetworkSettings.Networks "kind").IPAddress}}' "$KIND_REGISTRY"
}

kind_down() {
    if kind_running; then
        kind delete cluster --name "$KIND_NAME" >&2
        kind_registry_down
        rm -f "$KIND_KUBECONFIG"
    fi
}
