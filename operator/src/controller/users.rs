//! `spec.auth.users`: which users nodes should have, and which they have.
//!
//! Redis keeps them in memory alone. Each node gets them when it is first seen, and all get them again every few seconds, with what
//! the Secrets have by then. `status.users` names those that nodes may have: a user is named there before any node gets it, and until
//! no node has it, so that the operator removes its own users and no others.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Secret;

use super::{passwords::Credentials, problem::Problem};
use crate::{
    crd::user::User,
    plan::{PasswordHash, Pod},
    server::{
        Access, Password,
        act::Permit,
        users::{self, Refusal, give},
    },
};

/// How often Secrets are read again, and all nodes get their users again.
const PACE: Duration = Duration::from_secs(10);

/// A user of the spec, and the passwords that it has, or why these are not known. Then nodes keep the user as it is.
#[derive(Clone, Debug)]
pub struct Wanted {
    user: User,
    passwords: Result<BTreeSet<PasswordHash>, Problem>,
}

impl Wanted {
    /// What its Secret says, if that exists.
    pub fn of(user: &User, secret: Option<&Secret>) -> Self {
        let (name, key) = (user.secret_name.clone(), user.key.clone());
        let read = match secret {
            Some(secret) => Credentials::of(secret, &key),
            None => Err(Problem::SecretMissing { name, key }),
        };
        let passwords = read.and_then(|found| match found.problem {
            Some(problem) => Err(problem),
            None => Ok([Some(found.password), found.previous].iter().flatten().map(Password::hash).collect()),
        });
        Self { user: user.clone(), passwords }
    }
}

/// The users of a cluster.
#[derive(Debug, Default)]
pub struct Users {
    wanted: Vec<Wanted>,
    /// When the Secrets were read.
    read: Option<Instant>,
    /// The users that nodes may have, according to the status.
    recorded: Vec<String>,
    /// Runs of redis-server that have the wanted users, and no others of those.
    runs: BTreeSet<String>,
    refusal: Option<Refusal>,
    /// The users that nodes may have from now on.
    names: Vec<String>,
    /// Whether the status does not name them yet.
    pending: bool,
}

impl Users {
    /// Whether the Secrets are to be read, since the spec is another one or it is some time ago.
    pub fn is_due(&self, declared: &[User]) -> bool {
        let same = self.wanted.iter().map(|wanted| &wanted.user).eq(declared);
        !same || !declared.is_empty() && self.read.is_none_or(|read| read.elapsed() >= PACE)
    }

    /// Takes what the Secrets say. All nodes are to get it: somebody may have changed their users.
    pub fn want(&mut self, wanted: Vec<Wanted>) {
        *self = Self { wanted, read: Some(Instant::now()), ..Self::default() };
    }

    /// Keeps nodes as they are.
    pub fn keep(&mut self, recorded: &[String]) {
        (self.names, self.pending) = (recorded.to_vec(), false);
    }

    /// Gives the nodes that lack them the users that the status names, and removes those that are no longer in the spec.
    /// `all_known` is whether the pods are all that there are.
    pub async fn give(
        &mut self,
        access: &Access,
        permit: &dyn Permit,
        pods: &[Pod],
        recorded: &[String],
        all_known: bool,
    ) {
        if self.recorded != recorded {
            self.recorded = recorded.to_vec();
            self.runs.clear();
        }
        let (users, gone) = self.due();
        let has = |runs: &BTreeSet<String>, pod: &Pod| {
            pod.redis.as_ref().is_some_and(|node| runs.contains(&node.run_id))
        };
        if !users.is_empty() || !gone.is_empty() {
            let lacking: Vec<_> = pods.iter().filter(|pod| !has(&self.runs, pod)).collect();
            let given = give(access, permit, &lacking, &users, &gone).await;
            self.runs.extend(given.runs);
            self.refusal = self.refusal.take().or(given.refusal);
        }
        // A pod without an address has no process.
        let mut running = pods.iter().filter(|pod| pod.ip.is_some());
        let reached = all_known && running.all(|pod| has(&self.runs, pod));
        let left = gone.iter().filter(|_| !reached).cloned();
        let names: BTreeSet<_> = self.declared().map(str::to_owned).chain(left).collect();
        self.names = names.into_iter().collect();
        self.pending = self.names != recorded;
    }

    fn declared(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().map(|wanted| wanted.user.name.as_str())
    }

    /// The users to give, and the names of those to remove.
    fn due(&self) -> (Vec<users::User>, Vec<String>) {
        let is_recorded = |wanted: &&Wanted| self.recorded.contains(&wanted.user.name);
        let users = self.wanted.iter().filter(is_recorded).filter_map(|wanted| {
            let passwords = wanted.passwords.as_ref().ok()?.clone();
            Some(users::User { name: wanted.user.name.clone(), passwords, rules: wanted.user.rules.clone() })
        });
        let gone = self.recorded.iter().filter(|name| !self.declared().any(|declared| declared == *name));
        (users.collect(), gone.cloned().collect())
    }

    /// The users that nodes may have, for the status.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether [`Self::names`] is not in the status yet. A new user is given to nodes only once it is.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// Why nodes do not have a user as the spec wants it: reason and sentence.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let unknown = self.wanted.iter().find_map(|wanted| {
            let problem = wanted.passwords.as_ref().err()?;
            Some((
                problem.reason(),
                format!(
                    "nodes keep user `{}` as it is, and those that restart do not get it: {problem}",
                    wanted.user.name
                ),
            ))
        });
        let refused = || {
            let refusal = self.refusal.as_ref()?;
            Some((
                "UserRefused",
                format!("{refusal}; correct its rules in spec.auth.users: the node keeps it as it was"),
            ))
        };
        unknown.or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(name: &str) -> User {
        let object = json!({"name": name, "secretName": "words", "rules": "+@read ~app:*"});
        serde_json::from_value(object).unwrap()
    }

    fn secret(data: serde_json::Value) -> Secret {
        let base64 = json!({"metadata": {"name": "words"}, "data": data});
        serde_json::from_value(base64).unwrap()
    }

    #[test]
    fn what_nodes_get_and_lose() {
        // "the first word", "the second word"
        let both = json!({"password": "dGhlIGZpcnN0IHdvcmQ=", "previousPassword": "dGhlIHNlY29uZCB3b3Jk"});
        let wanted = |name: &str| Wanted::of(&user(name), Some(&secret(both.clone())));
        let mut users = Users::default();
        assert!(!users.is_due(&[]) && users.is_due(&[user("app")]));
        users.want(vec![wanted("app"), wanted("report"), Wanted::of(&user("new"), None)]);
        assert!(!users.is_due(&[user("app"), user("report"), user("new")]) && users.is_due(&[user("app")]));
        users.recorded = ["app", "new", "old"].map(str::to_owned).into();
        let (due, gone) = users.due();
        let hash = |word: &str| Password::new(word.into()).hash();
        assert_eq!(due.iter().map(|user| &*user.name).collect::<Vec<_>>(), ["app"], "the status names it");
        assert_eq!(due[0].passwords, [hash("the first word"), hash("the second word")].into());
        assert_eq!(gone, ["old"], "nobody else's");
    }

    #[test]
    fn a_user_without_a_password_is_named() {
        let said = |secret: Option<&Secret>| {
            let mut users = Users::default();
            users.want(vec![Wanted::of(&user("app"), secret)]);
            users.problem().map(|(reason, note)| format!("{reason}: {note}")).unwrap_or_default()
        };
        let text = "SecretMissing: nodes keep user `app` as it is, and those that restart do not get it: Secret `words` not found: create it with the password under the key `password`";
        assert_eq!(said(None), text);
        assert!(said(Some(&secret(json!({})))).starts_with("SecretMissing: nodes keep user `app`"));
        // "short"
        let short = secret(json!({"password": "c2hvcnQ="}));
        assert!(
            said(Some(&short)).starts_with("PasswordUnusable: nodes keep user `app`"),
            "{}",
            said(Some(&short))
        );
    }
}
