//! The log: a line of JSON for each event, to standard error.

use std::io;

use tracing::level_filters::LevelFilter;

/// Writes events to standard error from now on; those for developers too when `debug` is set.
pub fn start(debug: bool) {
    let level = if debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(level)
        .with_writer(io::stderr)
        .finish();
    // A log that the embedding program has set up stays.
    let _ = tracing::subscriber::set_global_default(log);
}
