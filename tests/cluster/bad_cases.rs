//! What `up` and `down` say when a cluster cannot be: which fault, and what to do, before anything is started.
//!
//! Nothing here starts a cluster. Faults of the machine are played by programs of the same name, first on `PATH`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

use std::env;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

/// How long a bad case may take to be named.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A machine on which all is well as far as `up --check` looks, but for what a test changes.
struct Machine {
    dir: TempDir,
    settings: Vec<(&'static str, String)>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap(), settings: Vec::new() };
        machine
            // Docker and kind are not here, root is, and everything that Debian has is installed.
            .has("kind", "exit 1")
            .has("docker", "exit 1")
            .has("id", "echo 0")
            .has("ip", "exit 0")
            .has("unshare", "exit 0")
            .has("apt-get", "exit 1")
            .has("go", "case $1 in env) echo go1.26.0 ;; *) exit 0 ;; esac")
            .has("stat", "echo ext2/ext3")
            .has("df", "printf 'Filesystem 1M-blocks Used Available\\ndisk 99999 0 50000\\n'")
            .sets("CLUSTER_NUMBER", "250")
    }

    /// Puts a program on the path, before all others.
    fn has(self, program: &str, script: &str) -> Self {
        let path = self.dir.path().join("bin").join(program);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn sets(mut self, name: &'static str, value: &str) -> Self {
        self.settings.push((name, value.to_owned()));
        self
    }

    fn run(&self, script: &str, arguments: &[&str]) -> Output {
        let bin = self.dir.path().join("bin");
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())))
            .unwrap();
        let started = Instant::now();
        let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster").join(script))
            .args(arguments)
            .env_remove("KUBECONFIG")
            .env_remove("KUBECTL")
            .env("PATH", path)
            .env("XDG_CACHE_HOME", self.dir.path().join("cache"))
            .env("CLUSTER_STATE", self.dir.path().join("state"))
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        assert!(started.elapsed() < AT_ONCE, "it took {:?}", started.elapsed());
        output
    }

    /// What `up` says is wrong, and what to do.
    #[track_caller]
    fn faults(&self) -> String {
        let output = self.run("up", &["--check"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "nothing to be evaluated: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!self.dir.path().join("state").exists(), "something was started: {said}");
        said.replace(self.dir.path().to_str().unwrap(), "DIR")
    }
}

fn main() {
    let tests: &[(&str, fn())] = &[
        ("a_good_machine_is_not_complained_about", || {
            let output = Machine::new().run("up", &["--check"]);
            assert!(output.status.success(), "{output:?}");
            assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
        }),
        ("without_root", || {
            insta::assert_snapshot!(Machine::new().has("id", "echo 1000").faults(), @r#"
            error: a cluster from parts needs root to create containers, mounts and networks
              = help: run as root, or use kind: it is the default where Docker, kind and its node image are available (docs/cluster.md)
            "#);
        }),
        ("without_go", || {
            insta::assert_snapshot!(Machine::new().has("go", "exit 127").faults(), @r#"
            error: go is not on PATH, or does not run: Kubernetes is built from source
              = help: install Go 1.25.0 or newer (https://go.dev/dl), or keep PATH through sudo: sudo env PATH="$PATH" make cluster
            "#);
        }),
        ("with_an_old_go", || {
            insta::assert_snapshot!(Machine::new().has("go", "echo go1.19.8").faults(), @r#"
            error: go is 1.19.8, Kubernetes and its parts need 1.25.0 or newer
              = help: install it from https://go.dev/dl
            "#);
        }),
        ("without_a_way_to_modules", || {
            let go = "case $1 in env) echo go1.25.0 ;; *) echo 'dial tcp: lookup proxy: no such host' >&2; exit 1 ;; esac";
            insta::assert_snapshot!(Machine::new().has("go", go).faults(), @r#"
            error: Go's modules cannot be fetched: dial tcp: lookup proxy: no such host
              = help: connect to the network, or set GOPROXY to a mirror that can be reached
            "#);
        }),
        ("with_a_full_disk", || {
            let df = "printf 'Filesystem 1M-blocks Used Available\\ndisk 99999 98999 1000\\n'";
            insta::assert_snapshot!(Machine::new().has("df", df).faults(), @r#"
            error: 1000 MiB are free for DIR/cache/olmkit/cluster, the build of Kubernetes needs 10000
              = help: make room, or set XDG_CACHE_HOME to a directory on another disk
            error: 1000 MiB are free for DIR/state, a running cluster needs 2000
              = help: make room, or set CLUSTER_STATE to a directory on another disk
            "#);
        }),
        ("on_an_overlay", || {
            insta::assert_snapshot!(Machine::new().has("stat", "echo overlayfs").faults(), @r#"
            error: DIR/state would be on an overlay filesystem, which cannot hold containers' roots
              = help: set CLUSTER_STATE to a directory on a disk
            "#);
        }),
        ("without_the_rights_of_a_node", || {
            let unshare = "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1";
            insta::assert_snapshot!(Machine::new().has("unshare", unshare).faults(), @r#"
            error: root cannot create what containers need on this machine: unshare: unshare failed: Operation not permitted
              = help: use a virtual machine, or a container with all privileges
            "#);
        }),
        ("with_a_port_in_use", || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port().to_string();
            let said = Machine::new().has("ss", "exit 0").sets("CLUSTER_REGISTRY_PORT", &port).faults();
            insta::assert_snapshot!(said.replace(&port, "PORT"), @r#"
            error: port PORT of 127.0.0.1 is in use, the registry needs it
              = help: end that program, or choose another port with CLUSTER_REGISTRY_PORT
            "#);
        }),
        ("with_addresses_in_use", || {
            let ip =
                "case \"$*\" in *address*) echo '7: wan0 inet 198.18.250.1/30 scope global wan0' ;; esac";
            insta::assert_snapshot!(Machine::new().has("ip", ip).faults(), @r#"
            error: the addresses 198.18.250.1 and 198.18.250.2 are in use by interface wan0
              = help: if a cluster left it: ip link delete wan0. Else choose other addresses with CLUSTER_NUMBER (0 to 255)
            "#);
        }),
        ("with_a_wrong_number", || {
            insta::assert_snapshot!(Machine::new().sets("CLUSTER_NUMBER", "many").faults(), @r#"
error: CLUSTER_NUMBER is `many`, expected a number from 0 to 255
  = help: unset it
"#);
        }),
        ("with_a_wrong_number_of_nodes", || {
            for number in ["0", "10", "two"] {
                let said = Machine::new().sets("CLUSTER_NODES", number).faults();
                insta::allow_duplicates! {
                    insta::assert_snapshot!(said.replace(number, "NUMBER"), @r#"
error: CLUSTER_NODES is `NUMBER`, expected a number from 1 to 9
  = help: unset it to get one node
"#);
                }
            }
        }),
        ("a_given_cluster_has_the_nodes_that_are_asked_for", || {
            let machine = Machine::new()
                .has("kubectl", "case $2 in nodes) echo node/one ;; esac")
                .sets("KUBECONFIG", "/given/kubeconfig");
            assert!(machine.run("up", &["--check"]).status.success());
            insta::assert_snapshot!(machine.sets("CLUSTER_NODES", "3").faults(), @r#"
            error: the cluster has 1 node(s), CLUSTER_NODES is 3
              = help: add nodes, or unset CLUSTER_NODES
            "#);
        }),
        ("nodes_are_of_a_cluster_that_is_up", || {
            let said = |arguments: &[&str]| {
                let output = Machine::new().run("nodes", arguments);
                assert_eq!(output.status.code(), Some(1), "{output:?}");
                String::from_utf8(output.stderr).unwrap()
            };
            for wrong in [&["0"][..], &["10"], &["3", "4"], &["--kill"], &["--help"]] {
                insta::allow_duplicates! {
                    insta::assert_snapshot!(said(wrong), @"error: nodes takes a number from 1 to 9, nothing, or --kill and the name of a node");
                }
            }
            insta::assert_snapshot!(said(&["--kill", "node"]), @"error: `node` cannot be killed alone: the control plane is on node, others are node-2 and so on");
            assert!(said(&["3"]).contains("no cluster from parts is up in "), "{}", said(&["3"]));
        }),
        ("with_several_faults_at_once", || {
            let said = Machine::new().has("id", "echo 1000").has("go", "exit 127").faults();
            assert_eq!(said.matches("error: ").count(), 2, "{said}");
            assert_eq!(said.matches("  = help: ").count(), 2, "{said}");
        }),
        ("with_the_kubeconfig_of_a_dead_cluster", || {
            let kubectl = "echo 'E1121 memcache.go:265] something' >&2; \
                           echo 'The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?' >&2; exit 1";
            let machine = Machine::new().has("kubectl", kubectl).sets("KUBECONFIG", "/dead/kubeconfig");
            insta::assert_snapshot!(machine.faults(), @r#"
            error: the cluster of KUBECONFIG=/dead/kubeconfig does not answer: The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?
              = help: start it, or unset KUBECONFIG to get a cluster made
            "#);
        }),
        ("kind_is_taken_where_its_images_are", || {
            let machine = Machine::new();
            let log = machine.dir.path().join("calls");
            // Programs note how they were called, and some what they were told.
            let called = format!("echo \"${{0##*/}} $*\" >>{}", log.display());
            let told =
                |what: &str| format!("{called}\ngrep -E '{what}' | sed 's/^ */    /' >>{}", log.display());
            let docker = "case \"$*\" in
                images*node) printf 'kindest/node:v1.9.0\\nkindest/node:v1.34.0\\n' ;;
                images*registry) echo registry:2 ;;
                inspect*Cmd*) echo /etc/docker/registry/config.yml ;;
                inspect*) echo 172.18.0.3 ;;
                esac";
            let kind =
                "case \"$*\" in 'get nodes'*) echo node ;; 'get kubeconfig'*) echo 'kind: Config' ;; esac";
            let config = machine.dir.path().join("kind.kubeconfig");
            let machine = machine
                .has("docker", &format!("{called}\n{docker}"))
                .has("kind", &format!("{}\n{kind}", told("role:")))
                .sets("CLUSTER_NODES", "2")
                .has("kubectl", &told("addresses:|host:"))
                .sets("CLUSTER_KIND_KUBECONFIG", config.to_str().unwrap());
            let output = machine.run("up", &[]);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(fs::read_to_string(config).unwrap(), "kind: Config\n");
            let clean = |text: String| text.replace(machine.dir.path().to_str().unwrap(), "DIR");
            let answer = clean(String::from_utf8(output.stdout).unwrap());
            let expected =
                "export KUBECONFIG=DIR/kind.kubeconfig KUBECTL=DIR/bin/kubectl CLUSTER_STARTED=yes ";
            assert!(answer.starts_with(expected), "{answer}");
            let calls = clean(fs::read_to_string(log).unwrap());
            let changes =
                calls.lines().filter(|call| !call.starts_with("docker i") && !call.starts_with("kind get"));
            insta::assert_snapshot!(changes.collect::<Vec<_>>().join("\n"), @r#"
            docker rm --force --volumes olmkit-registry
            docker run --detach --name olmkit-registry --publish 127.0.0.1:5001:5000 --env REGISTRY_STORAGE_DELETE_ENABLED=true --env REGISTRY_STORAGE_CACHE_BLOBDESCRIPTOR=disabled registry:2
            kind create cluster --name olmkit --image kindest/node:v1.34.0 --kubeconfig DIR/kind.kubeconfig --wait 2m --config -
                - role: control-plane
                - role: worker
            docker network connect kind olmkit-registry
            docker exec --interactive node sh -c mkdir -p /etc/containerd/certs.d/localhost:5001 && cat >/etc/containerd/certs.d/localhost:5001/hosts.toml
            docker exec --interactive node sh -c mkdir -p /etc/containerd/certs.d/docker.io && cat >/etc/containerd/certs.d/docker.io/hosts.toml
            docker exec --interactive node sh -c mkdir -p /etc/containerd/certs.d/gcr.io && cat >/etc/containerd/certs.d/gcr.io/hosts.toml
            kubectl apply --filename -
                - {addresses: ["172.18.0.3"], conditions: {ready: true}}
                host: "localhost:5001"
            "#);
        }),
        ("without_what_kind_needs", || {
            let mut machine = Machine::new().has("id", "echo 1000").has("go", "exit 127");
            for program in
                ["containerd", "ctr", "debootstrap", "dockerd", "docker-registry", "iptables", "jq", "runc"]
            {
                machine = machine.has(program, "exit 0");
            }
            let state = machine.dir.path().join("kind").display().to_string();
            let machine = machine.sets("KIND_STATE", &state);
            let output = machine.run("with-kind", &["--check"]);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap().trim_end(), @r#"
            error: no Docker runs here, and starting one needs root
              = help: run as root, or start Docker and fetch the images `kindest/node` and `registry` (docs/cluster.md)
            error: go is not on PATH, or does not run: Kubernetes is built from source
              = help: install Go 1.25.0 or newer (https://go.dev/dl), or keep PATH through sudo: sudo env PATH="$PATH" make cluster
            "#);
            assert!(!Path::new(&state).exists());
        }),
        ("nodes_of_a_minor_version_that_nobody_builds", || {
            let output = Machine::new().sets("KUBERNETES", "1.9").run("with-kind", &["--check"]);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                said.starts_with("error: KUBERNETES is `1.9`, nodes can be made of 1.33 and 1.34"),
                "{said}"
            );
        }),
        ("ci_ends_with_how_long_each_step_took", || {
            let machine = Machine::new().has("id", "echo 1000").has("make", "echo checked; exit 2");
            let output = machine.run("../../.ci/run", &[]);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            let said = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<&str> = said.lines().collect();
            assert_eq!(lines[..2], ["checked", "steps:"], "{said}");
            assert!(lines[2].starts_with("make check: failed after ") && lines.len() == 3, "{said}");
        }),
        ("programs_are_used_again_only_as_they_were_built", || {
            // Stands for the compiler: makes programs that know every version in go.mod.
            let go = "while [ $# -gt 1 ]; do [ \"$1\" != -o ] || out=$2; shift; done
                for program in coredns helm kube{-apiserver,-controller-manager,-proxy,-scheduler,ctl,let} kustomize server; do
                    printf '#!/bin/sh\\ncat %s/go.mod\\n' \"$PWD\" >\"$out/$program\" && chmod +x \"$out/$program\"
                done";
            let machine = Machine::new().has("go", go);
            let build = || {
                let output = machine.run("build", &[]);
                assert!(output.status.success(), "{output:?}");
                let dir = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
                (dir.clone(), String::from_utf8(output.stderr).unwrap().replace(&dir, "PROGRAMS"))
            };
            let (dir, said) = build();
            assert_eq!(
                said,
                "building Kubernetes and the rest from source: about 10 minutes on two cores, once\n"
            );
            assert!(
                Path::new(&dir).join("etcd").is_file()
                    && dir.starts_with(machine.dir.path().to_str().unwrap())
            );
            assert_eq!(build(), (dir.clone(), String::new()), "a second build");

            let kubelet = Path::new(&dir).join("kubelet");
            let good = fs::read(&kubelet).unwrap();
            fs::write(&kubelet, [&good[..], b"\n"].concat()).unwrap();
            let (_, said) = build();
            assert!(said.starts_with("kubelet: FAILED\n") && said.contains("\nbuilding "), "{said}");
            assert_eq!(fs::read(&kubelet).unwrap(), good);

            let machine = Machine::new().has("go", &go.replace("go.mod", "main.go"));
            let output = machine.run("build", &[]);
            assert_eq!(output.status.code(), Some(1));
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains("coredns does not say that it is version 1."), "{said}");
            assert!(said.contains("error: the programs were built, but not as"), "{said}");
        }),
        ("with_arguments_that_mean_nothing", || {
            let output = Machine::new().run("up", &["--force"]);
            assert_eq!(output.status.code(), Some(1));
            insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"error: up takes --check and --olm, not `--force`");
        }),
        ("down_removes_what_a_crashed_run_left", || {
            let machine = Machine::new();
            let state = machine.dir.path().join("state");
            fs::create_dir_all(state.join("log")).unwrap();
            // The process ids of a run before the last boot: some other process may have them now.
            let other = std::process::id();
            fs::write(state.join("node.pid"), format!("{other} 1\n")).unwrap();
            fs::write(state.join("node.namespace"), "pid:[1]\n").unwrap();
            let output = machine.run("down", &[]);
            assert!(output.status.success(), "{output:?}");
            assert!(!state.exists());
            insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"the cluster is down, nothing is left of it");
            let again = machine.run("down", &[]);
            assert!(again.status.success());
            insta::assert_snapshot!(String::from_utf8(again.stderr).unwrap(), @"no cluster is up");
        }),
        ("what_fails_only_in_company_is_flaky", || {
            // It says more than is told again, and than a pipe holds.
            let tests = "case $* in *--exact*) echo \"test b ... $ALONE\"; [ $ALONE = ok ]; exit ;; esac\n\
                echo 'test a   ... ok'; echo 'test b   ... FAILED'; echo '---- b ----'; echo 'it was late'; \
                for line in {1..20000}; do echo line $line; done; echo 'failures:'; echo '    b'; exit 101";
            for (alone, code) in [("ok", 0), ("FAILED", 1)] {
                let machine = Machine::new().has("tests", tests).sets("ALONE", alone);
                let output = machine.run("../e2e/once-more", &["tests", "--", "--test-threads", "4"]);
                assert_eq!(output.status.code(), Some(code), "{output:?}");
                let said = String::from_utf8(output.stdout).unwrap();
                let flaky = "FLAKY: b passed when it ran once more, alone; at first it said:\nit was late\n";
                let told = said.split_once(flaky).map(|(_, rest)| rest.lines().last());
                assert_eq!(told, (alone == "ok").then_some(Some("line 39")), "{said}");
            }
        }),
    ];
    let trials: Vec<Trial> = tests
        .iter()
        .map(|&(name, test)| {
            support::trial(name, &["bash", "awk", "flock"], move || {
                test();
                Ok(())
            })
        })
        .collect();
    support::run(&Arguments::from_args(), trials).exit();
}
