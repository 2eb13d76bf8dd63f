//! Where manifests come from: files, directories, standard input, and what kustomize and Helm make.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Output;
use crate::exit::Failure;
use crate::files;

/// A stream that is longer than this is not read.
const MAX_BYTES: u64 = 256 << 20;
/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Files, directories, and `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Directories with a kustomization.
    pub kustomize: Vec<PathBuf>,
    /// Helm charts.
    pub helm: Vec<PathBuf>,
    /// Values for the charts.
    pub helm_values: Vec<PathBuf>,
}

/// A text and what people know it by.
pub(super) type Named = (String, String);

impl Inputs {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.kustomize.is_empty() && self.helm.is_empty()
    }

    /// Reads everything but the output. `package` is the release's name for Helm.
    pub(super) fn read(&self, package: &str, output: &Output) -> Result<Vec<Named>, Failure> {
        let mut texts = read_paths(&self.paths, output)?;
        for directory in &self.kustomize {
            texts.push((format!("kustomize {}", directory.display()), kustomize(directory)?));
        }
        for chart in &self.helm {
            texts.push((format!("helm {}", chart.display()), self.helm(chart, package)?));
        }
        Ok(texts)
    }

    fn helm(&self, chart: &Path, package: &str) -> Result<String, Failure> {
        let mut command = Command::new("helm");
        command.args(["template", package]).arg(chart).arg("--include-crds");
        for values in &self.helm_values {
            command.arg("--values").arg(values);
        }
        let what = format!("cannot read the chart `{}`", chart.display());
        match output(&mut command, &what)? {
            Some(text) => Ok(text),
            None => Err(Failure::unknown(format!("{what}: helm is not installed"))
                .help("install helm, or give what `helm template --include-crds` prints")),
        }
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
    let mut texts = Vec::new();
    for path in paths {
        if path.as_os_str() == STANDARD_INPUT {
            texts.push(("<stdin>".to_owned(), standard_input()?));
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
            let is_manifest = file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
            if file == *path || is_manifest && !output.contains(&file) {
                texts.push((file.display().to_string(), files::read_text(&file)?));
            }
        }
    }
    Ok(texts)
}

fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    let fail = |why: String| Failure::unknown(format!("cannot read standard input: {why}"));
    read.map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(format!("it is larger than {} MiB", MAX_BYTES >> 20)));
    }
    String::from_utf8(bytes)
        .map_err(|error| fail(format!("it is not text in UTF-8 (byte {})", error.utf8_error().valid_up_to())))
}

/// What kustomize builds; kubectl has one built in.
fn kustomize(directory: &Path) -> Result<String, Failure> {
    let what = format!("cannot build the kustomization `{}`", directory.display());
    if let Some(text) = output(Command::new("kustomize").arg("build").arg(directory), &what)? {
        return Ok(text);
    }
    if let Some(text) = output(Command::new("kubectl").arg("kustomize").arg(directory), &what)? {
        return Ok(text);
    }
    Err(Failure::unknown(format!("{what}: neither kustomize nor kubectl is installed"))
        .help("install one of them, or give what `kustomize build` prints"))
}

/// What a program prints; none when it is not installed.
fn output(command: &mut Command, what: &str) -> Result<Option<String>, Failure> {
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::unknown(format!("{what}: {error}"))),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let program = command.get_program().to_string_lossy();
        return Err(Failure::unknown(format!("{what}: {program} says: {}", said.trim())));
    }
    let text = String::from_utf8(output.stdout);
    text.map(Some).map_err(|_| Failure::unknown(format!("{what}: what it makes is not text in UTF-8")))
}
