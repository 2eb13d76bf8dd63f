//! The operators of `examples/` on a cluster: as their pages show them, from the bundles that olmkit makes, and under OLM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use olmkit::image::Config;
use serde_json::Value;

use crate::cluster::{Cluster, Namespace, finished};
use crate::etcd;
use crate::harness::{Company, Operator, results, trial_with};
use crate::images::{olmkit, pushed};
use crate::olm::{self, Told, push_catalog, serve};
use crate::pages::{Page, walked};
use crate::program;
use crate::support::{Part, find};

/// An operator of `examples/`.
pub(crate) struct Example {
    name: &'static str,
    /// Its releases, oldest first.
    releases: [&'static str; 2],
    /// Whether a Helm chart installs it, or else the manifests of each release.
    chart: bool,
    /// The images of what it runs.
    operands: &'static [Operand],
    /// Its CRD.
    pub(crate) crd: &'static str,
    /// A custom resource, which its sample creates, and what `kubectl wait` is to wait for.
    sample: &'static str,
    ready: &'static str,
}

/// An image that an operator runs.
struct Operand {
    /// Its name, without its registry: a cluster from parts looks for it in its own.
    image: &'static str,
    /// Programs, and their places in the image.
    programs: &'static [(&'static str, &'static str)],
    /// Where this machine has one of the programs.
    find: fn(&str) -> Option<PathBuf>,
}

pub(crate) const MEMCACHED: Example = Example {
    name: "memcached",
    releases: ["0.1.0", "0.2.0"],
    chart: false,
    operands: &[Operand { image: "library/memcached:1.6.39", programs: &[("memcached", "memcached")], find }],
    crd: "memcacheds.cache.example.com",
    sample: "memcached/memcached-sample",
    ready: "condition=Available",
};

const ECHO: Example = Example {
    name: "echo",
    releases: ["0.1.0", "0.2.0"],
    chart: true,
    operands: &[Operand { image: "library/busybox:1.37.0", programs: &[("printf", "usr/bin/printf")], find }],
    crd: "echoes.echo.example.com",
    sample: "echo/hello",
    ready: "condition=Complete",
};

const ETCD_PROGRAMS: &[(&str, &str)] = &[
    ("etcd", "usr/local/bin/etcd"),
    ("etcdctl", "usr/local/bin/etcdctl"),
    ("etcdutl", "usr/local/bin/etcdutl"),
];

const ETCD: Example = Example {
    name: "etcd",
    releases: ["0.1.0", "0.2.0"],
    chart: false,
    operands: &[
        Operand {
            image: "etcd-development/etcd:v3.5.34",
            programs: ETCD_PROGRAMS,
            find: |program| etcd::program("3.5", program),
        },
        Operand {
            image: "etcd-development/etcd:v3.6.16",
            programs: ETCD_PROGRAMS,
            find: |program| etcd::program("3.6", program),
        },
    ],
    crd: "etcdclusters.etcd.example.com",
    sample: "etcdcluster/example",
    ready: "condition=Available",
};

pub(crate) fn trials() -> Vec<Trial> {
    let memcached = || Some(Part::program("memcached"));
    let with_helm = || Some(Part::new("helm", helm().is_none().then(|| "helm is not installed".into())));
    let etcd = || Some(Part::new("etcd", etcd::missing()));
    let of_memcached = Company::Of(Operator::Memcached);
    let of_echo = Company::Of(Operator::Echo);
    let of_etcd = Company::Of(Operator::Etcd);
    let under_olm = |name, company, example: &'static Example, needed: Option<Part>| {
        let needed = needed.into_iter().chain([olm::needed()]);
        trial_with(name, company, needed, |namespace| example.under_olm(namespace))
    };
    vec![
        under_olm("the_memcached_example_upgrades_under_olm", of_memcached, &MEMCACHED, memcached()),
        under_olm("the_echo_example_upgrades_under_olm", of_echo, &ECHO, with_helm()),
        under_olm("the_etcd_example_upgrades_under_olm", of_etcd, &ETCD, etcd()),
        trial_with("the_memcached_example_as_its_page_shows_it", of_memcached, memcached(), |namespace| {
            MEMCACHED.page(namespace)
        }),
        trial_with("the_echo_example_as_its_page_shows_it", of_echo, with_helm(), |namespace| {
            ECHO.page(namespace)
        }),
        trial_with("the_etcd_example_as_its_page_shows_it", of_etcd, etcd(), |namespace| {
            ETCD.page(namespace)
        }),
        trial_with(
            "the_memcached_example_upgrades_from_its_bundles",
            of_memcached,
            memcached(),
            |namespace| MEMCACHED.bundles(namespace),
        ),
        trial_with("the_echo_example_upgrades_from_its_bundles", of_echo, with_helm(), |namespace| {
            ECHO.bundles(namespace)
        }),
        trial_with("the_etcd_example_upgrades_from_its_bundles", of_etcd, etcd(), |namespace| {
            ETCD.bundles(namespace)
        }),
    ]
}

/// Where helm is: a cluster from parts has it beside kubectl.
fn helm() -> Option<PathBuf> {
    let beside = std::env::var_os("KUBECTL").map(|kubectl| Path::new(&kubectl).with_file_name("helm"));
    beside.filter(|path| path.is_file()).or_else(|| find("helm"))
}

impl Example {
    fn operator(&self) -> String {
        format!("{}-operator", self.name)
    }

    /// Its image, of this run alone: a node that has an image of some name does not pull it again.
    fn image(&self) -> String {
        format!("{}:e2e-{}", self.operator(), std::process::id())
    }

    /// The program as it was built beside this test.
    pub(crate) fn built(&self) -> Result<PathBuf, Failed> {
        let here = std::env::current_exe()?;
        let built = here.ancestors().nth(2).ok_or("no target directory")?.join(self.operator());
        if built.is_file() {
            return Ok(built);
        }
        Err(format!("{} is not there: run `cargo build -p {}`", built.display(), self.operator()).into())
    }

    /// Makes the images of the operator and of what it runs.
    fn images(&self, cluster: &Cluster) -> Result<(), Failed> {
        let failed = |error: Box<dyn std::error::Error>| Failed::from(error.to_string());
        let operator = self.operator();
        let config = Config {
            entrypoint: vec![format!("/{operator}")],
            user: Some("65532".into()),
            ..Config::default()
        };
        let reference = format!("{}/{}", cluster.registry, self.image());
        program::push_several(&reference, &[(&operator, &self.built()?)], &config).map_err(failed)?;
        self.operands.iter().try_for_each(|operand| {
            let found = operand.programs.iter().map(|(program, path)| {
                let found = (operand.find)(program).ok_or_else(|| format!("{program} is not installed"))?;
                Ok((*path, found))
            });
            let found: Vec<(&str, PathBuf)> = found.collect::<Result<_, String>>()?;
            let config = Config { entrypoint: vec![format!("/{}", found[0].0)], ..Config::default() };
            let programs: Vec<(&str, &Path)> =
                found.iter().map(|(path, found)| (*path, found.as_path())).collect();
            let reference = format!("{}/{}", cluster.registry, operand.image);
            program::push_several(&reference, &programs, &config).map_err(failed)
        })
    }

    /// The walk through its README.
    fn page(&self, namespace: &Namespace) -> Result<(), Failed> {
        self.images(namespace.cluster)?;
        let operator = self.operator();
        let outcome = walked(
            namespace,
            Page {
                path: &format!("examples/{}/README.md", self.name),
                fence: "console",
                images: &[(&format!("{operator}:{}", self.releases[1]), &self.image())],
                environment: vec![
                    // Several pages run their operator on this machine at the same time.
                    ("HEALTH_ADDRESS", "127.0.0.1:0".to_owned()),
                    ("PROGRAM", self.built()?.display().to_string()),
                    ("HELM", helm().unwrap_or_else(|| "helm".into()).display().to_string()),
                ],
                asks: &[&format!("kubectl -n {operator} get"), &format!("kubectl -n {operator} logs")],
            },
        );
        self.clean(namespace.cluster)?;
        outcome
    }

    /// Installs one release after the other, from what `bundle manifests` prints of its bundle.
    fn bundles(&self, namespace: &Namespace) -> Result<(), Failed> {
        self.images(namespace.cluster)?;
        let dir = tempfile::tempdir()?;
        let outcome =
            self.releases.iter().try_for_each(|release| self.release(namespace, dir.path(), release));
        self.clean(namespace.cluster)?;
        outcome
    }

    /// Installs the first release with its bundle, catalog and Subscription, upgrades to the next, and removes it.
    fn under_olm(&self, namespace: &Namespace) -> Result<(), Failed> {
        self.images(namespace.cluster)?;
        let dir = tempfile::tempdir()?;
        let dir = dir.path();
        for release in self.releases {
            self.bundle(namespace, dir, release)?;
            let reference = namespace.image(&format!("{}-bundle:v{release}", self.operator()));
            let bundle = pushed(dir, &["bundle", "push", release, &reference])?;
            olmkit(dir, &["catalog", "add", "catalog", &bundle, "--policy", "semver"])?;
        }
        serve(namespace, self.name, &push_catalog(dir, &namespace.image("catalog:v1"))?)?;
        let mut told = Told { namespace, dir, text: String::new() };
        let outcome = self.life(&mut told);
        fs::create_dir_all(results())?;
        fs::write(results().join(format!("{}.txt", self.operator())), &told.text)?;
        self.clean(namespace.cluster)?;
        outcome
    }

    fn life(&self, told: &mut Told<'_>) -> Result<(), Failed> {
        let (operator, namespace) = (self.operator(), told.namespace);
        let [first, next] = self.releases;
        told.operator(&["install", &operator, "--version", first])?;
        self.succeeded(told, first)?;
        let samples = self.samples(first);
        namespace.kubectl(&["apply", "--filename", &samples])?;
        namespace.wait(self.sample, self.ready)?;
        told.operator(&["upgrade", &operator])?;
        self.succeeded(told, next)?;
        // What was there is there, and the new release says so.
        namespace.wait(self.sample, self.ready)?;
        told.operator(&["doctor", &operator])?;
        namespace.kubectl(&["delete", "--filename", &samples, "--timeout=60s"])?;
        told.operator(&["uninstall", &operator, "--delete-crds"])?;
        let left =
            namespace.cluster.kubectl(&["get", "crd", self.crd, "--ignore-not-found", "--output=name"])?;
        assert_eq!(left, "");
        Ok(())
    }

    fn succeeded(&self, told: &Told<'_>, release: &str) -> Result<(), Failed> {
        let words = ["operator", "status", &self.operator(), "-n", &told.namespace.name, "--output", "json"];
        let status: Value = serde_json::from_str(&olmkit(told.dir, &words)?)?;
        let found = |key: &str| status[key].as_str().unwrap_or_default();
        let csv = format!("{}.v{release}", self.operator());
        assert_eq!((found("installedCSV"), found("csvPhase")), (&*csv, "Succeeded"), "{status}");
        Ok(())
    }

    /// Where a file of the example is.
    fn file(&self, path: &str) -> String {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(self.name)
            .join(path)
            .display()
            .to_string()
    }

    /// Where the custom resources of a release are.
    fn samples(&self, release: &str) -> String {
        self.file(&if self.chart { "samples".into() } else { format!("deploy/{release}/samples") })
    }

    /// Makes the bundle of a release, in a directory of its name.
    fn bundle(&self, namespace: &Namespace, dir: &Path, release: &str) -> Result<(), Failed> {
        let operator = self.operator();
        let image = format!(
            "registry.example.com/{operator}:{release}={}/{}",
            namespace.cluster.registry,
            self.image()
        );
        let (package, tag) = (self.file("olmkit.yaml"), format!("image.tag={release}"));
        let (manifests, samples) = (self.file(&format!("deploy/{release}/install")), self.samples(release));
        let mut words = vec!["bundle", "generate", "--package-file", &package, "--version", release];
        words.extend(["--image", &image, "--output-dir", release]);
        if self.chart {
            words.extend(["--helm-set", &tag]);
        } else {
            words.extend([&manifests, &samples].map(String::as_str));
        }
        let directory =
            helm().and_then(|helm| Some(helm.parent()?.display().to_string())).unwrap_or_default();
        let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
        let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .args(&words)
            .current_dir(dir)
            .env("PATH", path)
            .output()?;
        finished(&words, &output)?;
        olmkit(dir, &["bundle", "validate", release])?;
        Ok(())
    }

    fn release(&self, namespace: &Namespace, dir: &Path, release: &str) -> Result<(), Failed> {
        self.bundle(namespace, dir, release)?;
        let namespace_name = &namespace.name;
        let mut words = vec!["bundle", "manifests", release, "--namespace", namespace_name];
        if !self.chart {
            words.extend(["--watch-namespace", namespace_name]);
        }
        fs::write(dir.join("objects.yaml"), olmkit(dir, &words)?)?;
        let objects = dir.join("objects.yaml").display().to_string();
        namespace.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", &objects])?;
        namespace.wait(&format!("crd/{}", self.crd), "condition=Established")?;
        let deployment = format!("deployment/{}", self.operator());
        namespace.kubectl(&["rollout", "status", &deployment, "--timeout=120s"])?;
        namespace.kubectl(&["apply", "--filename", &self.samples(release)])?;
        namespace.wait(self.sample, self.ready)
    }

    /// Removes what others of this cluster would trip over.
    fn clean(&self, cluster: &Cluster) -> Result<(), Failed> {
        let wait = "--timeout=60s";
        cluster.kubectl(&["delete", "crd", self.crd, "--ignore-not-found", wait])?;
        cluster.kubectl(&["delete", "namespace", &self.operator(), "--ignore-not-found", wait])?;
        Ok(())
    }
}
