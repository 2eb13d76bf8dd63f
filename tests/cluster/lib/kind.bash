# A cluster by kind, with a registry beside it, wired as kind's documentation says: nodes pull from the same name that
# images were pushed to. https://kind.sigs.k8s.io/docs/user/local-registry/

# The newest node image that Docker has, and an image of a registry.
kind_node_image() {
    docker images --format '{{.Repository}}:{{.Tag}}' kindest/node 2>/dev/null | sort -V | tail -n 1
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
    local node dir=/etc/containerd/certs.d/localhost:$KIND_REGISTRY_PORT
    # One that an earlier run left.
    docker rm --force "$KIND_REGISTRY" >/dev/null 2>&1 || :
    docker run --detach --name "$KIND_REGISTRY" --publish "127.0.0.1:$KIND_REGISTRY_PORT:5000" \
        --env REGISTRY_STORAGE_DELETE_ENABLED=true "$(kind_registry_image)" >/dev/null
    kind_config | kind create cluster --name "$KIND_NAME" --image "$(kind_node_image)" --kubeconfig "$1" --wait 2m --config - >&2
    docker network connect kind "$KIND_REGISTRY"
    for node in $(kind get nodes --name "$KIND_NAME"); do
        docker exec --interactive "$node" sh -c "mkdir -p $dir && cat >$dir/hosts.toml" \
            <<<"[host.\"http://$KIND_REGISTRY:5000\"]"
    done
}

# Where nodes and pods reach the registry.
kind_registry_address() {
    docker inspect --format '{{(index .NetworkSettings.Networks "kind").IPAddress}}' "$KIND_REGISTRY"
}

kind_down() {
    if kind_running; then
        kind delete cluster --name "$KIND_NAME" >&2
        docker rm --force "$KIND_REGISTRY" >/dev/null
        rm -f "$KIND_KUBECONFIG"
    fi
}
