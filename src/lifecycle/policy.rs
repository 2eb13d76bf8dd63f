//! Which InstallPlans may be approved without anybody looking: a policy, written in YAML, and what of a plan does not meet it. Pure.
//!
//! ```yaml
//! registries: [registry.example.com/team]   # images come from these registries or repositories
//! upgrade: patch                             # patch, minor or any
//! deny: [new-cluster-rules, new-webhooks, unpinned-images, other-operators, breaking-changes, new-installs]
//! ```

use std::collections::BTreeSet;

use olmkit_bundle::suggest::did_you_mean;
use olmkit_bundle::version::Version;
use olmkit_bundle::yaml::{self, Node};
use schemars::JsonSchema;
use serde::Serialize;

use super::preview::{PlannedCsv, Preview};

/// What a plan may contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Registries and repositories that images may come from; no list for any, an empty one for none.
    pub registries: Option<Vec<String>>,
    /// How far versions may go.
    pub upgrade: Upgrade,
    /// What a plan must not contain.
    pub deny: BTreeSet<Deny>,
}

/// How far a version may go at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// Anywhere.
    #[default]
    Any,
    /// Not to another major version.
    Minor,
    /// Not to another minor version.
    Patch,
}

macro_rules! denials {
    ($($variant:ident = $name:literal $doc:literal;)+) => {
        /// What a plan must not contain.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Deny {
            $(#[doc = $doc] $variant,)+
        }

        impl Deny {
            /// All of them with their names.
            pub const ALL: &[(&'static str, Self)] = &[$(($name, Self::$variant)),+];

            /// The name in a policy.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

denials! {
    NewClusterRules = "new-cluster-rules" "Rights in all namespaces that the replaced version does not have.";
    NewWebhooks = "new-webhooks" "Webhooks that the replaced version does not have.";
    UnpinnedImages = "unpinned-images" "Images that are named only by a tag.";
    OtherOperators = "other-operators" "Versions of other Subscriptions, and dependencies.";
    BreakingChanges = "breaking-changes" "What `bundle diff` calls an error, and what OLM will refuse.";
    NewInstalls = "new-installs" "Versions that replace nothing.";
}

/// A text that is no policy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is not YAML.
    #[error("not valid YAML: {0}")]
    Syntax(String),
    /// It is not a map.
    #[error("expected a map with `registries`, `upgrade` or `deny`")]
    NotAMap,
    /// A key that means nothing.
    #[error("unknown key `{key}`")]
    Key {
        /// The key.
        key: String,
        /// The way out.
        help: String,
    },
    /// A key that is given twice, of which one would not count.
    #[error("duplicate key `{key}`")]
    Duplicate {
        /// The key.
        key: String,
    },
    /// Documents that would not count.
    #[error("more than one YAML document: a policy is a single one")]
    Documents,
    /// A value that means nothing.
    #[error("`{key}` is `{value}`, expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: String,
    },
}

impl PolicyError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Key { help, .. } => Some(help.clone()),
            _ => None,
        }
    }
}

const KEYS: [&str; 3] = ["registries", "upgrade", "deny"];

impl Policy {
    /// Reads a policy.
    ///
    /// ```
    /// use olmkit::lifecycle::policy::{Deny, Policy, Upgrade};
    /// let policy = Policy::parse("{registries: [r.example.com], upgrade: patch, deny: [new-webhooks]}").unwrap();
    /// assert_eq!(policy.upgrade, Upgrade::Patch);
    /// assert!(policy.deny.contains(&Deny::NewWebhooks));
    /// assert!(Policy::parse("registry: r.example.com").is_err());
    /// ```
    ///
    /// # Errors
    /// It is not YAML, or says something that no policy can.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let syntax = |error: yaml::SyntaxError| PolicyError::Syntax(error.to_string());
        let document = yaml::first_document(text).map_err(syntax)?;
        for more in yaml::documents(text).skip(1) {
            if !more.map_err(syntax)?.root.to_json().is_null() {
                return Err(PolicyError::Documents);
            }
        }
        if let Some(key) = document.notes.iter().find_map(duplicate) {
            return Err(PolicyError::Duplicate { key });
        }
        let map = document.root.as_mapping().ok_or(PolicyError::NotAMap)?;
        let mut policy = Self::default();
        for entry in map.iter() {
            match entry.key.as_ref() {
                "registries" => policy.registries = Some(texts("registries", &entry.value)?),
                "upgrade" => {
                    let text = entry.value.as_str().unwrap_or("");
                    policy.upgrade = match text {
                        "any" => Upgrade::Any,
                        "minor" => Upgrade::Minor,
                        "patch" => Upgrade::Patch,
                        other => return Err(unexpected("upgrade", other, "`patch`, `minor` or `any`")),
                    };
                }
                "deny" => {
                    for text in texts("deny", &entry.value)? {
                        let found = Deny::ALL.iter().find(|(name, _)| *name == text);
                        let names: Vec<&str> = Deny::ALL.iter().map(|(name, _)| *name).collect();
                        let expected = format!("one of `{}`", names.join("`, `"));
                        policy.deny.insert(found.ok_or_else(|| unexpected("deny", &text, &expected))?.1);
                    }
                }
                other => {
                    let help = did_you_mean(other, KEYS);
                    let help =
                        help.unwrap_or_else(|| format!("a policy has the keys `{}`", KEYS.join("`, `")));
                    return Err(PolicyError::Key { key: other.to_owned(), help });
                }
            }
        }
        Ok(policy)
    }

    /// What of a plan does not meet the policy; `csv` is the version that was asked for.
    pub fn check(&self, preview: &Preview, csv: &str) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut say = |rule: &'static str, csv: &str, sentence: String| {
            found.push(Violation { rule, csv: csv.to_owned(), sentence });
        };
        for why in &preview.not_read {
            say("not-read", "", format!("part of the plan cannot be read: {why}"));
        }
        let denies = |what: Deny| self.deny.contains(&what);
        // What OLM will refuse depends on it.
        for what in preview.not_checked.iter().filter(|_| denies(Deny::BreakingChanges)) {
            say("not-read", "", format!("part of the cluster cannot be checked: {what}"));
        }
        for one in &preview.csvs {
            let name = one.name.as_str();
            if denies(Deny::OtherOperators) && name != csv {
                say("other-operators", name, format!("the plan also installs `{name}`"));
            }
            if denies(Deny::NewInstalls) && one.replaces.is_empty() {
                say("new-installs", name, format!("`{name}` is a new install"));
            }
            if let Some(sentence) = self.too_far(one) {
                say("upgrade", name, sentence);
            }
            for image in one.images.iter().filter(|image| !self.allows(image)) {
                say(
                    "registries",
                    name,
                    format!("the image `{image}` comes from a registry that is not allowed"),
                );
            }
            if denies(Deny::UnpinnedImages) {
                for image in one.images.iter().filter(|image| !image.contains("@sha256:")) {
                    say("unpinned-images", name, format!("the image `{image}` is not pinned by a digest"));
                }
            }
            if denies(Deny::NewClusterRules) {
                for rule in &one.new_cluster_rules {
                    say("new-cluster-rules", name, rule.clone());
                }
            }
            if denies(Deny::NewWebhooks) {
                for webhook in &one.new_webhooks {
                    say("new-webhooks", name, format!("`{name}` has the new webhook {webhook}"));
                }
            }
            if denies(Deny::BreakingChanges) {
                for one in one.findings.iter().filter(|one| one.level == "error") {
                    say("breaking-changes", name, format!("{} [{}]", one.message, one.code));
                }
                for blocker in &one.blockers {
                    say("breaking-changes", name, blocker.to_string());
                }
            }
        }
        found
    }

    fn allows(&self, image: &str) -> bool {
        let image = with_registry(image);
        let Some(registries) = &self.registries else { return true };
        registries.iter().any(|allowed| {
            let allowed = allowed.trim_end_matches('/');
            image.strip_prefix(allowed).is_some_and(|rest| {
                // The end of a name, not a part of it: a port is part of the host.
                rest.is_empty()
                    || rest.starts_with('/')
                    || allowed.contains('/') && rest.starts_with([':', '@'])
            })
        })
    }

    fn too_far(&self, csv: &PlannedCsv) -> Option<String> {
        if self.upgrade == Upgrade::Any || csv.replaces.is_empty() {
            return None;
        }
        let (name, from, to) = (&csv.name, &csv.replaces_version, &csv.version);
        let (Ok(old), Ok(new)) = (Version::parse(from), Version::parse(to)) else {
            return Some(format!("`{name}` goes from `{from}` to `{to}`, which cannot be compared"));
        };
        if new < old {
            return Some(format!("`{name}` goes back from {from} to {to}, and only upgrades are allowed"));
        }
        if old.pre.is_empty() && !new.pre.is_empty() {
            return Some(format!(
                "`{name}` goes from {from} to the pre-release {to}, and only releases are allowed"
            ));
        }
        let (is_near, allowed) = match self.upgrade {
            Upgrade::Patch => ((old.major, old.minor) == (new.major, new.minor), "patch versions"),
            _ => (old.major == new.major, "minor and patch versions"),
        };
        (!is_near).then(|| format!("`{name}` goes from {from} to {to}, and only {allowed} are allowed"))
    }
}

/// What does not meet a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    /// The rule of the policy.
    pub rule: &'static str,
    /// The ClusterServiceVersion; empty for the whole plan.
    pub csv: String,
    /// What does not meet it.
    pub sentence: String,
}

/// An image with the registry that is meant where none is named.
fn with_registry(image: &str) -> String {
    let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
    match image.split_once('/') {
        Some((first, _)) if is_host(first) => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
        None => format!("docker.io/library/{image}"),
    }
}

/// The duplicate key, if a note is about one.
fn duplicate(note: &yaml::Note) -> Option<String> {
    match note {
        yaml::Note::DuplicateKey { key, .. } => Some(key.clone()),
        _ => None,
    }
}

fn unexpected(key: &'static str, value: &str, expected: &str) -> PolicyError {
    PolicyError::Value { key, value: value.to_owned(), expected: expected.to_owned() }
}

fn texts(key: &'static str, node: &Node<'_>) -> Result<Vec<String>, PolicyError> {
    let wrong = |node: &Node<'_>| unexpected(key, &node.to_json().to_string(), "a list of texts");
    let all = node.as_sequence().ok_or_else(|| wrong(node))?;
    all.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(|| wrong(one))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::blockers::Blocker;

    fn preview() -> Preview {
        let csv = PlannedCsv {
            name: "demo.v0.2.0".into(),
            version: "0.2.0".into(),
            replaces: "demo.v0.1.0".into(),
            replaces_version: "0.1.0".into(),
            images: vec!["r.example.com/team/demo:1".into(), "r.example.com:5000/x@sha256:00".into()],
            new_cluster_rules: vec!["`demo` may now do more".into()],
            new_webhooks: vec!["ValidatingAdmissionWebhook vdemo.example.com".into()],
            blockers: vec![Blocker {
                code: "crd-invalidates-resources",
                sentence: "`ns/example` does not fit".into(),
                ..Blocker::default()
            }],
            ..PlannedCsv::default()
        };
        let other = PlannedCsv { name: "db.v1.0.0".into(), version: "1.0.0".into(), ..PlannedCsv::default() };
        Preview { csvs: vec![csv, other], ..Preview::default() }
    }

    #[track_caller]
    fn check(policy: &str, expected: &[&str]) {
        let violations = Policy::parse(policy).unwrap().check(&preview(), "demo.v0.2.0");
        let found: Vec<String> = violations.into_iter().map(|one| one.sentence).collect();
        assert_eq!(found, expected, "{policy}");
    }

    #[test]
    fn each_rule_names_what_it_does_not_allow() {
        check("{}", &[]);
        check("upgrade: minor", &[]);
        check(
            "upgrade: patch",
            &["`demo.v0.2.0` goes from 0.1.0 to 0.2.0, and only patch versions are allowed"],
        );
        check("deny: [other-operators]", &["the plan also installs `db.v1.0.0`"]);
        check("deny: [new-installs]", &["`db.v1.0.0` is a new install"]);
        check("deny: [new-cluster-rules]", &["`demo` may now do more"]);
        check(
            "deny: [new-webhooks]",
            &["`demo.v0.2.0` has the new webhook ValidatingAdmissionWebhook vdemo.example.com"],
        );
        check("deny: [breaking-changes]", &["`ns/example` does not fit [crd-invalidates-resources]"]);
        check(
            "deny: [unpinned-images]",
            &["the image `r.example.com/team/demo:1` is not pinned by a digest"],
        );
        check(
            "registries: [r.example.com]",
            &["the image `r.example.com:5000/x@sha256:00` comes from a registry that is not allowed"],
        );
        check("registries: [r.example.com/team/demo, 'r.example.com:5000']", &[]);
        check(
            "registries: [r.example.com/te, r.example.com:5000/x]",
            &["the image `r.example.com/team/demo:1` comes from a registry that is not allowed"],
        );
    }

    #[test]
    fn a_policy_with_an_empty_list_or_a_part_that_would_not_count_does_not_let_plans_pass() {
        let found = Policy::parse("registries: []").unwrap().check(&preview(), "demo.v0.2.0");
        assert_eq!(found.iter().filter(|one| one.rule == "registries").count(), 2);
        let error = |text: &str| Policy::parse(text).unwrap_err();
        let twice = "deny: [new-cluster-rules]\ndeny: [new-installs]\n";
        assert_eq!(error(twice), PolicyError::Duplicate { key: "deny".into() });
        assert_eq!(error("deny: [new-installs]\n---\nregistries: [a.example]\n"), PolicyError::Documents);
        assert!(Policy::parse("---\nupgrade: patch\n---\n").is_ok());
    }

    #[test]
    fn a_downgrade_and_a_pre_release_are_no_patch() {
        let violations = |from: &str, to: &str| {
            let (replaces_version, version) = (from.into(), to.into());
            let csv = PlannedCsv {
                name: "a".into(),
                replaces: "b".into(),
                replaces_version,
                version,
                ..PlannedCsv::default()
            };
            let preview = Preview { csvs: vec![csv], ..Preview::default() };
            let found = Policy::parse("upgrade: patch").unwrap().check(&preview, "a");
            found.into_iter().map(|one| one.sentence).collect::<Vec<_>>()
        };
        assert_eq!(violations("1.2.3", "1.2.4"), [""; 0]);
        assert_eq!(violations("1.2.3-rc1", "1.2.3-rc2"), [""; 0]);
        assert_eq!(
            violations("1.2.3", "1.2.2"),
            ["`a` goes back from 1.2.3 to 1.2.2, and only upgrades are allowed"]
        );
        assert_eq!(
            violations("1.2.2", "1.2.4-rc1"),
            ["`a` goes from 1.2.2 to the pre-release 1.2.4-rc1, and only releases are allowed"]
        );
    }

    #[test]
    fn what_cannot_be_read_meets_no_policy() {
        let preview = Preview { not_read: vec!["role/x of `demo`".into()], ..Preview::default() };
        let found = Policy::default().check(&preview, "demo");
        assert_eq!(found[0].rule, "not-read");
    }

    #[test]
    fn an_image_without_a_registry_is_of_docker_hub() {
        assert_eq!(with_registry("redis:7"), "docker.io/library/redis:7");
        assert_eq!(with_registry("me/redis:7"), "docker.io/me/redis:7");
        assert_eq!(with_registry("localhost/redis"), "localhost/redis");
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text: &str| {
            let error = Policy::parse(text).unwrap_err();
            format!("{error}; {}", error.help().unwrap_or_default())
        };
        assert_eq!(said("registrys: []"), "unknown key `registrys`; did you mean `registries`?");
        assert_eq!(said("upgrade: major"), "`upgrade` is `major`, expected `patch`, `minor` or `any`; ");
        assert_eq!(
            said("registries: r.example.com"),
            "`registries` is `\"r.example.com\"`, expected a list of texts; "
        );
        assert!(
            said("deny: [webhooks]").starts_with("`deny` is `webhooks`, expected one of `new-cluster-rules`")
        );
        assert_eq!(said("- a"), "expected a map with `registries`, `upgrade` or `deny`; ");
    }
}
