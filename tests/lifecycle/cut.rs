//! Recordings without their beginning: what existed before the first line is not in them, so that something is absent means nothing.

use std::collections::BTreeMap;

use olmkit::lifecycle::doctor::{Cause, Diagnosis, Recorder, Scope, State, diagnose, replay};

use crate::doctor::{events_of, recording, recordings};

/// What OLM itself says in a status, and nothing but an absent object contradicts.
const TOLD: [&str; 6] = [
    "unpack-failed",
    "bundle-image-pull",
    "csv-failed",
    "plan-failed",
    "unsupported-install-mode",
    "dependency-missing",
];

/// The diagnosis at every sixth moment of those at which a recording has events.
fn moments(text: &str) -> BTreeMap<i64, Diagnosis> {
    let time = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["t"].as_i64().unwrap();
    let last_lines: BTreeMap<i64, usize> = text.lines().map(time).zip(0..).collect();
    let looked_at: BTreeMap<usize, i64> = last_lines.iter().step_by(6).map(|(t, line)| (*line, *t)).collect();
    let mut recorder = Recorder::new();
    let mut found = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        recorder.feed(line, None).unwrap();
        if let Some(time) = looked_at.get(&number) {
            found.insert(*time, diagnose(recorder.observation(), &Scope::default()));
        }
    }
    found
}

/// A recording from an event on, at a moment.
fn cut(text: &str, event: usize, at: Option<i64>) -> Diagnosis {
    diagnose(&replay(text.lines().skip(event), at).unwrap(), &Scope::default())
}

fn says_so(diagnosis: &Diagnosis) -> bool {
    diagnosis.not_seen.iter().any(|one| one.what == "the beginning of the recording")
}

#[test]
fn nothing_is_concluded_from_what_a_recording_without_its_beginning_does_not_have() {
    for (name, text) in recordings() {
        let text = events_of(&text);
        let whole = moments(&text);
        let count = text.lines().count();
        for event in [1, 5, 21, 40, 90].into_iter().filter(|event| event + 1 < count) {
            for (at, known) in &whole {
                let found = cut(&text, event, Some(*at));
                let place = || format!("{name} from {event} at {at}: {found:#?}");
                let is_known = |cause: &Cause| {
                    let mut all = known.causes.iter();
                    // It may be told of another object, where the one that says it is not there.
                    let is_same =
                        |one: &Cause| one.object == cause.object || one.subscription == cause.subscription;
                    all.any(|one| one.code == cause.code && is_same(one))
                };
                let mut made_up = found
                    .causes
                    .iter()
                    .filter(|one| one.code != "not-collected" && !TOLD.contains(&one.code) && !is_known(one));
                assert!(made_up.next().is_none(), "{}", place());
                assert!(says_so(&found), "{}", place());
                let is_healthy = found.state == State::Healthy && !found.operators.is_empty();
                // OLM writes that an OperatorGroup is gone seconds later.
                let is_stuck = known.causes.iter().any(|one| one.code != "no-operator-group");
                assert!(!is_healthy || !is_stuck, "{}", place());
            }
        }
    }
}

#[test]
fn a_whole_recording_is_not_taken_for_one_without_its_beginning() {
    for (name, text) in recordings() {
        let found = diagnose(&replay(text.lines(), None).unwrap(), &Scope::default());
        assert!(!says_so(&found), "{name}");
    }
}

/// Nobody can tell what an operator waits for when its OperatorGroup may be missing from the recording alone.
#[test]
fn what_may_have_been_there_before_is_asked_for() {
    let text = events_of(&recording("15a"));
    let whole = diagnose(&replay(text.lines(), Some(60_000)).unwrap(), &Scope::default());
    assert_eq!(whole.causes[0].code, "no-operator-group");
    let found = cut(&text, 1, Some(60_000));
    let [cause] = &found.causes[..] else { panic!("{found:#?}") };
    assert_eq!((cause.code, found.state), ("not-collected", State::Waiting), "{found:#?}");
    assert!(
        cause
            .sentence
            .contains("only a part of the recording could be read, so objects of kind OperatorGroup"),
        "{}",
        cause.sentence
    );
}

#[test]
fn a_recording_that_begins_in_the_middle_of_a_line_is_played_from_the_next_one() {
    let text = events_of(&recording("15a"));
    let half = &text[text.lines().next().unwrap().len() / 2..];
    let seen = replay(half.lines(), Some(60_000)).unwrap();
    assert!(says_so(&diagnose(&seen, &Scope::default())));
    // What is no recording at all is still refused.
    assert!(replay("{\"t\":}\nnothing".lines(), None).is_err());
}
