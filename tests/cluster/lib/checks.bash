# What keeps a cluster from coming up on this machine, found before anything is started: which, and what to do.

# Room on the disk in MiB: for the build with its caches, and for a running cluster.
BUILD_ROOM=10000
RUN_ROOM=2000

# Debian's package for each program; the last ones are put into images that tests run.
PACKAGES='
conntrack conntrack
containerd containerd
docker-registry docker-registry
ip iproute2
iptables iptables
openssl openssl
runc runc
/usr/lib/cni/ptp containernetworking-plugins
memcached memcached
redis-server redis-server
'

# problem WHAT WHAT_TO_DO: all are shown, not only the first.
problem() {
    say "error: $1"
    say "  = help: $2"
    problems=$((problems + 1))
}

# Everything that can be known at once. Programs that Debian has are not missed when they can be installed.
check() {
    problems=0
    check_root
    check_packages
    check_rust
    "$HERE/build" --check >/dev/null || check_go "$HERE" Kubernetes
    check_disk
    check_kernel
    if ! running; then
        check_port
        check_address
    fi
    [ "$problems" = 0 ]
}

check_root() {
    if [ "$(id -u)" != 0 ]; then
        problem "a cluster from parts needs root to create containers, mounts and networks" \
            "run as root, or use kind: it is the default where Docker, kind and its node image are available (docs/cluster.md)"
    fi
}

# Whether this machine lets its root do what a node does: a container has a root as well, and not always the rights.
check_kernel() {
    local said
    [ "$(id -u)" = 0 ] && type -P ip >/dev/null || return 0
    # shellcheck disable=SC2016 # the inner shell is to read this
    said=$(unshare --mount --net --pid --fork --mount-proc bash -euc '
        mount -t tmpfs tmpfs /mnt
        mkdir /mnt/{lower,upper,work,merged}
        mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt/merged
        ip link add name left type veth peer name right
        ! type -P iptables >/dev/null || iptables --table nat --list --numeric >/dev/null
        trees=$(awk '\''$3 == "cgroup" || $2 == "/sys/fs/cgroup" && $3 == "cgroup2" { print $2 }'\'' /proc/mounts)
        [ -n "$trees" ] || { echo "no control groups are mounted"; exit 1; }
        for tree in $trees; do
            mkdir "$tree/$1" && rmdir "$tree/$1"
        done' check "$CGROUP-check" 2>&1) ||
        problem "root cannot create what containers need on this machine: $(tail -n 1 <<<"$said")" \
            "use a virtual machine, or a container with all privileges"
}

# The packages that are missing.
missing_packages() {
    local program package
    while read -r program package; do
        [ -z "$program" ] || type -P "$program" >/dev/null || echo "$package"
    done <<<"$PACKAGES"
}

check_packages() {
    local missing
    missing=$(missing_packages | paste -sd' ')
    if [ -n "$missing" ] && ! type -P apt-get >/dev/null; then
        problem "missing packages (Debian names): $missing" "install them with your system's package manager"
    fi
}

check_rust() {
    if ! type -P "${CARGO:-cargo}" >/dev/null; then
        problem "${CARGO:-cargo} is not on PATH: images are built by olmkit" \
            "install Rust (https://rustup.rs), or keep PATH through sudo: sudo env PATH=\"\$PATH\" make cluster"
    fi
}

# check_go MODULES WHAT: whether Go can build the tool dependencies of a directory's go.mod.
check_go() {
    local wanted found said
    wanted=$(awk '$1 == "go" { print $2; exit }' "$1/go.mod")
    # Asked from inside: a Go that fetches the version that go.mod wants is as good.
    if ! found=$(cd "$1" && timeout 8 go env GOVERSION 2>/dev/null); then
        problem "go is not on PATH, or does not run: $2 is built from source" \
            "install Go $wanted or newer (https://go.dev/dl), or keep PATH through sudo: sudo env PATH=\"\$PATH\" make cluster"
    elif [ "$(printf '%s\n' "$wanted" "${found#go}" | sort -V | head -1)" != "$wanted" ]; then
        problem "go is ${found#go}, $2 and its parts need $wanted or newer" "install it from https://go.dev/dl"
    # One module, a small one, for all of them.
    elif ! said=$(cd "$1" && timeout 8 go mod download github.com/beorn7/perks 2>&1); then
        problem "Go's modules cannot be fetched: $(tail -n 1 <<<"$said")" \
            "connect to the network, or set GOPROXY to a mirror that can be reached"
    fi
}

# The room on the disk that a path is or would be on, in MiB.
room() {
    local path=$1
    while [ ! -d "$path" ]; do
        path=$(dirname "$path")
    done
    df -Pm "$path" | awk 'NR == 2 { print $4 }'
}

check_disk() {
    local free
    if ! "$HERE/build" --check >/dev/null; then
        free=$(room "$CACHE")
        if [ "$free" -lt "$BUILD_ROOM" ]; then
            problem "$free MiB are free for $CACHE, the build of Kubernetes needs $BUILD_ROOM" \
                "make room, or set XDG_CACHE_HOME to a directory on another disk"
        fi
    fi
    if [ "$(stat -f -c %T "$(dirname "$STATE")" 2>/dev/null)" = overlayfs ]; then
        problem "$STATE would be on an overlay filesystem, which cannot hold containers' roots" \
            "set CLUSTER_STATE to a directory on a disk"
    fi
    free=$(room "$STATE")
    if [ "$free" -lt "$RUN_ROOM" ]; then
        problem "$free MiB are free for $STATE, a running cluster needs $RUN_ROOM" \
            "make room, or set CLUSTER_STATE to a directory on another disk"
    fi
}

check_port() {
    local who
    if (exec 3<>"/dev/tcp/127.0.0.1/$REGISTRY_PORT") 2>/dev/null; then
        who=$(ss -Hltnp "sport = :$REGISTRY_PORT" 2>/dev/null | sed -n 's/.*users:(("\([^"]*\)",pid=\([0-9]*\).*/, by \1 (process \2)/p' | head -1)
        problem "port $REGISTRY_PORT of 127.0.0.1 is in use$who, the registry needs it" \
            "end that program, or choose another port with CLUSTER_REGISTRY_PORT"
    fi
}

check_address() {
    local who
    type -P ip >/dev/null || return 0
    who=$(ip -oneline address show to "$HOST_IP/30" 2>/dev/null | awk '{ print $2; exit }')
    if [ -n "$who" ]; then
        problem "the addresses $HOST_IP and $NODE_IP are in use by interface $who" \
            "if a cluster left it: ip link delete $who. Else choose other addresses with CLUSTER_NUMBER (0 to 255)"
    elif interface; then
        problem "the interface $LINK already exists" "ip link delete $LINK, or choose another CLUSTER_NUMBER"
    fi
}

# Installs what is missing, without starting services: what they do is done here by the cluster's own processes.
install_packages() {
    local missing policy=/usr/sbin/policy-rc.d
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing Debian's packages: ${missing[*]}"
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    export DEBIAN_FRONTEND=noninteractive
    local install=(apt-get -qq --yes --option DPkg::Lock::Timeout=120 --no-install-recommends install "${missing[@]}")
    # The lists of packages may be missing or old.
    "${install[@]}" >/dev/null 2>&1 || { apt-get -qq update && "${install[@]}" >/dev/null; } >&2 ||
        die "apt-get cannot install ${missing[*]}" "see its output above"
}
