//! Ctrl-C and SIGTERM, once for the whole process: who changes a cluster or a registry ends in order and says what was done.
//!
//! A process that has asked to be told of a signal is never again ended by it. So without [`Work`] going on this does what the
//! system would have done; with it, code that waits for a cluster or a registry learns of the signal by [`signalled`].

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;

/// Work that only computes does not notice a signal; after this long the process ends all the same.
const UNNOTICED: Duration = Duration::from_secs(2);

static SIGNALS: OnceLock<Signals> = OnceLock::new();
/// How much work goes on. Counted before anybody listens, so that no signal falls between the two.
static GOING_ON: AtomicUsize = AtomicUsize::new(0);
/// Says that the process was interrupted, where the work itself cannot.
static LAST_WORD: Mutex<Option<fn()>> = Mutex::new(None);

struct Signals {
    happened: watch::Sender<bool>,
    noticed: watch::Sender<bool>,
}

/// Work that ends in order when there is a signal, as long as the value lives.
#[must_use]
pub struct Work(());

/// What says that the process was interrupted when the work that goes on does not notice a signal.
pub fn on_unnoticed(last_word: fn()) {
    *LAST_WORD.lock().unwrap_or_else(PoisonError::into_inner) = Some(last_word);
}

/// Work begins that is to end in order.
pub fn work() -> Work {
    GOING_ON.fetch_add(1, Ordering::SeqCst);
    SIGNALS.get_or_init(|| {
        // Without this thread, signals end the process at once, as they do by default.
        let (ready, is_ready) = mpsc::channel();
        let _ = thread::Builder::new().name("signals".into()).spawn(move || listen(ready));
        // It has let go of the sender when it listens, and when it never will.
        let _ = is_ready.recv();
        Signals { happened: watch::Sender::new(false), noticed: watch::Sender::new(false) }
    });
    Work(())
}

impl Drop for Work {
    fn drop(&mut self) {
        GOING_ON.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for a signal; for ever when no work was ever begun.
pub async fn signalled() {
    let Some(signals) = SIGNALS.get() else { return std::future::pending().await };
    // The sender is static, so the wait ends with a signal only.
    let _ = signals.happened.subscribe().wait_for(|happened| *happened).await;
    signals.noticed.send_replace(true);
}

/// Whether there was a signal, for work that waits for nothing and has to end in order.
pub fn was_signalled() -> bool {
    let Some(signals) = SIGNALS.get() else { return false };
    let happened = *signals.happened.borrow();
    if happened {
        signals.noticed.send_replace(true);
    }
    happened
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
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // The code that started this thread is about to set it.
        let signals = SIGNALS.wait();
        // Counted before they are told: work that is told ends, and still has to say what it leaves behind.
        let idle = GOING_ON.load(Ordering::SeqCst) == 0;
        signals.happened.send_replace(true);
        if idle {
            process::exit(Exit::Interrupted as i32);
        }
        let mut noticed = signals.noticed.subscribe();
        let busy = async {
            if tokio::time::timeout(UNNOTICED, noticed.wait_for(|noticed| *noticed)).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // The second time somebody means it.
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = busy => {
                if let Some(last_word) = *LAST_WORD.lock().unwrap_or_else(PoisonError::into_inner) {
                    last_word();
                }
            }
        }
        process::exit(Exit::Interrupted as i32);
    });
}
