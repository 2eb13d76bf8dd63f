//! `catalog serve`: a catalog server, until it is asked to end.

use std::ffi::OsString;

use olmkit_serve::compiled::FILE_NAME;
use olmkit_serve::{self as serve, Flags, ServeError};

use super::build_index;
use crate::exit::Failure;
use crate::image::Access;
use crate::input::Input;

/// Serves a catalog, and comes back when that has ended. What there is to say meanwhile is in the log.
///
/// # Errors
/// When there is nothing that could be served, or it cannot listen.
pub fn serve(flags: &Flags) -> Result<(), Failure> {
    if flags.cache_only {
        let (Some(catalog), Some(index)) = (&flags.catalog, flags.index()) else {
            return Err(Failure::usage(
                "--cache-only needs the catalog's directory, and --cache-dir or --index",
            ));
        };
        build_index::build_index(&Input::Disk(catalog.clone()), &index, &Access::default())?;
        return Ok(());
    }
    serve::start_log(flags.debug);
    let program = std::env::current_exe().map_err(Failure::incomplete)?;
    let builder: [OsString; 3] = [program.into(), "catalog".into(), "build-index".into()];
    let mut config = flags.config(builder.into());
    // What is in an image does not change: it is compiled once, and no file of it is looked at again.
    let image = flags
        .catalog
        .as_ref()
        .map(|catalog| catalog.to_string_lossy().parse::<Input>())
        .transpose()
        .map_err(Failure::usage)?;
    let mut compiled = None;
    if let Some(image @ Input::Image(_)) = &image {
        let unwritable = |error| Failure::incomplete(format!("cannot write a temporary file: {error}"));
        let directory = tempfile::Builder::new().prefix("olmkit-").tempdir().map_err(unwritable)?;
        let index = flags.index().unwrap_or_else(|| directory.path().join(FILE_NAME));
        build_index::build_index(image, &index, &Access::default())?;
        (config.catalog, config.index) = (None, Some(index));
        compiled = Some(directory);
    }
    let served = serve::run(&config);
    drop(compiled);
    served.map_err(|error| {
        flags.write_termination_log(&serve::chain(&error));
        match error {
            ServeError::Build(error) => {
                let catalog = flags.catalog.clone().unwrap_or_default();
                build_index::failure(error, &Input::Disk(catalog))
            }
            error @ ServeError::Listen { .. } => {
                Failure::incomplete(error).help("choose another with --port or --address")
            }
            error => Failure::incomplete(error),
        }
    })
}
