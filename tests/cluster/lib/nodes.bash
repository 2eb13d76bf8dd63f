# shellcheck shell=bash
# The nodes of a cluster from parts that is up: adding, removing and killing those beside the first. Whoever uses these
# functions holds the lock, and has a function `kubectl`.

# The numbers of the nodes that are there or were killed, without the first.
other_nodes() {
    local file
    for file in "$STATE"/nodes/*/namespace; do
        [ ! -f "$file" ] || basename "$(dirname "$file")"
    done
}

# set_nodes COUNT: gives the cluster so many nodes, all of them ready and uncordoned. Those beyond are drained first.
set_nodes() {
    local node removed=no
    [ "$1" = 1 ] || [ -p "$STATE/requests" ] || die "the cluster was started by a version that knows one node" "\`make cluster-down\`, then again"
    for node in $(seq 2 "$1"); do
        node_running "$node" || add_node "$node"
    done
    for node in $(seq "$1"); do
        within 120 kubectl wait --for=condition=Ready "node/$(node_name "$node")" --timeout=1s ||
            die "$(node_name "$node") is not ready" "its logs are in $STATE/log"
        kubectl uncordon "$(node_name "$node")" >/dev/null
    done
    for node in $(other_nodes); do
        [ "$node" -le "$1" ] || { remove_node "$node" && removed=yes; }
    done
    [ "$removed" = no ] || settle
}

# What was on a removed node starts elsewhere.
settle() {
    kubectl wait --for=condition=Available deployments --all --all-namespaces --timeout=120s >/dev/null 2>&1 ||
        say "not all Deployments are available again: \`kubectl get pods --all-namespaces\`"
}

add_node() {
    # One of this name that was killed is forgotten: a machine that is installed again.
    [ ! -f "$STATE/nodes/$1/namespace" ] || remove_node "$1"
    node_keys "$1"
    echo "$1" >"$STATE/requests"
    within 20 find_node "$1" || die "$(node_name "$1") does not start" "look at $STATE/log/start-nodes.log"
    within 60 kubectl get node "$(node_name "$1")" || die "$(node_name "$1") does not register" "its logs are in $STATE/log"
}

# Finds process 1 of the node's namespace among this machine's processes, and notes who it is.
find_node() {
    local namespace status
    [ -s "$STATE/nodes/$1/namespace" ] || return 1
    namespace=$(<"$STATE/nodes/$1/namespace")
    for status in /proc/[0-9]*/status; do
        [ "$(readlink "${status%/*}/ns/pid" 2>/dev/null)" = "$namespace" ] || continue
        # Its ids in each namespace, the innermost last. A namespace's number is used again when it is gone.
        if grep -q '^NSpid:.*[[:space:]]1$' "$status" && grep -qz "/other-node$" "${status%/*}/cmdline"; then
            identity "$(basename "${status%/*}")" >"$STATE/nodes/$1/pid"
            return
        fi
    done
    return 1
}

# Whether a node runs, also when whoever added it was killed before it was noted.
node_running() {
    [ -e "$STATE/nodes/$1/pid" ] || find_node "$1" || return 1
    [ -s "$STATE/nodes/$1/pid" ] && alive "$(<"$STATE/nodes/$1/pid")"
}

# Ends a node at once, as a machine that loses its power: its kubelet, its containers, their processes.
kill_node() {
    local pid
    if node_running "$1"; then
        read -r pid _ <"$STATE/nodes/$1/pid"
        kill -KILL "$pid"
        within 20 eval "! node_running $1" || die "$(node_name "$1"), process $pid, does not end"
    fi
}

# Kubernetes forgets a node that is gone, and the pods that were on it.
remove_node() {
    local name
    name=$(node_name "$1")
    if node_running "$1"; then
        kubectl drain "$name" --force --ignore-daemonsets --delete-emptydir-data --timeout=60s >/dev/null 2>&1 ||
            say "$name is removed with the pods that could not be evicted"
    fi
    kill_node "$1"
    kubectl delete node "$name" --ignore-not-found >/dev/null
    kubectl get pods --all-namespaces --field-selector "spec.nodeName=$name" --no-headers \
        --output custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name 2>/dev/null |
        while read -r namespace pod; do
            kubectl delete pod --namespace "$namespace" "$pod" --force --ignore-not-found >/dev/null 2>&1
        done
    rm -rf --one-file-system "$STATE/nodes/$1"
    within 20 remove_control_groups "/$name" || say "control groups of $name are left: they go with the cluster"
}
