//! Programs of others: run to their end, or ended with all that they started when they take too long or print too much.

mod line;

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::interrupt;
use crate::limits::{Limits, Over};

pub(crate) use line::CommandLine;

/// How often a program is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);
/// What is kept of standard error, in bytes.
const MAX_SAID: u64 = 1 << 20;
/// How long standard error may take after the end: a program that was left in the background may keep it open for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a program ended.
pub(crate) enum Ended {
    /// By itself.
    Itself(Output),
    /// It was ended, because its time was over.
    TimedOut,
    /// It was ended, because it printed too much.
    TooMuch,
    /// It was ended, because we are.
    Interrupted,
}

/// What a program leaves.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// The beginning of standard error, where the command pipes it.
    pub(crate) stderr: Vec<u8>,
}

/// Runs a program until it ends or its time is over, and reads so many bytes of what it prints at most.
///
/// It gets a process group of its own, and what it has started ends with it.
///
/// # Errors
/// When it cannot be run, or what it prints cannot be read.
pub(crate) fn run(command: &mut Command, limits: Limits, most: u64) -> io::Result<Ended> {
    run_in(command.stdin(Stdio::null()).process_group(0), None, limits, most, stop_group)
}

/// As [`run`], with a text on standard input.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_with_input(
    command: &mut Command,
    input: String,
    limits: Limits,
    most: u64,
) -> io::Result<Ended> {
    run_in(command.stdin(Stdio::piped()).process_group(0), Some(input), limits, most, stop_group)
}

/// As [`run`], of a program that may ask the user something. It stays in our process group: from another one it could not read from
/// the terminal. Only the program itself is ended.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_interactive(command: &mut Command, limits: Limits, most: u64) -> io::Result<Ended> {
    run_in(command.stdin(Stdio::inherit()), None, limits, most, |child| drop(child.kill()))
}

fn run_in(
    command: &mut Command,
    input: Option<String>,
    limits: Limits,
    most: u64,
    end: impl Fn(&mut Child),
) -> io::Result<Ended> {
    let _work = interrupt::work();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let stop = |child: &mut Child, ended| {
        end(child);
        child.wait().map(|_| ended)
    };
    if let Some((mut pipe, input)) = child.stdin.take().zip(input) {
        // Not waited for: both pipes would fill up if the answer were read only after everything is asked. Where it cannot be
        // written, the program says why.
        thread::spawn(move || pipe.write_all(input.as_bytes()));
    }
    let printed = child.stdout.take().map(|pipe| read(pipe, most + 1, false));
    let said = child.stderr.take().map(|pipe| read(pipe, MAX_SAID, true));
    let stdout = match printed {
        None => Vec::new(),
        Some(printed) => loop {
            match printed.recv_timeout(POLL) {
                Ok(bytes) => break bytes?,
                Err(RecvTimeoutError::Disconnected) => break Vec::new(),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(ended) = is_over(limits) {
                        return stop(&mut child, ended);
                    }
                }
            }
        },
    };
    if stdout.len() as u64 > most {
        return stop(&mut child, Ended::TooMuch);
    }
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Some(ended) = is_over(limits) {
            return stop(&mut child, ended);
        }
        thread::sleep(POLL);
    };
    let stderr = said.and_then(|said| said.recv_timeout(LAST_WORDS).ok());
    Ok(Ended::Itself(Output { status, stdout, stderr: stderr.transpose()?.unwrap_or_default() }))
}

fn is_over(limits: Limits) -> Option<Ended> {
    limits.check().err().map(|over| match over {
        Over::Interrupted => Ended::Interrupted,
        Over::TimedOut(_) => Ended::TimedOut,
    })
}

/// Ends a program and all that is in its process group.
fn stop_group(child: &mut Child) {
    // A group without processes is what is wanted.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Reads a pipe in a thread that is not waited for: a process that was left in the background may keep it open for ever. Where
/// the rest is drained, the program can go on printing.
fn read(mut pipe: impl Read + Send + 'static, most: u64, drain: bool) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let result = pipe.by_ref().take(most).read_to_end(&mut bytes);
        if drain && result.is_ok() {
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        let _ = sender.send(result.map(|_| bytes));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str, limit: Duration, most: u64) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stderr(Stdio::piped());
        run(&mut command, Limits::begin(limit), most).expect("sh runs")
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_program_ends_by_itself() {
        let Ended::Itself(output) = shell("echo out; echo err >&2; exit 3", LONG, 100) else { panic!() };
        assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_takes_too_long_ends_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("sleep 600 & echo $! > '{}'; wait", pid.display());
        assert!(matches!(shell(&script, Duration::from_secs(2), 100), Ended::TimedOut));
        let child: u32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        // Killed, it is gone or waits for its new parent to notice.
        let is_gone = || {
            let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_gone() {
            assert!(Instant::now() < deadline, "process {child} still runs");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended() {
        assert!(matches!(shell("exec yes", LONG, 1000), Ended::TooMuch));
        let Ended::Itself(output) = shell("head -c 3000000 /dev/zero >&2", LONG, 0) else { panic!() };
        assert_eq!(output.stderr.len() as u64, MAX_SAID);
    }
}
