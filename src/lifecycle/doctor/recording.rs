//! Recordings: the events of a cluster as JSON lines, each with the time since the recording began.
//!
//! A line is `{"t": MS, "type": "ADDED"|"MODIFIED"|"DELETED", "object": …}`. An object that was modified holds the fields that
//! changed, two levels deep; `removed` lists paths that are gone, `appended` lists that hold only their new last elements, and
//! `steps` the statuses of a plan's steps. Other lines are ignored.
//!
//! An object begins with ADDED. One that is modified or deleted without that was there before the first line: the beginning of the
//! recording is missing, and that an object is not in it means nothing.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Observation;
use super::doc::Doc;

/// How long after its last event a recording still tells how things are, in milliseconds.
const BEYOND: i64 = 300_000;

/// A line that is no line of a recording.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is not an event of a recording: {problem}")]
pub struct RecordingError {
    /// Which, from 1.
    pub line: usize,
    /// Why not.
    pub problem: String,
}

/// The cluster as a recording shows it at a moment, inclusive; none for its end. One that was cut off in the middle of its last line is
/// played up to there, one without its beginning from there, and the observation says so.
///
/// # Errors
/// Another line cannot be read, or not even the first one.
pub fn replay<'t>(
    lines: impl Iterator<Item = &'t str>,
    until: Option<i64>,
) -> Result<Observation, RecordingError> {
    let mut recorder = Recorder::new();
    let mut lines = lines.enumerate().filter(|(_, text)| !text.trim().is_empty()).peekable();
    while let Some((at, text)) = lines.next() {
        match recorder.feed(text, until) {
            Ok(true) => {}
            Ok(false) => {
                // Whether the beginning is missing may show only later.
                recorder.look_ahead(std::iter::once(text).chain(lines.map(|(_, text)| text)));
                return Ok(recorder.seen);
            }
            Err(_)
                if at == 0 && is_end_of_line(text) && lines.peek().is_some_and(|(_, next)| is_line(next)) =>
            {
                recorder.is_late = true;
            }
            Err(_) if at > 0 && lines.peek().is_none() && is_cut(text) => {
                let why = format!(
                    "the recording ends in the middle of this line: nothing is known of what came later than {} ms",
                    recorder.last
                );
                recorder.seen.miss(format!("line {}", at + 1), why);
            }
            Err(problem) => return Err(RecordingError { line: at + 1, problem }),
        }
    }
    if let Some(until) = until {
        // Nothing is known of what came long after the end.
        recorder.turn_to(until.clamp(recorder.last, recorder.last + BEYOND));
    }
    Ok(recorder.seen)
}

/// The times of the first and the last event of a recording, in milliseconds since it began.
pub fn moments<'t>(lines: impl Iterator<Item = &'t str>) -> Option<(i64, i64)> {
    let mut all = lines.filter_map(|line| {
        let line = serde_json::from_str::<Line>(line).ok()?;
        line.kind.and(line.t)
    });
    let first = all.next()?;
    Some((first, all.last().unwrap_or(first)))
}

/// Whether a line is the beginning of a JSON object.
fn is_cut(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_err_and(|error| error.is_eof())
}

/// Whether a line is the end of a JSON object.
fn is_end_of_line(line: &str) -> bool {
    line.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(line).is_err()
}

/// Whether a line is of a recording.
fn is_line(line: &str) -> bool {
    serde_json::from_str::<Line>(line).is_ok_and(|line| line.t.is_some())
}

/// A line, as far as it names its object.
#[derive(Deserialize)]
struct Line {
    t: Option<i64>,
    #[serde(rename = "type")]
    kind: Option<String>,
    object: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    kind: String,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
}

/// A recording that is played line by line.
#[derive(Debug)]
pub struct Recorder {
    seen: Observation,
    /// When it began, by the clock of the cluster: times of creation are whole seconds, and seen a little later.
    origin: Option<i64>,
    last: i64,
    /// The time of the first line.
    first: Option<i64>,
    /// Whether objects were there before the first line.
    is_late: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// A recording of which nothing was played yet.
    pub fn new() -> Self {
        Self { seen: Observation::complete([], ""), origin: None, last: 0, first: None, is_late: false }
    }

    /// The cluster as it is now.
    pub fn observation(&self) -> &Observation {
        &self.seen
    }

    /// Plays a line. Says whether it was in time; one that is later than `until` is not played.
    ///
    /// # Errors
    /// Why the line cannot be read.
    pub fn feed(&mut self, text: &str, until: Option<i64>) -> Result<bool, String> {
        if text.trim().is_empty() {
            return Ok(true);
        }
        let mut line: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Some(time) = line["t"].as_i64() else { return Err("it has no time `t`".into()) };
        if let Some(until) = until.filter(|until| time > *until) {
            self.turn_to(until);
            return Ok(false);
        }
        self.first.get_or_insert(time);
        let kind = line["type"].as_str().unwrap_or("").to_owned();
        if !kind.is_empty() {
            let object = line["object"].take();
            self.play(&kind, object, &line, time)?;
        }
        self.turn_to(self.last.max(time));
        Ok(true)
    }

    /// Looks in lines that are not played for objects that were there before the first line.
    fn look_ahead<'t>(&mut self, lines: impl Iterator<Item = &'t str>) {
        let mut added = BTreeSet::new();
        for text in lines {
            let Ok(Line { kind: Some(kind), object: Some(object), .. }) = serde_json::from_str(text) else {
                continue;
            };
            let Named { kind: of, metadata: Metadata { namespace, name } } = object;
            if kind != "ADDED"
                && self.seen.get(&of, &namespace, &name).is_none()
                && !added.contains(&(of.clone(), namespace.clone(), name.clone()))
            {
                self.is_late = true;
                return self.turn_to(self.last);
            }
            added.insert((of, namespace, name));
        }
    }

    fn turn_to(&mut self, time: i64) {
        self.last = time;
        let origin = self.origin.unwrap_or(0);
        self.seen.at(origin + time, origin);
        if self.is_late {
            self.seen.lacks_beginning(origin + self.first.unwrap_or(time));
        }
    }

    fn play(&mut self, kind: &str, object: Value, line: &Value, time: i64) -> Result<(), String> {
        let named = Doc(&object);
        let (of, namespace, name) =
            (named.text("/kind").to_owned(), named.namespace().to_owned(), named.name().to_owned());
        if of.is_empty() || name.is_empty() {
            return Err("its object has no kind or no name".into());
        }
        match kind {
            "ADDED" => {
                if let Some(created) = named.created() {
                    self.origin = self.origin.max(Some(created - time));
                }
                self.seen.remove(&of, &namespace, &name);
                self.seen.add(object);
            }
            "MODIFIED" => match self.seen.document_mut(&of, &namespace, &name) {
                Some(known) => put(known, object, line)?,
                None => {
                    self.is_late = true;
                    self.seen.add(object);
                }
            },
            "DELETED" => {
                if self.seen.get(&of, &namespace, &name).is_none() {
                    self.is_late = true;
                }
                self.seen.remove(&of, &namespace, &name);
            }
            other => return Err(format!("unknown type `{other}`")),
        }
        Ok(())
    }
}

/// Puts the fields of a line over an object, two levels deep.
fn put(known: &mut Value, change: Value, line: &Value) -> Result<(), String> {
    let is_appended =
        |path: &str| line["appended"].as_array().is_some_and(|all| all.iter().any(|one| one == path));
    let (Value::Object(change), Some(fields)) = (change, known.as_object_mut()) else {
        return Err("its object is not a map".into());
    };
    for (field, value) in change {
        match (value, fields.get_mut(&field)) {
            (Value::Object(inner), Some(Value::Object(old))) => {
                for (name, value) in inner {
                    match (old.get_mut(&name), value) {
                        (Some(Value::Array(list)), Value::Array(more))
                            if is_appended(&format!("{field}.{name}")) =>
                        {
                            list.extend(more);
                        }
                        (_, value) => {
                            old.insert(name, value);
                        }
                    }
                }
            }
            (value, _) => {
                fields.insert(field, value);
            }
        }
    }
    for path in line["removed"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let pointer: String =
            parent.split('.').filter(|step| !step.is_empty()).map(|step| format!("/{step}")).collect();
        if let Some(Value::Object(map)) = known.pointer_mut(&pointer) {
            map.remove(name);
        }
    }
    let steps = line["steps"].as_array().into_iter().flatten();
    if let Some(Value::Array(plan)) = known.pointer_mut("/status/plan") {
        for (step, status) in plan.iter_mut().zip(steps) {
            if let Some(step) = step.as_object_mut() {
                step.insert("status".into(), status.clone());
            }
        }
    }
    Ok(())
}
