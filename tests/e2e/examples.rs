//! The operators of `examples/` on a cluster: as their pages show them, and from the bundles that olmkit makes.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use olmkit::image::Config;

use crate::cluster::{Cluster, Namespace};
use crate::harness::{Company, trial_with};
use crate::images::olmkit;
use crate::pages::{Page, walked};
use crate::program;
use crate::support::{Part, find};

/// An operator of `examples/`.
struct Example {
    name: &'static str,
    /// Its releases, oldest first.
    releases: [&'static str; 2],
    /// Its CRD.
    crd: &'static str,
    /// A custom resource, which its sample creates, and what `kubectl wait` is to wait for.
    sample: &'static str,
    ready: &'static str,
}

const MEMCACHED: Example = Example {
    name: "memcached",
    releases: ["0.1.0", "0.2.0"],
    crd: "memcacheds.cache.example.com",
    sample: "memcached/memcached-sample",
    ready: "condition=Available",
};

pub(crate) fn trials() -> Vec<Trial> {
    let memcached = || Some(Part::program("memcached"));
    // Alone: they bring CRDs and namespaces.
    vec![
        trial_with("the_memcached_example_as_its_page_shows_it", Company::Alone, memcached(), |namespace| {
            MEMCACHED.page(namespace)
        }),
        trial_with(
            "the_memcached_example_upgrades_from_its_bundles",
            Company::Alone,
            memcached(),
            |namespace| MEMCACHED.bundles(namespace),
        ),
    ]
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
    fn built(&self) -> Result<PathBuf, Failed> {
        let here = std::env::current_exe()?;
        let built = here.ancestors().nth(2).ok_or("no target directory")?.join(self.operator());
        if built.is_file() {
            return Ok(built);
        }
        Err(format!("{} is not there: run `cargo build -p {}`", built.display(), self.operator()).into())
    }

    /// Makes the images of the operator and of Debian's memcached.
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
        let memcached = find("memcached").ok_or("memcached is not installed")?;
        // A cluster from parts looks for images of Docker Hub here.
        program::push(&format!("{}/library/memcached:1.6.39", cluster.registry), &memcached, &[])
            .map_err(failed)
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
                environment: vec![("PROGRAM", self.built()?.display().to_string())],
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

    fn release(&self, namespace: &Namespace, dir: &Path, release: &str) -> Result<(), Failed> {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(self.name);
        let file = |path: String| example.join(path).display().to_string();
        let image = format!(
            "registry.example.com/{operator}:{release}={}/{}",
            namespace.cluster.registry,
            self.image(),
            operator = self.operator()
        );
        let (manifests, samples) =
            (file(format!("deploy/{release}/install")), file(format!("deploy/{release}/samples")));
        let package = file("olmkit.yaml".into());
        let mut words = vec!["bundle", "generate", &manifests, &samples, "--package-file", &package];
        words.extend(["--version", release, "--image", &image, "--output-dir", release]);
        olmkit(dir, &words)?;
        olmkit(dir, &["bundle", "validate", release])?;
        let place = ["--namespace", &namespace.name, "--watch-namespace", &namespace.name];
        let objects = olmkit(dir, &[&["bundle", "manifests", release], &place[..]].concat())?;
        fs::write(dir.join("objects.yaml"), objects)?;
        let objects = dir.join("objects.yaml").display().to_string();
        namespace.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", &objects])?;
        namespace.wait(&format!("crd/{}", self.crd), "condition=Established")?;
        let deployment = format!("deployment/{}", self.operator());
        namespace.kubectl(&["rollout", "status", &deployment, "--timeout=120s"])?;
        namespace.kubectl(&["apply", "--filename", &samples])?;
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
