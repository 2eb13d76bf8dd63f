//! Where manifests come from: files, directories, standard input, and what kustomize and Helm make.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use olmkit_bundle::finding::Place;
use olmkit_bundle::generate::PackageSettings;
use olmkit_bundle::source::Source;
use olmkit_bundle::yaml;

use super::super::output::is_manifest;
use super::Output;
use super::streams::{HELM, KUSTOMIZE};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::limits::Limits;
use crate::program::{self, CommandLine, Ended};
use crate::progress;
use crate::shell::argument;

/// How long kustomize and helm may take together, where nothing else is said.
pub const PROGRAM_LIMIT: Duration = Duration::from_secs(600);
/// A stream that is longer than this is not read.
const MAX_BYTES: u64 = 256 << 20;
/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// The way out where a chart wants a newer Kubernetes than helm renders it for.
const KUBE_VERSION_HELP: &str = "pass the Kubernetes to render for, such as `--helm-kube-version 1.33`, or set \
     `helmKubeVersion` in the package file";
/// What helm adds to any failure, about a flag that people cannot pass here.
const HELM_ADVICE: &str = "Use --debug flag to render out invalid YAML";

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Files, directories, and `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Directories with a kustomization.
    pub kustomize: Vec<PathBuf>,
    /// Helm charts, and how to render them.
    pub helm: Helm,
}

/// Helm charts, and how to render them.
#[derive(Clone, Debug, Default)]
pub struct Helm {
    /// The charts.
    pub charts: Vec<PathBuf>,
    /// Files with values.
    pub values: Vec<PathBuf>,
    /// Single values.
    pub set: Vec<String>,
    /// The release's name, instead of the package's.
    pub release: Option<String>,
    /// The release's namespace.
    pub namespace: Option<String>,
    /// The Kubernetes to render for.
    pub kube_version: Option<String>,
}

impl Helm {
    /// The first of the flags that say something about a chart, if there is any.
    pub(super) fn flag(&self) -> Option<&'static str> {
        let flags = [
            ("--helm-values", !self.values.is_empty()),
            ("--helm-set", !self.set.is_empty()),
            ("--helm-release", self.release.is_some()),
            ("--helm-namespace", self.namespace.is_some()),
            ("--helm-kube-version", self.kube_version.is_some()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// What `helm template` prints. `package` is the release's name where none is given.
    fn render(&self, chart: &Path, package: &str, limits: Limits) -> Result<String, Failure> {
        let release = self.release.as_deref().unwrap_or(package);
        let mut line = CommandLine::new("helm")
            .words(&["template"])
            .value(release)
            .path(chart)
            .words(&["--include-crds"]);
        for values in &self.values {
            line = line.words(&["--values"]).path(values);
        }
        for set in &self.set {
            line = line.option("--set", set);
        }
        for (flag, value) in [("--namespace", &self.namespace), ("--kube-version", &self.kube_version)] {
            if let Some(value) = value {
                line = line.option(flag, value);
            }
        }
        let what = format!("cannot read the chart `{}`", chart.display());
        let rendered = output(line, &what, limits).map_err(|failure| {
            if let Some(failure) = self.values.iter().find_map(|path| not_yaml(path)) {
                return failure;
            }
            // Without a cluster helm takes the Kubernetes that it was built for, which may be an old one.
            let is_too_old = self.kube_version.is_none() && failure.error.to_string().contains("kubeVersion");
            if is_too_old { failure.help(KUBE_VERSION_HELP) } else { failure }
        });
        match rendered? {
            Some(text) => Ok(text),
            None => Err(Failure::incomplete(format!("{what}: helm is not installed"))
                .help("install helm, or give what `helm template --include-crds` prints")),
        }
    }
}

/// A text and what people know it by.
pub(super) type Named = (String, String);

impl Inputs {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.kustomize.is_empty() && self.helm.charts.is_empty()
    }

    /// These; where no manifests are named those of the package file, else of standard input. What is said about charts counts
    /// for the charts of the package file too.
    pub(super) fn or(self, settings: &PackageSettings, beside: &Path) -> Result<Self, Failure> {
        let paths = |paths: &[String]| paths.iter().map(|path| beside.join(path)).collect::<Vec<_>>();
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let mut inputs = self;
        if inputs.is_empty() {
            inputs.paths = paths(&settings.manifests);
            inputs.kustomize = paths(&settings.kustomize);
            let helm = &mut inputs.helm;
            helm.charts = paths(&settings.helm);
            // The last value counts.
            helm.values.splice(..0, paths(&settings.helm_values));
            helm.set.splice(..0, settings.helm_set.iter().cloned());
            helm.release = helm.release.take().or(text(&settings.helm_release));
            helm.namespace = helm.namespace.take().or(text(&settings.helm_namespace));
            helm.kube_version = helm.kube_version.take().or(text(&settings.helm_kube_version));
        }
        if inputs.helm.charts.is_empty()
            && let Some(flag) = inputs.helm.flag()
        {
            let help = "name the chart with --helm, or under `helm` in the package file";
            return Err(Failure::usage(format!("{flag} is given, and no chart")).help(help));
        }
        if inputs.is_empty() && is_sent() {
            inputs.paths.push(STANDARD_INPUT.into());
        }
        inputs.paths = named_once(&inputs.paths);
        inputs.kustomize = named_once(&inputs.kustomize);
        inputs.helm.charts = named_once(&inputs.helm.charts);
        Ok(inputs)
    }

    /// Reads everything but the output. `package` is the release's name for Helm.
    /// What programs print within the time that they have.
    pub(super) fn read(
        &self,
        package: &str,
        output: &Output,
        limit: Duration,
    ) -> Result<Vec<Named>, Failure> {
        let limits = Limits::begin(limit);
        let mut texts = read_paths(&self.paths, output)?;
        for directory in &self.kustomize {
            texts.push((format!("{KUSTOMIZE}{}", directory.display()), kustomize(directory, limits)?));
        }
        for chart in &self.helm.charts {
            texts.push((format!("{HELM}{}", chart.display()), self.helm.render(chart, package, limits)?));
        }
        Ok(texts)
    }
}

/// Whether somebody sends manifests without naming them: standard input is a pipe, a socket or a file.
pub(super) fn is_sent() -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = std::fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket() || kind.is_file())
}

/// Every manifest: files as given, directories with all `.yaml`, `.yml` and `.json` files below, in order. The output
/// directory, other bundles and the package file are not read though they are below a directory.
pub(super) fn read_paths(paths: &[PathBuf], output: &Output) -> Result<Vec<Named>, Failure> {
    read_each(paths, output, &mut Err)
}

/// The same for examples, and the files that are not text.
pub(super) fn read_samples(paths: &[PathBuf], output: &Output) -> Result<(Vec<Named>, Vec<String>), Failure> {
    let mut unread = Vec::new();
    let texts = read_each(paths, output, &mut |error| match error {
        files::FileError::NotText { path, .. } | files::FileError::Utf16 { path } => {
            unread.push(path.display().to_string());
            Ok(())
        }
        error => Err(error),
    })?;
    Ok((texts, unread))
}

/// Paths without those that lead to the same file or directory as one before.
fn named_once(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    paths.iter().filter(|path| seen.insert(place_of(path))).cloned().collect()
}

/// Where a path leads, however it is written.
fn place_of(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn read_each(
    paths: &[PathBuf],
    output: &Output,
    on_error: &mut dyn FnMut(files::FileError) -> Result<(), files::FileError>,
) -> Result<Vec<Named>, Failure> {
    let (mut texts, mut seen) = (Vec::new(), BTreeSet::new());
    for path in &named_once(paths) {
        if path.as_os_str() == STANDARD_INPUT {
            texts.push(("<stdin>".to_owned(), files::read_stdin(MAX_BYTES)?));
            continue;
        }
        output.check_is_not(path)?;
        let files = if path.is_dir() {
            let fail = |source| files::FileError::List { path: path.clone(), source };
            files::below(path, |below| output.contains(below)).map_err(fail)?
        } else {
            vec![path.clone()]
        };
        for file in files {
            let is_read = file == *path || is_manifest(&file) && !output.contains(&file);
            if is_read && seen.insert(place_of(&file)) {
                match files::read_text(&file) {
                    Ok(text) => texts.push((file.display().to_string(), text)),
                    Err(error) => on_error(error)?,
                }
            }
        }
    }
    Ok(texts)
}

/// What kustomize says of a file outside of the kustomization's directory.
const FILE_OUTSIDE: &str = "is not in or below";

/// What kustomize builds; kubectl has one built in.
fn kustomize(directory: &Path, limits: Limits) -> Result<String, Failure> {
    let what = format!("cannot build the kustomization `{}`", directory.display());
    for words in [["kustomize", "build"], ["kubectl", "kustomize"]] {
        let [program, verb] = words;
        // kustomize's own rule, which projects lift for their bundles.
        let help = |failure: Failure| match failure.error.to_string().contains(FILE_OUTSIDE) {
            true => {
                let render = format!(
                    "{program} {verb} --load-restrictor LoadRestrictionsNone {}",
                    argument(directory.display())
                );
                failure.help(format!("render it yourself: `{render} | olmkit bundle generate -`"))
            }
            false => failure,
        };
        if let Some(text) =
            output(CommandLine::new(program).words(&[verb]).path(directory), &what, limits).map_err(help)?
        {
            return Ok(text);
        }
    }
    Err(Failure::incomplete(format!("{what}: neither kustomize nor kubectl is installed"))
        .help("install one of them, or give what `kustomize build` prints"))
}

/// What a program prints; none when it is not installed.
fn output(line: CommandLine, what: &str, limits: Limits) -> Result<Option<String>, Failure> {
    let refused = |error| Failure::failed(format!("{what}: {error}"));
    let shown = line.to_string();
    let mut command = line.command().map_err(refused)?;
    let program = command.get_program().to_string_lossy().into_owned();
    let spinner = progress::busy(&format!("running {program}"));
    let ended = program::run(command.stderr(Stdio::piped()), limits, MAX_BYTES);
    spinner.finish_and_clear();
    let output = match ended {
        Ok(Ended::Itself(output)) => output,
        Ok(Ended::TimedOut) => {
            let limit = limits.limit().unwrap_or_default();
            let error = format!("{what}: `{}` did not end within {} s", shown, limit.as_secs());
            let failure = Failure::incomplete(error).help("give it more time with `--timeout`");
            return Err(Failure { exit: Exit::TimedOut, ..failure });
        }
        Ok(Ended::TooMuch) => {
            let error = format!("{what}: `{}` printed more than {} MiB", shown, MAX_BYTES >> 20);
            return Err(Failure::incomplete(error));
        }
        Ok(Ended::Interrupted) => return Err(Failure::interrupted()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::incomplete(format!("{what}: {error}"))),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::incomplete(format!("{what}: {program} says: {}", without_log_prefix(&said))));
    }
    let text = String::from_utf8(output.stdout);
    text.map(Some).map_err(|_| Failure::incomplete(format!("{what}: its output is not UTF-8 text")))
}

/// Where a file with values is not YAML: helm says so without the place.
fn not_yaml(path: &Path) -> Option<Failure> {
    let text = files::read_text(path).ok()?;
    let error = yaml::documents(&text).find_map(Result::err)?;
    let place = Place::new(&Source::new(path.display().to_string(), &text), error.span);
    Some(Failure::failed(format!("the values are not YAML: {}", error.message)).at(Some(place)))
}

/// What a program says of its failure, without what its log puts before it: kubectl's `E1123 07:31:56.015754 3571 run.go:72]`,
/// a date, the program's name in brackets, `error: `; and without its warnings and advice.
fn without_log_prefix(said: &str) -> String {
    let lines = said.lines().filter(|line| !line.starts_with("# Warning:") && *line != HELM_ADVICE);
    let message = |line: &str| {
        let mut line = line.trim_end();
        if let Some((log, rest)) = line.split_once("] ")
            && is_log_prefix(log)
        {
            line = rest;
        }
        let date = line.char_indices().take_while(|(_, c)| c.is_ascii_digit() || "/: .".contains(*c)).count();
        if line.starts_with("20") && date > "2026/01/02 15:04:05".len() {
            line = &line[date..];
        }
        if let Some((_, rest)) = line.split_once("] ").filter(|(name, _)| name.starts_with('[')) {
            line = rest;
        }
        if let Some(error) = line.strip_prefix("\"command failed\" err=") {
            // Go quotes as JSON does, but for bytes that are no text.
            return serde_json::from_str(error).unwrap_or_else(|_| error.trim_matches('"').to_owned());
        }
        ["error: ", "Error: "].iter().find_map(|prefix| line.strip_prefix(prefix)).unwrap_or(line).to_owned()
    };
    lines.map(message).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Whether this is what klog writes before a message, up to the bracket: the level and the day, the time, the process, the place.
fn is_log_prefix(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let day = words.next().and_then(|word| word.strip_prefix(['I', 'W', 'E', 'F']));
    let is_day = day.is_some_and(|day| day.len() == 4 && day.bytes().all(|byte| byte.is_ascii_digit()));
    is_day && words.next().is_some_and(|time| time.contains(':')) && text.contains(".go:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_logs_put_before_a_message_goes() {
        for (said, expected) in [
            (
                "# Warning: 'commonLabels' is deprecated.\nE1123 07:31:56.015754    3571 run.go:72] \"command failed\" err=\"no 'a.yaml': \\\"x\\\"\"\n",
                "no 'a.yaml': \"x\"",
            ),
            ("error: accumulating resources: [a] b\n", "accumulating resources: [a] b"),
            ("Error: chart not found\n", "chart not found"),
            (
                "Error: YAML parse error on a.yaml: line 3\n\nUse --debug flag to render out invalid YAML\n",
                "YAML parse error on a.yaml: line 3",
            ),
            ("2026/01/02 15:04:05 [kustomize] no such file\n", "no such file"),
            ("[kustomize] error: no such file\n", "no such file"),
            ("first\n  second\n", "first\n  second"),
        ] {
            assert_eq!(without_log_prefix(said), expected, "{said}");
        }
    }
}
