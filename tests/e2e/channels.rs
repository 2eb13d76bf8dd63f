//! Channels under the real OLM, by `olmkit operator test`: one that is good, and five that have an edge which breaks the upgrade.
//!
//! The operators are those of `tests/cli/operator-test.trycmd`, each as a package of its own, so that their tests run side by
//! side; the program is `tests/cluster/probe.rs`. What every run said goes to `target/e2e/operator-test.txt`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use crate::cluster::{Namespace, PATIENCE, message, within};
use crate::harness::{Company, Operator, results, said, trial_with};
use crate::images::{olmkit, pushed};
use crate::olm::needed;

/// How long things may take.
const TIMES: [&str; 4] = ["--sample-timeout", "15s", "--settle", "5s"];
/// For upgrades that come to their end, and for those that wait until the time is over. A good install needs half a minute on a busy
/// machine.
const LONG: &str = "3m";
const SHORT: &str = "75s";

/// A package whose upgrade from 1.0.0 is tested.
struct Package {
    name: &'static str,
    /// The version after 1.0.0.
    next: &'static str,
    crd: &'static str,
    verb: &'static str,
    file: &'static str,
    /// How long a step may take.
    step: &'static str,
    /// More flags for the tests.
    flags: &'static [&'static str],
    /// The tests that have to fail, with the code and a word of the sentence. All others have to pass.
    failures: &'static [(&'static str, &'static str, &'static str)],
}

/// What is good of all of them.
const GOOD: Package = Package {
    name: "echo-good",
    next: "1.1.0",
    crd: "both",
    verb: "pause",
    file: "olmkit.yaml",
    step: LONG,
    flags: &[],
    failures: &[],
};

const PACKAGES: [Package; 6] = [
    GOOD,
    Package {
        name: "echo-crd",
        next: "2.0.0",
        crd: "v1",
        failures: &[(
            "1.0.0 → 2.0.0",
            "crd-stored-version",
            "the version v1alpha1, at which objects are stored",
        )],
        ..GOOD
    },
    Package {
        name: "echo-crash",
        next: "2.0.0",
        verb: "no-such-verb",
        step: SHORT,
        failures: &[("install 2.0.0", "crashing", "manager"), ("1.0.0 → 2.0.0", "crashing", "manager")],
        ..GOOD
    },
    Package {
        name: "echo-needs",
        next: "2.0.0",
        file: "needs.yaml",
        step: SHORT,
        failures: &[
            ("install 2.0.0", "dependency-missing", "speaker-operator"),
            ("1.0.0 → 2.0.0", "dependency-missing", "speaker-operator"),
        ],
        ..GOOD
    },
    Package {
        name: "echo-modes",
        next: "2.0.0",
        file: "modes.yaml",
        failures: &[("1.0.0 → 2.0.0 in OwnNamespace", "unsupported-install-mode", "OwnNamespace")],
        ..GOOD
    },
    // OLM itself is to find it: without the flag it is not asked.
    Package {
        name: "echo-image",
        next: "2.0.0",
        flags: &["--accept-missing-images"],
        failures: &[
            ("install 2.0.0", "bundle-image-pull", "echo-image-bundle"),
            ("1.0.0 → 2.0.0", "bundle-image-pull", "echo-image-bundle"),
        ],
        ..GOOD
    },
];

/// The package whose last version was not pushed.
const NOT_PUSHED: &str = "echo-image";

pub(crate) fn trials() -> Vec<Trial> {
    // The packages' names and CRDs are their own, but kubectl knows them as `echo` too.
    let name = "operator_test_finds_five_broken_upgrades_under_olm";
    vec![trial_with(name, Company::Of(Operator::Echo), Some(needed()), channels)]
}

fn channels(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    for package in &PACKAGES {
        published(namespace, dir, package)?;
    }
    let catalog = pushed(dir, &["catalog", "push", "catalog", &namespace.image("catalog:v1")])?;
    let found: Vec<Result<String, Failed>> = thread::scope(|scope| {
        let lane = |package| {
            let tests = Tests { namespace, dir, package, catalog: &catalog };
            move || if package.failures.is_empty() { tests.killed_once() } else { tests.broken() }
        };
        let running: Vec<_> = PACKAGES.iter().map(|package| scope.spawn(lane(package))).collect();
        running
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|panic| Err(said(panic.as_ref()).into())))
            .collect()
    });
    let (mut text, mut failures) = (String::new(), String::new());
    for (package, found) in PACKAGES.iter().zip(found) {
        match found {
            Ok(said) => text += &said,
            Err(failed) => drop(writeln!(failures, "--- {}: {}", package.name, message(&failed))),
        }
    }
    fs::create_dir_all(results())?;
    fs::write(results().join("operator-test.txt"), text)?;
    let clean = nothing_left(namespace);
    if !failures.is_empty() {
        return Err(failures.into());
    }
    clean
}

/// Makes both versions of a package, and adds them to the catalog.
fn published(namespace: &Namespace, dir: &Path, package: &Package) -> Result<(), Failed> {
    let (first, next) =
        (("1.0.0", "both", "pause", GOOD.file), (package.next, package.crd, package.verb, package.file));
    for (version, crd, verb, file) in [first, next] {
        let manifests = manifests(namespace, dir, package.name, (version, crd, verb, file))?;
        let (from, bundle) = (manifests.display().to_string(), format!("bundles/{}-{version}", package.name));
        let file = format!("{from}/{file}");
        let (crd, deploy) = (format!("{from}/crds/{crd}.yaml"), format!("{from}/deploy"));
        let mut words =
            vec!["bundle", "generate", &crd, &deploy, "--package-file", &file, "--version", version];
        words.extend(["--channels", "stable", "--output-dir", &bundle]);
        let sample = format!("{from}/sample.yaml");
        // Of the version that the last CRD lacks on purpose.
        if !crd.ends_with("/v1.yaml") {
            words.extend(["--samples", &sample]);
        }
        olmkit(dir, &words)?;
        let reference = namespace.image(&format!("{}-bundle:v{version}", package.name));
        if package.name == NOT_PUSHED && version == package.next {
            let add = ["catalog", "add", "catalog", &bundle, "--policy", "semver", "--image-ref-template"];
            olmkit(dir, &[&add[..], &[&reference]].concat())?;
        } else {
            let image = pushed(dir, &["bundle", "push", &bundle, &reference])?;
            olmkit(dir, &["catalog", "add", "catalog", &image, "--policy", "semver"])?;
        }
    }
    Ok(())
}

/// The operator of the transcript under another name, with a program that is there, and an API group of its own.
fn manifests(
    namespace: &Namespace,
    dir: &Path,
    package: &str,
    (version, crd, verb, file): (&str, &str, &str, &str),
) -> Result<PathBuf, Failed> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/operator-test.in");
    let to = dir.join("manifests").join(format!("{package}-{version}"));
    let program = format!("{}\n        command: [/probe, {verb}]", namespace.cluster.probe()?);
    for name in [file, "sample.yaml", &format!("crds/{crd}.yaml"), "deploy/operator.yaml"] {
        let text = fs::read_to_string(from.join(name))?
            .replace("registry.example.com/echo-operator:1.0.0", &program)
            .replace("      containers:", "      terminationGracePeriodSeconds: 0\n      containers:")
            .replace("echo-operator", package)
            .replace("example.com", &format!("{package}.example.com"));
        let file = to.join(name);
        fs::create_dir_all(file.parent().unwrap())?;
        fs::write(file, text)?;
    }
    Ok(to)
}

/// The tests of one package.
struct Tests<'t> {
    namespace: &'t Namespace,
    dir: &'t Path,
    package: &'t Package,
    catalog: &'t str,
}

impl Tests<'_> {
    /// Every broken upgrade is named, and the rest is good.
    fn broken(&self) -> Result<String, Failed> {
        let (code, said) = self.run()?;
        self.expect(code, &said)?;
        Ok(said)
    }

    /// A run that is at work keeps others away; what it leaves when it is killed does not.
    fn killed_once(&self) -> Result<String, Failed> {
        let words = self.words("killed.xml", &[]);
        let mut first = Killed(self.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let own = format!("olmkit-test-{}", self.package.name);
        let operator = ["get", "deployment", self.package.name, "--namespace", &own];
        let there = within(PATIENCE, || Ok(self.namespace.cluster.kubectl(&operator).ok()))?;
        there.ok_or("the first run installs nothing")?;
        let (code, refused) = self.run()?;
        assert!(
            refused.contains("error: another run of `operator test` works in the namespace"),
            "{refused}"
        );
        assert_eq!(code, 2, "{refused}");
        first.0.kill()?;
        let (code, said) = self.run()?;
        self.expect(code, &said)?;
        Ok(refused + &said)
    }

    fn words(&self, junit: &str, more: &[&str]) -> Vec<String> {
        let junit = format!("{}-{junit}", self.package.name);
        let words =
            ["operator", "test", self.package.name, "--catalog-image", self.catalog, "--junit", &junit];
        let step = ["--step-timeout", self.package.step];
        words.iter().chain(&step).chain(&TIMES).chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.args(words).current_dir(self.dir);
        command
    }

    /// Runs the tests; the exit code, and the command with all that it said.
    fn run(&self) -> Result<(i32, String), Failed> {
        let words = self.words("report.xml", self.package.flags);
        let begun = Instant::now();
        let output = self.command(&words).output()?;
        Ok((output.status.code().unwrap_or(-1), self.told(&words, &output, begun)))
    }

    fn told(&self, words: &[String], output: &Output, begun: Instant) -> String {
        let said = [&output.stderr, &output.stdout].map(|said| String::from_utf8_lossy(said).into_owned());
        let seconds = begun.elapsed().as_secs_f64();
        let code = output.status.code().unwrap_or(-1);
        format!("$ olmkit {}\n{}# {seconds:.1} s, exit code {code}\n\n", words.join(" "), said.concat())
    }

    /// What has to fail has failed for its reason, and nothing else has.
    fn expect(&self, code: i32, said: &str) -> Result<(), Failed> {
        let report = fs::read_to_string(self.dir.join(format!("{}-report.xml", self.package.name)))?;
        let cases: Vec<&str> = report.split("<testcase ").skip(1).collect();
        let failures = self.package.failures;
        for (name, code, word) in failures {
            let case = cases.iter().find(|case| case.contains(&format!("name=\"{name}\"")));
            let failure = case.and_then(|case| case.lines().find(|line| line.contains("<failure ")));
            let failure = failure.ok_or_else(|| format!("`{name}` has not failed\n{said}"))?;
            assert!(
                failure.contains(&format!("type=\"{code}\"")) && failure.contains(word),
                "{failure}\n{said}"
            );
        }
        let failed = cases.iter().filter(|case| case.contains("<failure ")).count();
        assert_eq!(failed, failures.len(), "{said}");
        assert!(cases.len() > failed && !report.contains("<skipped"), "{said}");
        assert_eq!(code, i32::from(failed > 0), "{said}");
        Ok(())
    }
}

/// A run that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// No CRD, no object of OLM and no namespace is there any more. Namespaces take their time to go.
fn nothing_left(namespace: &Namespace) -> Result<(), Failed> {
    let own = |text: String| -> String {
        let ours = |line: &&str| PACKAGES.iter().any(|package| line.contains(package.name));
        text.lines().filter(ours).collect::<Vec<_>>().join("\n")
    };
    let mut left = String::new();
    let gone = within(Duration::from_secs(60), || {
        left.clear();
        for kind in ["namespaces", "customresourcedefinitions", "clusterroles", "clusterrolebindings"] {
            left += &own(namespace.cluster.kubectl(&["get", kind, "--output=name"])?);
        }
        for kind in [
            "subscriptions",
            "clusterserviceversions",
            "installplans",
            "operatorgroups",
            "catalogsources",
            "operatorconditions",
        ] {
            let kind = format!("{kind}.operators.coreos.com");
            left += &own(namespace.cluster.kubectl(&["get", &kind, "--all-namespaces", "--output=name"])?);
        }
        left += &own(namespace.cluster.kubectl(&[
            "get",
            "configmaps,jobs",
            "--all-namespaces",
            "--output=name",
        ])?);
        Ok(left.is_empty().then_some(()))
    })?;
    gone.ok_or_else(|| format!("it is still there:\n{left}").into())
}
