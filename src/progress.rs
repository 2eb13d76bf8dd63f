//! Transfers as they happen: bars on a terminal, a line for each change of state elsewhere. All on standard error.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::image::{Digest, Direction, Event, Outcome, Progress};
use crate::printable::printable;

/// A bar: what it is about, how far it is, how many bytes and how fast; in a line of 80 columns.
const BAR: &str = "{prefix} [{bar:16}] {decimal_bytes:>9} of {decimal_total_bytes} {decimal_bytes_per_sec}";
/// Redraws in a second.
const REDRAWS: u8 = 10;

/// The bars of this program: all who draw on one terminal have to know of each other.
static SCREEN: LazyLock<Option<MultiProgress>> = LazyLock::new(|| {
    let target = || ProgressDrawTarget::stderr_with_hz(REDRAWS);
    io::stderr().is_terminal().then(|| MultiProgress::with_draw_target(target()))
});

/// Whether no progress is shown at all.
static IS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// Shows no progress from now on: no bars and no lines.
pub fn hide() {
    IS_HIDDEN.store(true, Ordering::Relaxed);
}

/// Whether the user wants answers, warnings and errors only.
pub fn is_hidden() -> bool {
    IS_HIDDEN.load(Ordering::Relaxed)
}

/// Where bars are drawn that nothing else shares the terminal with.
fn target() -> ProgressDrawTarget {
    if is_hidden() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(REDRAWS) }
}

/// The bars on the terminal, if standard error is one.
pub(crate) fn screen() -> Option<MultiProgress> {
    SCREEN.clone().filter(|_| !is_hidden())
}

/// Says how far something is: above the bars, which are drawn anew below, or in a line of its own.
pub(crate) fn tell(bars: Option<&MultiProgress>, text: &str) {
    if is_hidden() {
        return;
    }
    let text = printable(text);
    // A stream that is gone cannot be told so.
    match bars {
        Some(bars) => drop(bars.println(text)),
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

/// Says something while the work goes on, on standard error.
pub fn say(text: &str) {
    // A stream that is gone cannot be told so.
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Shows a request, above the bars where there are any; also where progress is hidden, since the user asked for it.
pub fn request(line: &str) {
    match screen() {
        Some(bars) => drop(bars.println(printable(line))),
        None => say(line),
    }
}

/// Shows transfers in the way that standard error asks for.
pub fn transfers(dry_run: bool) -> Arc<dyn Progress> {
    Arc::new(Transfers { bars: screen().filter(|_| !dry_run), open: Mutex::default() })
}

/// A bar for work that is counted in pieces; it shows itself on a terminal alone, and only when there is much to do.
pub fn counted(pieces: usize) -> ProgressBar {
    /// Fewer are done before anybody could read it.
    const MANY: usize = 100;
    if pieces < MANY {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("[{bar:40}] {human_pos} of {human_len}, {per_sec}, {eta} left");
    ProgressBar::with_draw_target(Some(pieces as u64), target())
        .with_style(style.map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("=> ")))
}

/// A sign that a program is at work; it shows itself on a terminal alone, and goes when it is done.
pub fn busy(what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    let bar = ProgressBar::with_draw_target(None, target()).with_message(printable(what).into_owned());
    let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

struct Transfers {
    bars: Option<MultiProgress>,
    open: Mutex<HashMap<Digest, ProgressBar>>,
}

impl Transfers {
    fn open(&self) -> MutexGuard<'_, HashMap<Digest, ProgressBar>> {
        // Bars are inserted whole, so a panic elsewhere leaves none half made.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, text: &str) {
        tell(self.bars.as_ref(), text);
    }
}

impl Progress for Transfers {
    fn happened(&self, event: &Event<'_>) {
        match *event {
            Event::Started { digest, size, direction } => {
                let Some(bars) = &self.bars else { return };
                let style = ProgressStyle::with_template(BAR).map(|style| style.progress_chars("=> "));
                let verb = if direction == Direction::Up { "uploading" } else { "downloading" };
                // Nothing is drawn before the others know of it.
                let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::hidden())
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                    .with_prefix(format!("{verb} {}", short(digest).replace("sha256:", "")));
                self.open().insert(digest, bars.add(bar));
            }
            Event::Moved { digest, bytes } => {
                if let Some(bar) = self.open().get(&digest) {
                    bar.set_position(bytes);
                }
            }
            Event::Ended { digest, size, outcome } => {
                if let Some(bar) = self.open().remove(&digest) {
                    bar.finish_and_clear();
                }
                let how = match outcome {
                    Outcome::Uploaded => "uploaded",
                    Outcome::WouldUpload => "would be uploaded",
                    Outcome::Downloaded => "downloaded",
                    Outcome::Exists => "already exists",
                    Outcome::Cached => "already in the cache",
                    Outcome::Mounted => "mounted from another repository",
                };
                self.line(&format!("{}: {how} ({})", short(digest), bytes(size)));
            }
            Event::Stopped => {
                // What still comes from transfers finds no bar.
                for (_, bar) in self.open().drain() {
                    bar.finish_and_clear();
                }
            }
            Event::Tagged { reference } => {
                let how = if reference.contains('@') { "stored" } else { "tagged" };
                self.line(&format!("{reference}: {how}"));
            }
            Event::Waiting { reason, pause } => {
                let pause = pause.as_secs_f64();
                self.line(&format!("{reason}; trying again in {pause:.1} s"));
            }
        }
    }
}

/// Enough of a digest to tell it from others.
fn short(digest: Digest) -> String {
    digest.to_string().chars().take("sha256:".len() + 12).collect()
}

/// A number of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    let unit = |size: u64, name: &str| format!("{}.{} {name}", count / size, count % size * 10 / size);
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => unit(1_000, "kB"),
        1_000_000..1_000_000_000 => unit(1_000_000, "MB"),
        _ => unit(1_000_000_000, "GB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        let shown: Vec<String> = [0, 999, 1_000, 1_999, 13_045_678, 2_500_000_000].map(bytes).into();
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "1.9 kB", "13.0 MB", "2.5 GB"]);
    }
}
