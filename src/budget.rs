//! The processor time that a command may take for what it reads: the bound where nobody thought of another one.
//!
//! What an input may hold is bounded where it is read, by an error that names it. This holds for the rest, in commands that only
//! compute; those that wait for a cluster have a deadline ([`crate::limits`]).

use std::time::Duration;
use std::{fs, io, thread};

use crate::limits::span;

/// How many times as long a build takes that is not optimised.
const SLOWNESS: u32 = if cfg!(debug_assertions) { 10 } else { 1 };
/// How often the time is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Processor time for a command, and more for what it reads.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    free: Duration,
    for_mebibyte: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        // About a hundred times what the slowest commands take.
        let minute = Duration::from_secs(60) * SLOWNESS;
        Self { free: minute, for_mebibyte: minute }
    }
}

/// A command that has taken all of its time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "stopped after {} of processor time: a command may take {}, and as long again for each MiB that it reads; this one has read {read} bytes",
    span(*spent), span(budget.free)
)]
pub struct Overdrawn {
    spent: Duration,
    read: u64,
    budget: Budget,
}

impl Budget {
    /// Looks at the time of this process as long as it runs, and does something once there is none left. Only Linux tells what a
    /// process has read: elsewhere there is no bound.
    pub fn watch(self, over: impl FnOnce(Overdrawn) + Send + 'static) {
        // Without this thread, the command has no bound either.
        let _ = thread::Builder::new().name("budget".into()).spawn(move || {
            loop {
                thread::sleep(INTERVAL);
                match spent().and_then(|spent| self.overdrawn(spent, bytes_read)) {
                    Ok(None) => {}
                    Ok(Some(overdrawn)) => return over(overdrawn),
                    Err(_) => return,
                }
            }
        });
    }

    fn overdrawn(
        self,
        spent: Duration,
        read: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Option<Overdrawn>> {
        if spent <= self.free {
            return Ok(None);
        }
        let read = read()?;
        let granted =
            self.free.as_secs_f64() + self.for_mebibyte.as_secs_f64() * read as f64 / f64::from(1 << 20);
        Ok((spent.as_secs_f64() > granted).then_some(Overdrawn { spent, read, budget: self }))
    }
}

/// The processor time of all threads of this process, which Linux counts in hundredths of a second.
fn spent() -> io::Result<Duration> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The name of the program stands in brackets, and may hold others. Times in user and system mode are the 14th and 15th field.
    let ticks = text.rsplit_once(')').and_then(|(_, rest)| {
        let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
        Some(fields.next()?.ok()? + fields.next()?.ok()?)
    });
    ticks.map(|ticks| Duration::from_millis(10 * ticks)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The bytes that this process has read, of files and pipes.
fn bytes_read() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/io")?;
    let read = text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
    read.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_is_read_buys_time() {
        let budget = Budget { free: Duration::from_secs(60), for_mebibyte: Duration::from_secs(60) };
        let overdrawn = |seconds, read| budget.overdrawn(Duration::from_secs(seconds), || Ok(read)).unwrap();
        assert!(
            overdrawn(60, 0).is_none()
                && overdrawn(89, 1 << 19).is_none()
                && overdrawn(240, 3 << 20).is_none()
        );
        let said = overdrawn(91, 1 << 19).unwrap().to_string();
        assert_eq!(
            said,
            "stopped after 91 s of processor time: a command may take 1m, and as long again for each MiB that it reads; this one has read 524288 bytes"
        );
    }

    #[test]
    fn a_process_without_time_left_is_told_so() {
        let before = bytes_read().unwrap();
        fs::read(file!()).or_else(|_| fs::read("src/budget.rs")).unwrap();
        assert!(bytes_read().unwrap() > before + 1_000);
        while spent().unwrap().is_zero() {}
        let (told, hears) = mpsc::channel();
        Budget { free: Duration::ZERO, for_mebibyte: Duration::ZERO }
            .watch(move |overdrawn| told.send(overdrawn).unwrap());
        assert!(hears.recv().unwrap().spent > Duration::ZERO);
    }
}
