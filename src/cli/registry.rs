//! The flags of every verb that reads or writes images.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::actions::build::{Output, reference_of};
use crate::exit::Failure;
use crate::files;
use crate::image::{
    Access, Compression, DEFAULT_CACHE_LIMIT, GivenCredentials, GivenCredentialsError, Options, Place,
    PlaceError,
};
use crate::input::Input;
use crate::limits::Limits;
use crate::progress;

/// The largest text on standard input that is taken for credentials, in bytes.
const MAX_CREDENTIALS: u64 = 1 << 20;

/// Access to registries, with a timeout for transfers.
#[derive(Debug, Args)]
pub(super) struct RegistryFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Timeout for all transfers together: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Registries")]
    pub(super) timeout: Option<Duration>,
}

impl RegistryFlags {
    /// Access as the flags say.
    ///
    /// # Errors
    /// Credentials are said to be where they are not.
    pub(super) fn access(self) -> Result<Access, Failure> {
        self.connection.access(self.timeout, false)
    }
}

/// Access to registries.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Registries")]
pub(super) struct ConnectionFlags {
    /// Credentials for a registry or some of its repositories. `@FILE` or `-` (standard input) instead of the password, or of the
    /// whole value, keeps it out of the process list [default: those of `podman login` and `docker login`]
    #[arg(long, value_name = "HOST=USER:PASSWORD|@FILE|-", hide_env_values = true)]
    creds: Vec<String>,
    /// Credentials file to use instead of podman's and docker's [env: REGISTRY_AUTH_FILE]
    #[arg(long, value_name = "FILE")]
    authfile: Option<PathBuf>,
    /// File with CA certificates to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,
    /// Registry that serves plain HTTP; not needed for registries on this machine
    #[arg(long, value_name = "HOST[:PORT]")]
    plain_http: Vec<String>,
    /// Do not verify this registry's certificate (insecure)
    #[arg(long, value_name = "HOST[:PORT]")]
    insecure_skip_tls_verify: Vec<String>,
    /// Number of blobs to transfer in parallel
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// Cache directory for fetched blobs [env: OLMKIT_CACHE_DIR] [default: `olmkit` in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Maximum size of the cache in MiB; 0 disables it
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_CACHE_LIMIT >> 20)]
    cache_limit: u64,
}

impl ConnectionFlags {
    /// Access as the flags say, for so long from now on.
    ///
    /// # Errors
    /// Credentials are said to be where they are not.
    pub(super) fn access(self, timeout: Option<Duration>, dry_run: bool) -> Result<Access, Failure> {
        if let Some(path) = &self.authfile {
            // Where no registry is asked, nobody else would notice.
            let text = files::read_text(path)?;
            let json = serde_json::from_str::<serde::de::IgnoredAny>(&text);
            if let Err(error) =
                json.map(drop).or_else(|error| if text.trim().is_empty() { Ok(()) } else { Err(error) })
            {
                let place = format!("line {}, column {}", error.line(), error.column());
                return Err(Failure::usage(format!(
                    "`{}` is not a credentials file: it is not JSON at {place}",
                    path.display()
                ))
                .help("pass a file as `podman login --authfile` or `docker login` writes it"));
            }
        }
        let limits = Limits::begin(timeout);
        let credentials =
            self.creds.iter().map(|text| credentials(text, limits)).collect::<Result<Vec<_>, _>>()?;
        let options = Options {
            credentials: credentials.concat(),
            auth_file: self.authfile.or_else(|| path_from("REGISTRY_AUTH_FILE")),
            ca_files: self.ca_file,
            plain_http: self.plain_http.into_iter().collect(),
            insecure: self.insecure_skip_tls_verify.into_iter().collect(),
            timeout,
            parallel: self.parallel.into(),
            cache_dir: self.cache_dir.or_else(|| path_from("OLMKIT_CACHE_DIR")),
            cache_limit: self.cache_limit.saturating_mul(1 << 20),
            dry_run,
            ..Options::default()
        };
        Ok(Access::new(options, progress::transfers(dry_run)))
    }
}

/// A path from the environment, where an empty variable counts as one that is not set, as it does for podman.
pub(super) fn path_from(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// How an image is written.
#[derive(Debug, Args)]
pub(super) struct WriteFlags {
    /// Additional tag for the image in the same repository or layout
    #[arg(long, value_name = "TAG")]
    also_tag: Vec<String>,
    /// Print what would be sent without writing anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

impl WriteFlags {
    /// Access as the flags say, and the other tags.
    ///
    /// # Errors
    /// As [`RegistryFlags::access`].
    pub(super) fn access(self) -> Result<(Access, Vec<String>), Failure> {
        let RegistryFlags { connection, timeout } = self.registry;
        Ok((connection.access(timeout, self.dry_run)?, self.also_tag))
    }
}

/// How an image is built, and its destination.
#[derive(Debug, Args)]
pub(super) struct BuildFlags {
    /// Destination: `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE`, or a registry's `HOST/NAME:TAG`
    #[arg(long, value_name = "PLACE", value_parser = destination, required_unless_present = "push")]
    to: Option<Place>,
    /// Also push the image to its own reference: the tag in `--to`, as in `oci:DIR:HOST/NAME:TAG`, or without `--to` that of
    /// the image it is built from
    #[arg(long)]
    push: bool,
    /// Compression of the layers [default: gzip for bundles, zstd for catalogs]
    #[arg(long, value_enum, value_name = "KIND")]
    compression: Option<Packing>,
    #[command(flatten)]
    write: WriteFlags,
}

impl BuildFlags {
    /// Access as the flags say, and what becomes of the image of `input`; its layers are packed as usual unless something is
    /// said.
    ///
    /// # Errors
    /// As [`RegistryFlags::access`]; or there is no saying where the image goes.
    pub(super) fn output(self, input: &Input, usual: Compression) -> Result<(Access, Output), Failure> {
        let to = match self.to {
            Some(to) => to,
            None => reference_of(input, "name the destination: `--to HOST/NAME:TAG`")?,
        };
        let (access, also_tag) = self.write.access()?;
        let compression = match self.compression {
            None => usual,
            Some(Packing::Gzip) => Compression::Gzip,
            Some(Packing::Zstd) => Compression::Zstd,
        };
        Ok((access, Output { to, also_tag, push: self.push, compression }))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Packing {
    /// Supported by every client
    Gzip,
    /// Smaller and faster; for clients from about 2022 on
    Zstd,
}

/// A place to write to, with the way out in the message when it is none.
pub(super) fn destination(text: &str) -> Result<Place, String> {
    text.parse().map_err(|error: PlaceError| match (std::error::Error::source(&error), error.help()) {
        (Some(source), Some(help)) => format!("{error}: {source}\n  help: {help}"),
        (None, Some(help)) => format!("{error}\n  help: {help}"),
        _ => error.to_string(),
    })
}

/// `HOST=USER:PASSWORD`, or where such lines are.
fn credentials(text: &str, limits: Limits) -> Result<Vec<GivenCredentials>, Failure> {
    let bad = |error: GivenCredentialsError| {
        Failure::usage(error).help(
            "write `HOST=USER:@FILE` with the password in a file, or `@FILE` or `-` with a line `HOST=USER:PASSWORD` \
             for each registry",
        )
    };
    if let Some(place) = elsewhere(text) {
        let lines = place.read("a line `HOST=USER:PASSWORD` for each registry", limits)?;
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        return lines.map(|line| line.parse().map_err(bad)).collect();
    }
    let given: GivenCredentials = text.parse().map_err(bad)?;
    let given = given.try_map_password(|password| match elsewhere(&password) {
        Some(place) => {
            Ok::<_, Failure>(place.read("the password", limits)?.trim_end_matches(['\r', '\n']).to_owned())
        }
        None => Ok(password),
    });
    Ok(vec![given?])
}

/// Where a secret is that is not in the command line.
enum Elsewhere {
    File(PathBuf),
    Input,
}

fn elsewhere(text: &str) -> Option<Elsewhere> {
    match text.strip_prefix('@') {
        Some(path) => Some(Elsewhere::File(path.into())),
        None if text == "-" => Some(Elsewhere::Input),
        None => None,
    }
}

impl Elsewhere {
    /// Its text, which is `what`. On a terminal, the user is asked for it.
    fn read(self, what: &str, limits: Limits) -> Result<String, Failure> {
        match self {
            Self::File(path) => Ok(files::read_text(&path)?),
            Self::Input => {
                if std::io::stdin().is_terminal() {
                    progress::say(&format!("type {what}, then press Enter and Ctrl-D"));
                }
                let mut text = String::new();
                let read = files::Pipe::stdin(limits).take(MAX_CREDENTIALS).read_to_string(&mut text);
                let failed =
                    |source| files::FileError::Read { path: Path::new("standard input").into(), source };
                read.map_err(failed)?;
                Ok(text)
            }
        }
    }
}

/// Seconds, or numbers with units: `90`, `90s`, `5m`, `1h30m`, `500ms`; not nothing.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration_or_zero(text)?;
    if duration.is_zero() { Err("expected more than 0".into()) } else { Ok(duration) }
}

/// As [`duration`], or `0`.
pub(super) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    parts(text)
        .ok_or_else(|| "expected seconds, or numbers with `h`, `m`, `s` or `ms`, such as `1m30s`".into())
}

/// The sum of the parts, whose units have to become smaller; a number alone is seconds.
fn parts(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let (mut sum, mut rest) = (Duration::ZERO, text);
    for (unit, length) in [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        if after[..letters] == *unit {
            sum += Duration::from_millis(u64::from(number.parse::<u32>().ok()?) * length);
            rest = &after[letters..];
        }
        if rest.is_empty() {
            return Some(sum);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_it_makes_sense_a_duration_may_be_zero() {
        let given = [("90", 90_000), ("90s", 90_000), ("5m", 300_000), ("1h", 3_600_000), ("1m30s", 90_000)];
        for (text, milliseconds) in given.into_iter().chain([("500ms", 500), ("1h2m3s4ms", 3_723_004)]) {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["0", "0s", "0m"] {
            assert_eq!(duration_or_zero(text), Ok(Duration::ZERO), "{text}");
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "s", "x", "-1", "1.5", "99999999999", "30s1m", "1m1m", "1m30", "1 m", "5M", "5µs"] {
            assert!(duration_or_zero(text).is_err(), "{text}");
        }
    }
}
