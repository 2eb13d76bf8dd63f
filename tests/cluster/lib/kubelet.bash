# shellcheck shell=bash
# What runs on every node: containerd, kubelet and kube-proxy, in the namespaces of whoever sources this.
# `node` is the node's number, `home` the directory that holds what it writes, `group` its control group.

# kubelet wants these settings of the kernel and would make them, for the whole machine. It is shown them instead.
kernel_settings() {
    local setting value
    mkdir -p "$home/kernel"
    while read -r setting value; do
        echo "$value" >"$home/kernel/${setting##*/}"
        mount --bind "$home/kernel/${setting##*/}" "/proc/sys/$setting"
    done <<-'END'
	vm/overcommit_memory 1
	vm/panic_on_oom 0
	kernel/panic 10
	kernel/panic_on_oops 1
	kernel/keys/root_maxkeys 1000000
	kernel/keys/root_maxbytes 25000000
	END
}

# kubelet wants the group that pods are to be in to be there already, in every hierarchy.
control_group() {
    local kind at part
    while read -r kind at; do
        for part in ${group//\// }; do
            open_group "$kind" "$at" "$at/$part"
            at+=/$part
        done
    done < <(awk '$3 == "cgroup" || $2 == "/sys/fs/cgroup" && $3 == "cgroup2" { print $3, $2 }' /proc/mounts)
}

# open_group KIND OUTER INNER
open_group() {
    local setting controller
    mkdir -p "$3"
    if [ "$1" = cgroup2 ]; then
        # What is enabled in a group is there for the groups in it. One that the kernel lacks is not missed here.
        for controller in cpu cpuset io memory pids; do
            echo "+$controller" >"$2/cgroup.subtree_control"
            echo "+$controller" >"$3/cgroup.subtree_control"
        done
    fi
    # A group with processors of its own starts without any.
    for setting in cpuset.cpus cpuset.mems; do
        [ "$1" = cgroup2 ] || [ ! -e "$2/$setting" ] || cat "$2/$setting" >"$3/$setting"
    done
}

# Keeps a program running; what it says goes to log/NAME.log, with the name of the node if that is not the first.
keep() {
    local name=$1 log=$STATE/log/$1.log
    [ "$node" = 1 ] || log=$STATE/log/$(node_name "$node")-$1.log
    shift
    while :; do
        "$@" >>"$log" 2>&1
        echo "$name ended with $?; it is started again" >>"$log"
        sleep 1
    done &
}

# Containers: containerd, with the plugins of Debian's containernetworking-plugins.
containers() {
    mkdir -p "$home"/{cni,config}
    # Every pod hangs on the node by a pair of interfaces of its own (ptp), so that all its packets are routed, and
    # Services work between pods whether or not the kernel has filters for bridges. The network is that of all nodes, whose
    # pods see each other's addresses; what goes elsewhere has the node's.
    pods=$(node_pods "$node")
    cat >"$home/cni/10-pods.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": true,
   "ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[
     {"subnet": "$POD_NET", "rangeStart": "$pods.2", "rangeEnd": "$pods.254", "gateway": "$pods.1"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
    cat >"$home/config/containerd.toml" <<END
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "127.0.0.1:$REGISTRY_PORT/pause:latest"
  # Not every machine lets its root give processes a better score than its own.
  restrict_oom_score_adj = true
  # Nothing comes from the outside: what would come from these registries is looked for in the cluster's own.
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
    endpoint = ["http://127.0.0.1:$REGISTRY_PORT"]
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."gcr.io"]
    endpoint = ["http://127.0.0.1:$REGISTRY_PORT"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$home/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
END
    # The registry, once more over the same files: the one outside is out of this network's reach.
    keep registry docker-registry serve "$STATE/registry-node.yml"
    keep containerd containerd --config "$home/config/containerd.toml"
    within 20 test -S /run/containerd/containerd.sock || die "containerd does not listen; see log/containerd.log"
}

pods() {
    : >"$home/config/resolv.conf"
    cat >"$home/config/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $STATE/keys/ca.crt}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$group
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
failSwapOn: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
protectKernelDefaults: true
resolvConf: $home/config/resolv.conf
serializeImagePulls: false
volumePluginDir: /var/lib/kubelet/volume-plugins
END
    keep kubelet kubelet --config="$home/config/kubelet.yaml" --kubeconfig="$STATE/keys/$(node_name "$node").kubeconfig" \
        --hostname-override="$(node_name "$node")" --node-ip="$(node_ip "$node")"
}

proxy() {
    cat >"$home/config/proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $STATE/keys/proxy.kubeconfig}
clusterCIDR: $POD_NET
# The machine's own limit stays as it is.
conntrack: {maxPerCore: 0, min: 0}
hostnameOverride: $(node_name "$node")
iptables: {localhostNodePorts: false}
mode: iptables
END
    keep kube-proxy kube-proxy --config="$home/config/proxy.yaml"
}

# As process 1, also the one that buries the orphans.
bury() {
    while :; do wait -n || :; done
}
