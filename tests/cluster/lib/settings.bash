# shellcheck shell=bash disable=SC2034 # the names are used by those who source this
# What can be chosen, and where things lie. Sourced by every script here; the names in capitals come from here.

# Answers go to stdout; this is the talk.
say() {
    printf '%s\n' "$*" >&2
}

# die WHAT [WHAT TO DO]
die() {
    say "error: $1"
    [ $# -lt 2 ] || say "  = help: $2"
    exit 1
}

# Several clusters can run side by side: each number has its own addresses, port and directory.
NUMBER=${CLUSTER_NUMBER:-0}
[[ $NUMBER =~ ^(0|[1-9][0-9]{0,2})$ && $NUMBER -le 255 ]] ||
    die "CLUSTER_NUMBER is \`$NUMBER\`, expected a number from 0 to 255" "unset it"
# Everything that a running cluster writes. It has to be on a real disk: containers' root filesystems are made in it.
STATE=${CLUSTER_STATE:-/var/lib/olmkit-cluster-$NUMBER}
# The registry's port on 127.0.0.1. Images have the same name for whoever pushes them and for the node that pulls them.
REGISTRY_PORT=${CLUSTER_REGISTRY_PORT:-$((5000 + NUMBER))}
# The programs that are built from source, kept between runs.
CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/olmkit/cluster

# The node has a network of its own, tied to this machine by a pair of interfaces. The addresses are from the range
# that is set aside for tests of networks (RFC 2544), which nobody's office uses.
LINK=olmkit$NUMBER
HOST_IP=198.18.$NUMBER.1
NODE_IP=198.18.$NUMBER.2
NODE_NAME=node
# The node's control group, below which kubelet puts pods.
CGROUP=olmkit-cluster-$NUMBER

# How many nodes: the first has the control plane too, the others have kubelets alone. A cluster that is up keeps those that
# it has, unless this is set.
MOST_NODES=9
NODES=${CLUSTER_NODES:-}
[[ -z $NODES || $NODES =~ ^[1-$MOST_NODES]$ ]] ||
    die "CLUSTER_NODES is \`$NODES\`, expected a number from 1 to $MOST_NODES" "unset it to get one node"

# Services get addresses from this network, pods from the other: pods of node K from 10.244.(K-1).0/24.
SERVICE_NET=10.96.0.0/16
API_SERVICE_IP=10.96.0.1
DNS_IP=10.96.0.10
POD_NET=10.244.0.0/16

# node_name K, node_ip K, node_gateway K, node_pods K: what belongs to node K. Nodes after the first are tied to the first by
# pairs of interfaces, each a network of two addresses: the first node's end is the gateway.
node_name() {
    [ "$1" = 1 ] && echo "$NODE_NAME" || echo "$NODE_NAME-$1"
}

node_ip() {
    echo "198.18.$NUMBER.$((4 * ($1 - 1) + 2))"
}

node_gateway() {
    echo "198.18.$NUMBER.$((4 * ($1 - 1) + 1))"
}

node_pods() {
    echo "10.244.$(($1 - 1))"
}

# With kind: the names of its cluster and of the registry beside it, and the registry's port.
KIND_NAME=olmkit
KIND_REGISTRY=olmkit-registry
KIND_REGISTRY_PORT=${CLUSTER_REGISTRY_PORT:-5001}

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
HERE=$TOP/tests/cluster
KIND_KUBECONFIG=${CLUSTER_KIND_KUBECONFIG:-$TOP/target/kind.kubeconfig}

# Where programs are that a plain PATH may lack: Go where its own instructions put it, and root's programs.
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

# Whether a process is still the one that was started: `PID START_TIME`, as `identity` wrote it.
alive() {
    local pid=${1%% *}
    [ -n "$pid" ] && [ "$(identity "$pid")" = "$1" ]
}

# A process's id and the time at which it started, in ticks since boot: ids are used again, pairs are not.
identity() {
    local stat
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    # The name stands in brackets and may hold anything; the start time is the 20th field after it.
    # shellcheck disable=SC2086 # words on purpose
    set -- "$1" ${stat##*) }
    echo "$1 ${21}"
}

# within SECONDS COMMAND…: runs a command again and again until it succeeds; its output is dropped.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.1
    done
}

# One `up` or `down` of a number at a time. The lock is file 9, which nothing that stays must inherit.
lock() {
    mkdir -p "$CACHE"
    exec 9>"$CACHE/$NUMBER.lock"
    flock --nonblock 9 || { say "waiting for another \`up\` or \`down\` to end" && flock 9; }
}
