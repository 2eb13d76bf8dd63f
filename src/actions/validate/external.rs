//! Checks of the user's own: programs that follow the contract of operator-sdk's external validators
//! (`internal/validate/external.go`): one argument, the bundle's directory; one `ManifestResult` in JSON on standard output.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use olmkit_bundle::finding::{Code, Finding, Level, Place};
use olmkit_bundle::load::BundleFiles;
use serde::Deserialize;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::input::Input;
use crate::limits::Limits;
use crate::program::{self, CommandLine, Ended};
use crate::shell::argument;

/// What a check of the user's own has to say.
pub(crate) static CUSTOM_CHECK: Code = Code {
    name: "custom-check",
    level: Level::Error,
    suite: "custom",
    docs: include_str!("custom_check.md"),
};

/// The longest result of a program, in bytes.
const MAX_RESULT: u64 = 8 << 20;

/// A program that could not tell what it thinks of a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum CheckError {
    /// It cannot be run.
    #[error("cannot run `{}`", .program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It failed. Errors in the bundle are no failure.
    #[error("`{}` failed on `{bundle}`: {status}", .program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// The bundle.
        bundle: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// It did not end.
    #[error("`{}` did not end on `{bundle}` within {} s", .program.display(), .limit.as_secs())]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// The bundle.
        bundle: String,
        /// The time that it was given.
        limit: Duration,
    },
    /// It printed more than a result.
    #[error("`{}` printed more than {} MiB for `{bundle}`", .program.display(), MAX_RESULT >> 20)]
    TooMuch {
        /// The program.
        program: PathBuf,
        /// The bundle.
        bundle: String,
    },
    /// It printed something else.
    #[error("`{}` printed no result for `{bundle}`", .program.display())]
    NoResult {
        /// The program.
        program: PathBuf,
        /// The bundle.
        bundle: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// What such a program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ManifestResult {
    #[serde(default)]
    name: String,
    errors: Option<Vec<Problem>>,
    warnings: Option<Vec<Problem>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
#[derive(Default)]
struct Problem {
    #[serde(rename = "Type")]
    kind: String,
    level: String,
    field: String,
    bad_value: serde_json::Value,
    detail: String,
}

/// Runs a program on a bundle, for so long at most. What it writes to standard error goes to ours.
pub(super) fn run(
    program: &Path,
    bundle: &Input,
    files: &BundleFiles,
    limit: Duration,
) -> Result<Vec<Finding>, Failure> {
    // An image has no directory; the program gets one with the same files.
    let unpacked = match bundle {
        Input::Disk(_) => None,
        Input::Image(_) => Some(write(files)?),
    };
    let directory = match (bundle, &unpacked) {
        (Input::Disk(path), _) => path.as_path(),
        (_, Some(unpacked)) => unpacked.path(),
        (Input::Image(_), None) => Path::new(""),
    };
    let program_error = |source| CheckError::Run { program: program.to_owned(), source };
    let name = || bundle.to_string();
    let mut command = CommandLine::new(program).path(directory).command().map_err(Failure::failed)?;
    let ended = program::run(&mut command, Limits::begin(limit), MAX_RESULT);
    let failed = |error: io::Error| {
        // As in a shell, a name without a slash is looked for in PATH alone.
        let is_here = error.kind() == io::ErrorKind::NotFound && program.is_file();
        let failure = Failure::incomplete(program_error(error));
        let here = format!("--check {}", argument(Path::new(".").join(program).display()));
        if is_here { failure.help(format!("write `{here}` for the one in this directory")) } else { failure }
    };
    let output = match ended.map_err(failed)? {
        Ended::Itself(output) => output,
        Ended::TimedOut => {
            let error = CheckError::TimedOut { program: program.to_owned(), bundle: name(), limit };
            let failure = Failure::incomplete(error).help("give it more time with `--timeout`");
            return Err(Failure { exit: Exit::TimedOut, ..failure });
        }
        Ended::TooMuch => {
            let error = CheckError::TooMuch { program: program.to_owned(), bundle: name() };
            return Err(Failure::incomplete(error));
        }
        Ended::Interrupted => return Err(Failure::interrupted()),
    };
    if !output.status.success() {
        let error = CheckError::Failed { program: program.to_owned(), bundle: name(), status: output.status };
        return Err(Failure::incomplete(error).help("check programs must exit with 0 and print their result"));
    }
    let result: ManifestResult = serde_json::from_slice(&output.stdout).map_err(|source| {
        let error = CheckError::NoResult { program: program.to_owned(), bundle: name(), source };
        Failure::incomplete(error).help("print `{\"Name\": …, \"Errors\": […], \"Warnings\": […]}`")
    })?;
    let errors = result.errors.into_iter().flatten().map(|problem| (Level::Error, problem));
    let warnings = result.warnings.into_iter().flatten().map(|problem| (Level::Warning, problem));
    let finding = |(level, problem): (Level, Problem)| {
        let mut finding = Finding::new(&CUSTOM_CHECK, problem.message())
            .at(Place::file(&files.name))
            .subject(if result.name.is_empty() { files.name.clone() } else { result.name.clone() })
            .help(format!("`{}` says so", program.display()));
        (finding.level, finding.input) = (level, files.name.clone());
        finding
    };
    Ok(errors.chain(warnings).map(finding).collect())
}

impl Problem {
    fn message(&self) -> String {
        let field = if self.field.is_empty() { String::new() } else { format!("`{}`: ", self.field) };
        let value = match &self.bad_value {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) if text.is_empty() => String::new(),
            value => format!(" (found `{value}`)"),
        };
        let what = if self.detail.is_empty() { &self.kind } else { &self.detail };
        format!("{field}{what}{value}")
    }
}

/// The text files of a bundle in a directory of their own.
fn write(files: &BundleFiles) -> Result<tempfile::TempDir, Failure> {
    let directory = tempfile::tempdir().map_err(Failure::incomplete)?;
    for file in &files.files {
        let path = directory.path().join(&file.path);
        if let (Some(text), Some(parent)) = (file.content.text(), path.parent()) {
            std::fs::create_dir_all(parent).map_err(Failure::incomplete)?;
            std::fs::write(&path, text)
                .map_err(|source| files::FileError::Write { path, source })
                .map_err(Failure::incomplete)?;
        }
    }
    Ok(directory)
}
