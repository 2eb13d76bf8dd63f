//! The passwords in a cluster's Secret, and how far nodes and pods are with a change of them.
//!
//! The Secret may have the key [`PREVIOUS`] beside the password. While it does, every node accepts both, so that clients can move
//! to the new password one after another. Nothing else is stored: what nodes accept is asked of them, and when the Secret was
//! written says Kubernetes.

use std::time::Duration;

use k8s_openapi::{api::core::v1::Secret, jiff::Timestamp};
use kube::ResourceExt;

use super::problem::Problem;
use crate::{
    plan::Pod,
    server::{Access, Password, passwords},
};

/// The key of the password before the present one.
pub const PREVIOUS: &str = "previousPassword";

/// By then the kubelet has brought a Secret into the files of running pods. A probe that knows only the old password would fail.
const REFRESH: Duration = Duration::from_secs(120);

/// The passwords of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The password.
    pub password: Password,
    /// The one before it, as long as nodes should accept it.
    pub previous: Option<Password>,
    /// Why the previous one cannot be used: then no node's passwords are changed.
    pub problem: Option<Problem>,
    /// When the Secret was last written.
    written: Option<Timestamp>,
}

impl Credentials {
    /// Reads the Secret.
    ///
    /// # Errors
    /// When the password is missing, or cannot be written to redis.conf.
    pub fn of(secret: &Secret, key: &str) -> Result<Self, Problem> {
        let name = secret.name_any();
        let value = |key: &str| {
            let value = secret.data.as_ref()?.get(key)?;
            Some(std::str::from_utf8(&value.0).unwrap_or("\0").trim_end_matches('\n'))
        };
        let Some(password) = value(key) else { return Err(Problem::KeyMissing { name, key: key.into() }) };
        if !is_usable(password) {
            return Err(Problem::PasswordUnusable { name });
        }
        let unusable = |why| Some(Problem::PreviousPasswordUnusable { name: name.clone(), why });
        let (previous, problem) = match value(PREVIOUS).filter(|_| key != PREVIOUS) {
            None => (None, None),
            Some("") => (None, unusable("is empty")),
            Some(previous) if previous == password => (None, unusable("is the same as the password")),
            Some(previous) if !is_usable(previous) => {
                (None, unusable("is not 8 to 512 printable ASCII characters without `\"` and `\\`"))
            }
            Some(previous) => (Some(previous), None),
        };
        Ok(Self {
            password: Password::new(password.into()),
            previous: previous.map(|word| Password::new(word.into())),
            problem,
            written: written(secret),
        })
    }

    /// Whether the Secret, as it is, has reached the files of all pods. A Secret whose last write is unknown never has.
    pub fn has_reached_files(&self, now: Timestamp) -> bool {
        has_reached_files(self.written, now)
    }
}

/// When something was last added to a Secret or changed in it. Kubernetes notes no time when a key is only removed.
pub(super) fn written(secret: &Secret) -> Option<Timestamp> {
    let writes = secret.metadata.managed_fields.iter().flatten();
    writes.filter_map(|entry| Some(entry.time.as_ref()?.0)).max()
}

/// Whether a Secret that was last written then has reached the files of all pods.
pub(super) fn has_reached_files(written: Option<Timestamp>, now: Timestamp) -> bool {
    let age = written.and_then(|written| Duration::try_from(now.duration_since(written)).ok());
    age.is_some_and(|age| age >= REFRESH)
}

fn is_usable(password: &str) -> bool {
    (8..=512).contains(&password.len())
        && password.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\')
}

/// How far the nodes are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rotation {
    /// They accept the password of the Secret and no other.
    #[default]
    None,
    /// These pods do not have the password of the Secret everywhere yet.
    Adding(Vec<String>),
    /// They accept the password and the previous one, and wait for the user.
    Both,
    /// These pods accept a password that is not in the Secret any more.
    Removing(Vec<String>),
}

impl Rotation {
    /// How far these nodes are.
    pub fn of(access: &Access, pods: &[Pod]) -> Self {
        let nodes = || pods.iter().filter_map(|pod| Some((pod, pod.passwords.as_ref()?)));
        let names = |pods: Vec<&Pod>| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
        let wanted = passwords::wanted(access);
        // At the address of a pod that is not ready there may be a node of another cluster.
        let rejects = |pod: &Pod| pod.password_rejected && pod.containers_ready;
        if access.password.is_none()
            || access.previous.is_none()
                && !pods.iter().any(rejects)
                && nodes().all(|(_, node)| node.accepted == wanted && passwords::has(access, node))
        {
            return Self::None;
        }
        let lacking = pods.iter().filter(|pod| match &pod.passwords {
            Some(node) => !passwords::has(access, node),
            None => passwords::unknown(std::slice::from_ref(*pod)).next().is_some(),
        });
        let lacking: Vec<_> = lacking.collect();
        if !lacking.is_empty() {
            return Self::Adding(names(lacking));
        }
        let more: Vec<_> = nodes().filter(|(_, node)| node.accepted != wanted).map(|(pod, _)| pod).collect();
        if more.is_empty() { Self::Both } else { Self::Removing(names(more)) }
    }

    /// Whether anything is left to do for the operator.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Adding(_) | Self::Removing(_))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::{metrics::Metrics, plan::Passwords};

    fn secret(data: Value) -> Secret {
        serde_json::from_value(json!({
            "metadata": {"name": "auth", "managedFields": [
                {"manager": "a", "time": "2026-01-01T00:00:00Z"}, {"manager": "b", "time": "2026-01-01T00:10:00Z"},
            ]},
            "stringData": data,
        }))
        .map(|mut secret: Secret| {
            let text = secret.string_data.take().unwrap_or_default();
            let bytes = |(key, value): (String, String)| (key, k8s_openapi::ByteString(value.into_bytes()));
            secret.data = Some(text.into_iter().map(bytes).collect());
            secret
        })
        .unwrap()
    }

    #[test]
    fn what_a_secret_says() {
        let read = |data: Value| Credentials::of(&secret(data), "word");
        let words = |data: Value| {
            let read = read(data).unwrap();
            let word = |word: &Password| word.reveal().to_owned();
            (word(&read.password), read.previous.as_ref().map(word), read.problem.map(|why| why.to_string()))
        };
        let new = || "new password".to_owned();
        assert_eq!(words(json!({"word": "new password\n"})), (new(), None, None));
        let both = json!({"word": "new password", "previousPassword": "old password\n"});
        assert_eq!(words(both), (new(), Some("old password".into()), None));
        for (previous, why) in [
            ("", "is empty"),
            ("new password", "is the same as the password"),
            ("short", "is not 8 to 512"),
            ("with \" quotes", "is not 8 to 512"),
            ("with \\ in it", "is not 8 to 512"),
            ("two\nlines there", "is not 8 to 512"),
            ("not äscii at all", "is not 8 to 512"),
        ] {
            let (_, found, problem) = words(json!({"word": "new password", "previousPassword": previous}));
            assert!(found.is_none() && problem.as_ref().unwrap().contains(why), "{previous}: {problem:?}");
        }
        assert!(matches!(read(json!({"previousPassword": "old password"})), Err(Problem::KeyMissing { .. })));
        assert!(matches!(read(json!({"word": "a\"b c d e f"})), Err(Problem::PasswordUnusable { .. })));
        let own = Credentials::of(&secret(json!({"previousPassword": "new password"})), PREVIOUS).unwrap();
        assert_eq!((own.previous, own.problem), (None, None), "it is the key of the password");
    }

    /// Whatever changed last: the kubelet refreshes all of it.
    #[test]
    fn files_have_what_was_written_two_minutes_ago() {
        let mut found = Credentials::of(&secret(json!({"word": "new password"})), "word").unwrap();
        let reached = |found: &Credentials, now: &str| found.has_reached_files(now.parse().unwrap());
        assert!(!reached(&found, "2026-01-01T00:11:59Z") && !reached(&found, "2026-01-01T00:02:00Z"));
        assert!(reached(&found, "2026-01-01T00:12:00Z"));
        found.written = None;
        assert!(!reached(&found, "2026-01-01T01:00:00Z"));
    }

    #[test]
    fn how_far_nodes_are() {
        let word = |word: &str| Password::new(word.into());
        let access = |previous: Option<&str>| {
            let (password, previous) = (Some(word("new")), previous.map(word));
            Access {
                port: 1,
                host: None,
                trust: None,
                password,
                previous,
                metrics: Arc::new(Metrics::default()),
            }
        };
        let pod = |name: &str, accepted: &[&str], with: &str| {
            let accepted = accepted.iter().map(|one| word(one).hash()).collect();
            let passwords = Passwords { accepted, replicates_with: Some(word(with).hash()) };
            let ip = Some([10, 0, 0, 1].into());
            Pod { name: name.into(), ip, passwords: Some(passwords), ..Pod::default() }
        };
        let silent = |name: &str| Pod { passwords: None, ..pod(name, &[], "") };
        let check = |previous: Option<&str>, pods: &[Pod], expected: Rotation| {
            assert_eq!(Rotation::of(&access(previous), pods), expected);
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let rejects = |containers_ready| Pod { password_rejected: true, containers_ready, ..silent("d") };
        check(None, &[rejects(true)], Rotation::Adding(names(&["d"])));
        check(None, &[rejects(false)], Rotation::None);
        let (old, both, new) =
            (pod("a", &["old"], "old"), pod("b", &["new", "old"], "new"), pod("c", &["new"], "new"));
        let half = pod("d", &["new", "old"], "old");
        check(None, &[new.clone(), silent("x")], Rotation::None);
        check(None, &[new.clone(), both.clone()], Rotation::Removing(names(&["b"])));
        check(None, &[half.clone(), both.clone()], Rotation::Adding(names(&["d"])));
        check(Some("old"), &[old, both.clone(), new, half], Rotation::Adding(names(&["a", "c", "d"])));
        check(Some("old"), &[both.clone(), silent("x")], Rotation::Adding(names(&["x"])));
        check(Some("old"), &[both], Rotation::Both);
    }
}
