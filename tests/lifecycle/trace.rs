//! Recordings: `tests/fixtures/olm-traces`, whose README says how they are written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olmkit::lifecycle::api::Key;
use serde_json::{Map, Value};

/// A recording.
pub(crate) struct Trace {
    /// The file's name without its ending.
    pub(crate) name: String,
    pub(crate) entries: Vec<Entry>,
}

/// A line of a recording.
pub(crate) struct Entry {
    /// In milliseconds.
    pub(crate) at: u64,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// An object as a whole, as it is now or was last.
    Added(Value),
    Modified(Value),
    Deleted(Value),
    /// What the administrator did.
    Action(String),
    Log,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces")
}

impl Trace {
    /// Every recording, by name.
    pub(crate) fn all() -> Vec<Self> {
        let mut names: Vec<String> = std::fs::read_dir(root())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert!(names.len() > 50, "recordings are missing: {names:?}");
        names.iter().map(|name| Self::read(name)).collect()
    }

    /// The recording whose name begins with a number.
    pub(crate) fn of(number: &str) -> Self {
        let all = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name());
        let name = all.map(|name| name.to_string_lossy().into_owned());
        let mut name =
            name.filter(|name| name.starts_with(&format!("{number}-")) && name.ends_with(".jsonl"));
        Self::read(name.next().unwrap_or_else(|| panic!("no recording {number}")).trim_end_matches(".jsonl"))
    }

    fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(root().join(format!("{name}.jsonl"))).unwrap();
        let mut objects: BTreeMap<Key, Value> = BTreeMap::new();
        let entries = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let at = line["t"].as_u64().unwrap();
            let what = match line["type"].as_str().map(str::to_owned) {
                Some(kind) => {
                    let object = line["object"].take();
                    let key = Key::of(&object);
                    match kind.as_str() {
                        "ADDED" => {
                            objects.insert(key, object.clone());
                            What::Added(object)
                        }
                        "MODIFIED" => {
                            let known = objects.entry(key).or_insert_with(|| Value::Object(Map::new()));
                            put(known, object, &line);
                            What::Modified(known.clone())
                        }
                        "DELETED" => What::Deleted(objects.remove(&key).unwrap_or(object)),
                        other => panic!("{other}"),
                    }
                }
                None => match line["action"].as_str() {
                    Some(action) => What::Action(action.to_owned()),
                    None => What::Log,
                },
            };
            Entry { at, what }
        });
        Self { name: name.to_owned(), entries: entries.collect() }
    }

    /// The inputs of the scenario.
    pub(crate) fn inputs(&self) -> PathBuf {
        root().join("inputs").join(self.name.split('-').next().unwrap())
    }
}

/// Puts the fields of a line over an object, two levels deep.
fn put(known: &mut Value, change: Value, line: &Value) {
    let appended =
        |path: &str| line["appended"].as_array().is_some_and(|all| all.iter().any(|one| one == path));
    let Value::Object(change) = change else { panic!("an object is a map") };
    for (field, value) in change {
        match value {
            Value::Object(inner) if known[&field].is_object() => {
                for (name, value) in inner {
                    if appended(&format!("{field}.{name}")) {
                        let more = value.as_array().unwrap().clone();
                        known[&field][&name].as_array_mut().unwrap().extend(more);
                    } else {
                        known[&field][&name] = value;
                    }
                }
            }
            value => known[&field] = value,
        }
    }
    for path in line["removed"].as_array().into_iter().flatten() {
        let mut at = &mut *known;
        let mut path: Vec<&str> = path.as_str().unwrap().split('.').collect();
        let last = path.pop().unwrap();
        for step in path {
            at = &mut at[step];
        }
        if let Some(map) = at.as_object_mut() {
            map.remove(last);
        }
    }
    for (at, status) in line["steps"].as_array().into_iter().flatten().enumerate() {
        known["status"]["plan"][at]["status"] = status.clone();
    }
}
