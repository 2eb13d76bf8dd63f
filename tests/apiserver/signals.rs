//! Signals at many moments of each verb that changes a cluster.

use std::process::{Output, Stdio};
use std::time::Duration;

use olmkit::lifecycle::api::known;
use olmkit::lifecycle::cluster::Cluster as _;

use crate::olm::{Olm, prepare};
use crate::server::{ADMIN, Server};
use crate::{command, installed, signal, text};

/// The moments at which each verb is interrupted, in milliseconds; some are after its end.
const MOMENTS: [u64; 8] = [0, 5, 40, 120, 260, 400, 900, 1_400];

/// Runs a verb and sends it a signal at a moment.
fn interrupted(server: &Server, words: &[&str], moment: u64, name: &str) -> Output {
    let child = command(server, ADMIN, words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::park_timeout(Duration::from_millis(moment));
    // If it is over by now, nobody has asked for its exit code yet, so its number is still its own.
    signal::send(name, child.id());
    child.wait_with_output().unwrap()
}

/// Nothing of an operator is in the namespace any more.
#[track_caller]
fn nothing_is_left(server: &Server) {
    for resource in [&*known::SUBSCRIPTION, &known::CSV, &known::INSTALL_PLAN, &known::OPERATOR_GROUP] {
        let left = server.connect().list(resource, Some("signals")).unwrap();
        assert!(left.is_empty(), "{}: {left:#?}", resource.kind);
    }
}

pub(super) fn ctrl_c_at_any_moment_says_what_was_done_and_how_to_resume() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    let place = ["-n", "signals", "--settle", "1s"];
    let mut said = 0;
    for (round, moment) in MOMENTS.into_iter().enumerate() {
        let name = if round % 2 == 0 { "INT" } else { "TERM" };
        let verbs: [&[&str]; 3] = [
            &["install", "demo", "--version", "0.1.0", "--watch", "signals"],
            &["upgrade", "demo"],
            &["uninstall", "demo"],
        ];
        for verb in verbs {
            let words = [verb, &place].concat();
            let output = interrupted(&server, &words, moment, name);
            let told = text(&output);
            match output.status.code() {
                Some(0) => {}
                Some(130) => {
                    said += 1;
                    assert!(told.contains("error: interrupted"), "{words:?} at {moment}: {told}");
                    assert!(told.contains("run the same command again"), "{words:?} at {moment}: {told}");
                    let done = told.contains("help: done: ") || told.contains("nothing was changed");
                    assert!(done, "{words:?} at {moment}: {told}");
                }
                // Before the program has asked to be told, the system ends it; nothing was done by then.
                None if told.is_empty() => {}
                code => panic!("{words:?} at {moment}: {code:?}: {told}"),
            }
            // The same command again ends at its goal, or finds that there is nothing left to do.
            let again = command(&server, ADMIN, &words).output().unwrap();
            let nothing_left = verb[0] == "uninstall" && text(&again).contains("there is no Subscription");
            assert!(
                again.status.success() || nothing_left,
                "{words:?} again, after {moment}: {}",
                text(&again)
            );
            match verb[0] {
                "install" => assert_eq!(installed(&server, "signals"), "demo.v0.1.0"),
                "upgrade" => assert_eq!(installed(&server, "signals"), "demo.v0.3.0"),
                _ => nothing_is_left(&server),
            }
        }
    }
    assert!(said > 7, "only {said} commands were interrupted");
}
