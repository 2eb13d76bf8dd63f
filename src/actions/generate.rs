//! `bundle generate`: reads manifests and the package file, writes the bundle's directory.

use std::io;
use std::path::{Path, PathBuf};

use olmkit_bundle::finding::{Finding, Level};
use olmkit_bundle::generate::{self, Attachments, Edge, Manifests, Overrides, Package, PackageFile};
use olmkit_bundle::names::ChannelName;
use olmkit_bundle::source::Source;
use olmkit_catalog::add::Policy;

use super::catalog;
use crate::exit::Failure;
use crate::files;
use crate::report::GeneratedAnswer;

/// The package file's name, where none is given.
const PACKAGE_FILE: &str = "olmkit.yaml";

/// What to generate from, and where to.
#[derive(Debug)]
pub struct Request {
    /// Files and directories with manifests; the package file's when empty.
    pub manifests: Vec<PathBuf>,
    /// The package file; `olmkit.yaml` here when there is one.
    pub package_file: Option<PathBuf>,
    /// What the command line says instead of the package file.
    pub overrides: Overrides,
    /// A catalog that decides on the edges.
    pub catalog: Option<PathBuf>,
    /// The channel there; the default channel when absent.
    pub channel: Option<ChannelName>,
    /// How the place there is chosen; the package file's way when absent.
    pub policy: Option<Policy>,
    /// Where the bundle goes.
    pub output_dir: PathBuf,
}

/// Generates the bundle. Files are written only when no finding is an error, all of them or none.
///
/// # Errors
/// When an input cannot be read or the output not be written.
pub fn run(request: Request) -> Result<GeneratedAnswer, Failure> {
    let package_path = request.package_file.or_else(|| {
        let here = PathBuf::from(PACKAGE_FILE);
        here.is_file().then_some(here)
    });
    let package_text = package_path.as_deref().map(files::read_text).transpose()?;
    let source = package_path.as_deref().zip(package_text.as_deref());
    let file = match source
        .map(|(path, text)| PackageFile::parse(Source::new(path.display().to_string(), text)))
        .transpose()
    {
        Ok(file) => file,
        Err(findings) => return Ok(refused(findings)),
    };
    let base = package_path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let settings = file.as_ref().map(|file| &file.settings);

    let attachments = Attachments {
        description: settings
            .map(|s| &s.description_file)
            .filter(|path| !path.is_empty())
            .map(|path| files::read_text(&base.join(path)))
            .transpose()?,
        icon: settings
            .map(|s| &s.icon)
            .filter(|path| !path.is_empty())
            .map(|path| files::read(&base.join(path)))
            .transpose()?,
    };
    let package = match Package::resolve(file.as_ref(), request.overrides, attachments) {
        Ok(package) => package,
        Err(findings) => return Ok(refused(findings)),
    };
    let paths = match request.manifests {
        given if !given.is_empty() => given,
        _ => package.settings.manifests.iter().map(|path| base.join(path)).collect(),
    };
    if paths.is_empty() {
        return Err(Failure::misuse("no manifests were given")
            .help("name files or directories, or list them under `manifests` in the package file"));
    }
    let texts = read_manifests(&paths)?;
    let sources = texts.iter().map(|(path, text)| Source::new(path.display().to_string(), text)).collect();
    let manifests = Manifests::parse(sources);
    let edge = match &request.catalog {
        Some(catalog) => {
            let channel = request.channel.as_ref().unwrap_or(&package.default_channel);
            let named = package.settings.version_policy.parse().unwrap_or_default();
            let edges = catalog::edges(catalog, channel, &package, request.policy.unwrap_or(named))?;
            Edge { replaces: edges.replaces, skips: edges.skips, skip_range: edges.skip_range }
        }
        None => Edge::default(),
    };
    let created_at = source_date()?;
    let generated =
        generate::generate(&generate::Request { package: &package, manifests: &manifests, edge, created_at });
    let ours = |text: &[u8]| text.starts_with(generate::HEADER.as_bytes());
    let kept = if generated.files.is_empty() {
        Vec::new()
    } else {
        files::replace_tree(&request.output_dir, &generated.files, ours)?
    };
    Ok(GeneratedAnswer {
        csv: generated.csv,
        output_dir: request.output_dir,
        files: generated.files.into_keys().collect(),
        kept,
        findings: generated.findings,
    })
}

/// The answer when the package file itself is at fault.
fn refused(findings: Vec<Finding>) -> GeneratedAnswer {
    debug_assert!(findings.iter().any(|finding| finding.level == Level::Error));
    GeneratedAnswer { findings, ..GeneratedAnswer::default() }
}

/// Every manifest: files as given, directories with all `.yaml`, `.yml` and `.json` files below, in order.
fn read_manifests(paths: &[PathBuf]) -> Result<Vec<(PathBuf, String)>, Failure> {
    let mut texts = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            files::below(path).map_err(|error| cannot_list(path, error))?
        } else {
            vec![path.clone()]
        };
        for file in files {
            let is_manifest = file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
            if file == *path || is_manifest {
                let text = files::read_text(&file)?;
                texts.push((file, text));
            }
        }
    }
    Ok(texts)
}

fn cannot_list(path: &Path, error: io::Error) -> Failure {
    Failure::unknown(files::FileError::List { path: path.to_owned(), source: error })
}

/// `SOURCE_DATE_EPOCH` as the time of creation, so that builds which fix it get the same bytes.
fn source_date() -> Result<Option<String>, Failure> {
    let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") else { return Ok(None) };
    let seconds = text.parse::<i64>().ok().filter(|seconds| (0..=253_402_300_799).contains(seconds));
    let Some(seconds) = seconds else {
        return Err(Failure::misuse(format!(
            "`SOURCE_DATE_EPOCH` is `{text}`, not a number of seconds since 1970"
        ))
        .help("unset it, or set it as `git log -1 --format=%ct` prints it"));
    };
    Ok(Some(rfc3339(seconds)))
}

/// Seconds since 1970 as `2026-01-31T00:00:00Z`; the calendar by Howard Hinnant's `civil_from_days`.
fn rfc3339(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + carry;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), date);
        }
    }
}
