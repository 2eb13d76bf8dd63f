//! What the test programs share: programs that a test needs, and saying so when they are missing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use libtest_mimic::{Failed, Trial};

/// Programs that were missed and said so.
static MISSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Where a program is, if it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// A test that needs programs. Where one is not installed, it is listed as not run, and counts neither way.
pub(crate) fn trial(
    name: &str,
    programs: &[&str],
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let mut present = true;
    for program in programs {
        if find(program).is_none() {
            present = false;
            if MISSED.lock().expect("no test runs yet").insert((*program).to_owned()) {
                eprintln!("not run: {program} is not installed");
            }
        }
    }
    Trial::test(name, test).with_ignored_flag(!present)
}
