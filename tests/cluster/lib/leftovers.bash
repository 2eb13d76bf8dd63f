# What a cluster leaves on this machine when it is no more, or when it died on the way: how to tell, and how to remove it.

# Whether the node of this state directory runs.
running() {
    [ -f "$STATE/node.pid" ] && alive "$(<"$STATE/node.pid")"
}

# Whether tests run on the cluster: each run holds a shared lock.
in_use() {
    running && [ -f "$STATE/owner" ] && ! flock --nonblock --exclusive "$STATE/owner" true
}

# Ends what `up` started, by process id, and removes what it made. Says nothing where there is nothing.
remove() {
    local file pid
    for file in "$STATE"/node.pid "$STATE"/registry.pid; do
        if [ -f "$file" ] && alive "$(<"$file")"; then
            read -r pid _ <"$file"
            # The node is process 1 of a namespace: all processes in it end with it.
            # It may just be ending by itself.
            kill -KILL "$pid" 2>/dev/null || :
            # shellcheck disable=SC2016 # `eval` is to read this
            within 20 eval '! alive "$(<"$file")"' || die "process $pid does not end" "it may wait for a disk: look at /proc/$pid/stack"
        fi
    done
    # The kernel takes the namespaces down a moment after their last process.
    within 20 no_processes || die "processes of the cluster do not end: $(processes)"
    if interface; then
        within 5 eval '! interface' || ip link delete "$LINK"
    fi
    within 20 remove_control_groups || die "control groups do not go away: $(control_groups | head -3)"
    if [ -d "$STATE" ]; then
        within 20 eval '! mounts' || die "mounts are left below $STATE: $(mounts)" "umount --lazy them"
        rm -rf --one-file-system "$STATE"
    fi
}

# What is still there, one line each.
leftovers() {
    local pid
    for pid in $(processes); do
        echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    done
    if [ -f "$STATE/registry.pid" ] && alive "$(<"$STATE/registry.pid")"; then
        echo "process $(cut -d' ' -f1 "$STATE/registry.pid"): the registry"
    fi
    ! interface || echo "interface $LINK"
    mounts | sed 's/^/mount /'
    [ -z "$(control_groups)" ] || echo "control groups $CGROUP"
    [ ! -e "$STATE" ] || echo "directory $STATE"
}

# has_namespace PID: notes the namespace of what a process starts, once it is not this one's any more.
has_namespace() {
    local namespace
    namespace=$(readlink "/proc/$1/ns/pid_for_children") && [ -n "$namespace" ] &&
        [ "$namespace" != "$(readlink /proc/self/ns/pid)" ] && echo "$namespace" >"$STATE/node.namespace"
}

# The processes in the node's namespace, by their ids outside of it.
processes() {
    local namespace dir
    [ -s "$STATE/node.namespace" ] || return 0
    namespace=$(<"$STATE/node.namespace")
    for dir in /proc/[0-9]*; do
        [ "$(readlink "$dir/ns/pid" 2>/dev/null)" != "$namespace" ] || echo "${dir#/proc/}"
    done
}

no_processes() {
    [ -z "$(processes)" ]
}

interface() {
    [ -e "/sys/class/net/$LINK" ]
}

mounts() {
    awk -v dir="$STATE" 'index($5, dir) == 1 { print $5; found = 1 } END { exit !found }' /proc/self/mountinfo
}

# Version 1 has a tree for each controller, version 2 one for all.
control_groups() {
    local dir
    for dir in /sys/fs/cgroup/"$CGROUP" /sys/fs/cgroup/*/"$CGROUP"; do
        [ ! -d "$dir" ] || [ -L "${dir%/*}" ] || echo "$dir"
    done
}

# remove_control_groups [/NAME]: all of them, or those of one node beside the first.
remove_control_groups() {
    local dir left=0
    for dir in $(control_groups); do
        [ ! -d "$dir${1-}" ] || find "$dir${1-}" -depth -type d -exec rmdir {} + || left=1
    done
    return "$left"
}
