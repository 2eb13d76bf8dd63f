//! Ctrl-C and SIGTERM: a transfer ends in order, and says what it has left behind.
//!
//! A process that has once asked to be told of a signal is never again ended by it; so outside of transfers, this does
//! what the system would have done.

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;

static SIGNALS: OnceLock<Signals> = OnceLock::new();

struct Signals {
    happened: watch::Sender<bool>,
    transfers: AtomicUsize,
}

/// A transfer that wants to be told.
pub(super) struct Interrupt(&'static Signals);

/// Tells of signals from now on.
pub(super) fn watch() -> Interrupt {
    let signals = SIGNALS.get_or_init(|| {
        // Without this thread, signals end the process at once, as they do by default.
        let (ready, is_ready) = mpsc::channel();
        let _ = thread::Builder::new().name("signals".into()).spawn(move || listen(ready));
        // It has let go of the sender when it listens, and when it never will.
        let _ = is_ready.recv();
        Signals { happened: watch::Sender::new(false), transfers: AtomicUsize::new(0) }
    });
    signals.transfers.fetch_add(1, Ordering::Relaxed);
    Interrupt(signals)
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.transfers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Waits for a signal.
    pub(super) async fn happened(&self) {
        // The sender is static, so the wait ends with a signal only.
        let _ = self.0.happened.subscribe().wait_for(|happened| *happened).await;
    }
}

fn listen(ready: mpsc::Sender<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        drop(ready);
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let Some(signals) = SIGNALS.get() else { process::exit(Exit::Interrupted as i32) };
            // Counted before they are told: a transfer that is told ends, and still has to say what it leaves behind.
            let idle = signals.transfers.load(Ordering::Relaxed) == 0;
            // The second time somebody means it.
            let again = signals.happened.send_replace(true);
            if idle || again {
                process::exit(Exit::Interrupted as i32);
            }
        }
    });
}
