//! Signals to the programs that tests start.

use std::process::Command;

/// Sends a signal by its name, such as `TERM`. Every shell has `kill` built in; as a program, not every machine has it.
pub(crate) fn send(name: &str, process: u32) {
    let line = format!("kill -s {name} {process}");
    let sent = Command::new("sh").args(["-c", &line]).status();
    assert!(sent.is_ok_and(|status| status.success()), "`{line}` failed");
}
