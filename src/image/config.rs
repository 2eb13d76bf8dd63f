//! How an image is run and labelled: the part of its configuration that callers choose.

use std::collections::{BTreeMap, BTreeSet};

use oci_spec::image as oci;
use serde_json::{Map, Value, json};

use super::Platform;
use super::json::canonical;
use super::layer::Layer;

/// The time that images claim to be from. The field could be left out, but readers then show the year 1 or nothing;
/// the epoch is what other reproducible builders write, and what people recognise as "not a real time".
const CREATED: &str = "1970-01-01T00:00:00Z";

/// How an image is run and labelled. Everything empty is left out of the image; the working directory is always `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
    /// The command that a container runs.
    pub entrypoint: Vec<String>,
    /// Arguments after the entrypoint, which a pod can replace.
    pub cmd: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// The user, and optionally the group, that a container runs as: `1001` or `1001:0`.
    pub user: Option<String>,
    /// TCP ports that a container listens on.
    pub ports: BTreeSet<u16>,
}

impl Config {
    /// The configuration blob's bytes for an image of these layers.
    pub(super) fn encode(&self, platform: &Platform, layers: &[Layer]) -> Vec<u8> {
        let mut run = oci::Config::default();
        run.set_working_dir(Some("/".into()));
        run.set_user(self.user.clone());
        run.set_entrypoint(non_empty(self.entrypoint.clone()));
        run.set_cmd(non_empty(self.cmd.clone()));
        run.set_env(non_empty(self.env.iter().map(|(name, value)| format!("{name}={value}")).collect()));
        run.set_exposed_ports(non_empty(self.ports.iter().map(|port| format!("{port}/tcp")).collect()));
        if !self.labels.is_empty() {
            run.set_labels(Some(self.labels.clone().into_iter().collect()));
        }

        let mut rootfs = oci::RootFs::default();
        rootfs.set_diff_ids(layers.iter().map(|layer| layer.diff_id().to_string()).collect());

        // Readers that count want one history entry for each layer.
        let mut history = oci::History::default();
        history.set_created(Some(CREATED.into())).set_created_by(Some("olmkit".into()));

        let mut configuration = oci::ImageConfiguration::default();
        // The default platform is the host's, so it has to be set.
        configuration.set_os(platform.os().into()).set_architecture(platform.architecture().into());
        configuration.set_variant(platform.variant().map(Into::into));
        configuration.set_created(Some(CREATED.into()));
        configuration.set_config(Some(run));
        configuration.set_rootfs(rootfs);
        configuration.set_history(Some(vec![history; layers.len()]));
        canonical(&configuration)
    }

    /// What a configuration says; ports of other protocols than TCP are left out.
    pub(super) fn of(configuration: &oci::ImageConfiguration) -> Self {
        let Some(run) = configuration.config() else { return Self::default() };
        let words = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let pair = |entry: String| entry.split_once('=').map(|(name, value)| (name.into(), value.into()));
        let port = |port: String| port.strip_suffix("/tcp").unwrap_or(&port).parse().ok();
        Self {
            labels: run.labels().clone().unwrap_or_default().into_iter().collect(),
            entrypoint: words(run.entrypoint()),
            cmd: words(run.cmd()),
            env: words(run.env()).into_iter().filter_map(pair).collect(),
            user: run.user().clone().filter(|user| !user.is_empty()),
            ports: words(run.exposed_ports()).into_iter().filter_map(port).collect(),
        }
    }

    /// The configuration blob's bytes for an image with these layers over those of a base, whose configuration is given.
    /// What the base says stays, unless this says otherwise; with another entrypoint, the base's arguments make no sense.
    pub(super) fn encode_on(&self, mut base: Map<String, Value>, layers: &[Layer]) -> Vec<u8> {
        let mut run = object(base.remove("config"));
        let mut labels = object(run.remove("Labels"));
        labels.extend(self.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
        let mut ports = object(run.remove("ExposedPorts"));
        ports.extend(self.ports.iter().map(|port| (format!("{port}/tcp"), json!({}))));
        let mut env = list(run.remove("Env"));
        env.retain(|entry| {
            let name = entry.as_str().and_then(|entry| entry.split('=').next()).unwrap_or_default();
            !self.env.contains_key(name)
        });
        env.extend(self.env.iter().map(|(name, value)| json!(format!("{name}={value}"))));

        run.insert("WorkingDir".into(), json!("/"));
        if !self.entrypoint.is_empty() {
            run.insert("Entrypoint".into(), json!(self.entrypoint));
            run.remove("Cmd");
        }
        if !self.cmd.is_empty() {
            run.insert("Cmd".into(), json!(self.cmd));
        }
        if let Some(user) = &self.user {
            run.insert("User".into(), json!(user));
        }
        for (name, value, is_empty) in [
            ("Labels", json!(labels), labels.is_empty()),
            ("ExposedPorts", json!(ports), ports.is_empty()),
            ("Env", json!(env), env.is_empty()),
        ] {
            if !is_empty {
                run.insert(name.into(), value);
            }
        }
        base.insert("config".into(), json!(run));
        base.insert("created".into(), json!(CREATED));
        // A base without a history has none for its layers; ours alone would be taken for theirs.
        if let Some(history) = base.get_mut("history").and_then(Value::as_array_mut) {
            history.extend(layers.iter().map(|_| json!({"created": CREATED, "created_by": "olmkit"})));
        }
        if let Some(diff_ids) = base.get_mut("rootfs").and_then(|rootfs| rootfs["diff_ids"].as_array_mut()) {
            diff_ids.extend(layers.iter().map(|layer| json!(layer.diff_id().to_string())));
        }
        canonical(&base)
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    if let Some(Value::Object(object)) = value { object } else { Map::new() }
}

fn list(value: Option<Value>) -> Vec<Value> {
    if let Some(Value::Array(list)) = value { list } else { Vec::new() }
}

fn non_empty(list: Vec<String>) -> Option<Vec<String>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn text(config: &Config, platform: &str, layers: &[Layer]) -> String {
        let bytes = config.encode(&platform.parse().unwrap(), layers);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_empty_is_left_out() {
        assert_snapshot!(text(&Config::default(), "linux/amd64", &[]), @r#"{"architecture":"amd64","config":{"WorkingDir":"/"},"created":"1970-01-01T00:00:00Z","history":[],"os":"linux","rootfs":{"diff_ids":[],"type":"layers"}}"#);
    }

    #[test]
    fn everything_at_once() {
        let mut tree = crate::image::FileTree::new();
        tree.add_file("a", "a").unwrap();
        let layer = Layer::build(&tree).unwrap();
        let pairs =
            |list: &[(&str, &str)]| list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let config = Config {
            labels: pairs(&[("z.last", "1"), ("a.first", "two")]),
            entrypoint: vec!["/bin/serve".into()],
            cmd: vec!["--port".into(), "50051".into()],
            env: pairs(&[("Z", "1"), ("A", "2")]),
            user: Some("1001".into()),
            ports: [50051, 8080].into(),
        };
        assert_snapshot!(text(&config, "linux/arm/v7", &[layer.clone(), layer]), @r#"{"architecture":"arm","config":{"Cmd":["--port","50051"],"Entrypoint":["/bin/serve"],"Env":["A=2","Z=1"],"ExposedPorts":{"50051/tcp":{},"8080/tcp":{}},"Labels":{"a.first":"two","z.last":"1"},"User":"1001","WorkingDir":"/"},"created":"1970-01-01T00:00:00Z","history":[{"created":"1970-01-01T00:00:00Z","created_by":"olmkit"},{"created":"1970-01-01T00:00:00Z","created_by":"olmkit"}],"os":"linux","rootfs":{"diff_ids":["sha256:45c1fb9fee2b481828d5bfa936b6ac00d8fd3531fcc8cf785d8a4f6b438a5637","sha256:45c1fb9fee2b481828d5bfa936b6ac00d8fd3531fcc8cf785d8a4f6b438a5637"],"type":"layers"},"variant":"v7"}"#);
    }
}
