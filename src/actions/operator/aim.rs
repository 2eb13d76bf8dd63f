//! Commands that are printed act on the cluster that they are about, not on whichever one is current.
//!
//! The engine and the doctor name commands without saying on which cluster: they do not know how it was chosen. Everything that
//! they say passes here on its way out, and gets the flags that lead to the same cluster.

use std::path::Path;
use std::time::Duration;

use super::{Choice, Outcome, Target};
use crate::exit::Failure;
use crate::lifecycle::decide::Stuck;
use crate::lifecycle::doctor::{Diagnosis, FIXABLE, OperatorState, Repair};
use crate::lifecycle::engine::{EngineError, Progress};
use crate::lifecycle::look::Operator;
use crate::lifecycle::observe::Row;
use crate::lifecycle::uninstall::Removed;
use crate::report::ChannelTestAnswer;
use crate::shell::quoted;

/// The flags that lead to a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::actions) struct Aim {
    /// With a space before each; none for the cluster that is current anyway.
    flags: String,
    /// Whether it is a simulated cluster, which kubectl does not reach.
    simulated: bool,
}

/// Our commands that ask a cluster.
const VERBS: [&str; 3] = ["operator", "source", "olm"];

impl Aim {
    /// At the cluster of a context, as a command line chose it.
    pub(in crate::actions) fn context(choice: &Choice) -> Self {
        let flag = |name: &str, value: &str| format!(" --{name} {}", quoted(value));
        let context = choice.context.iter().map(|context| flag("context", context));
        let kubeconfig = choice.kubeconfig.iter().map(|path| flag("kubeconfig", &path.to_string_lossy()));
        let user = choice.impersonation.user.iter().map(|user| flag("as", user));
        let groups = choice.impersonation.groups.iter().map(|group| flag("as-group", group));
        Self { flags: context.chain(kubeconfig).chain(user).chain(groups).collect(), simulated: false }
    }

    /// As [`Aim::context`], of one of the contexts of a target.
    pub(super) fn at(target: &Target, context: Option<&String>) -> Self {
        Self::context(&target.choice(context))
    }

    /// At a simulated cluster in a file.
    pub(super) fn file(path: &Path) -> Self {
        Self { flags: format!(" --simulate {}", quoted(&path.to_string_lossy())), simulated: true }
    }

    /// At a simulated cluster that ends with the command.
    pub(super) fn nowhere() -> Self {
        Self { flags: String::new(), simulated: true }
    }

    fn is_current(&self) -> bool {
        self.flags.is_empty() && !self.simulated
    }

    /// A command line with the flags, in each of its parts; none if it would reach another cluster all the same.
    fn command(&self, line: &str) -> Option<String> {
        let mut whole = String::new();
        for part in parts(line) {
            let words = part.trim_start();
            let start = part.len() - words.len();
            let end = part.trim_end().len();
            if words.starts_with("kubectl ") {
                if self.simulated {
                    return None;
                }
                let at = start + "kubectl".len();
                whole += &format!("{}{}{}", &part[..at], self.flags, &part[at..]);
            } else if self.is_ours(words) {
                whole += &format!("{}{}{}", &part[..end], self.flags, &part[end..]);
            } else {
                whole += part;
            }
        }
        Some(whole)
    }

    /// Whether it is a command of ours that takes the flags.
    fn is_ours(&self, command: &str) -> bool {
        let mut words = command.split_whitespace();
        let is_ours =
            words.next() == Some("olmkit") && words.next().is_some_and(|noun| VERBS.contains(&noun));
        let verb = words.next().unwrap_or_default();
        is_ours
            && !command.contains(" --from ")
            // These are never about a file with a simulated cluster.
            && !(self.simulated && (verb == "test" || command.starts_with("olmkit olm ")))
    }

    /// A sentence with the flags in the commands that it names, or several lines of such. On a simulated cluster a line that is only
    /// about a command of kubectl is left out.
    pub(in crate::actions) fn text(&self, text: &str) -> String {
        if self.is_current() {
            return text.to_owned();
        }
        let is_of_kubectl =
            |line: &&str| self.simulated && line.starts_with("`kubectl ") && line.contains("`: ");
        let lines = text.split('\n').filter(|line| !is_of_kubectl(line)).map(|line| self.line(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn line(&self, line: &str) -> String {
        let mut told = String::new();
        let mut rest = line;
        while let Some(at) = ["`olmkit ", "`kubectl "].iter().filter_map(|start| rest.find(start)).min() {
            let command = &rest[at + 1..];
            let Some(end) = command.find('`') else { break };
            told += &rest[..at];
            match self.command(&command[..end]) {
                Some(command) => told += &format!("`{command}`"),
                None => told += &format!("on a real cluster, `{}`", &command[..end]),
            }
            rest = &command[end + 1..];
        }
        told + rest
    }

    fn texts<'t>(&self, texts: impl IntoIterator<Item = &'t mut String>) {
        texts.into_iter().for_each(|text| *text = self.text(text));
    }

    /// Does something, and aims what it tells and what comes of it.
    pub(super) fn around(
        &self,
        progress: &dyn Progress,
        work: impl FnOnce(&dyn Progress) -> Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        let done = work(&Aimed { aim: self, progress });
        done.map(|outcome| self.outcome(outcome)).map_err(|failure| self.failure(failure))
    }

    /// What came of a verb.
    fn outcome(&self, mut outcome: Outcome) -> Outcome {
        match &mut outcome {
            Outcome::Operator(operator) | Outcome::Status(operator) => self.operator(operator),
            Outcome::Description(description) => self.operator(&mut description.operator),
            Outcome::List(operators) => operators.iter_mut().for_each(|operator| self.operator(operator)),
            Outcome::Diagnosis(diagnosis) => self.diagnosis(diagnosis),
            Outcome::Removed(removed) => self.removed(removed),
            // What OLM says is left as it is.
            Outcome::Source(_)
            | Outcome::Sources(_)
            | Outcome::Plan(..)
            | Outcome::Watched
            | Outcome::Planned(_) => {}
        }
        outcome
    }

    /// What came of `operator test`.
    pub(super) fn around_test(
        &self,
        done: Result<ChannelTestAnswer, Failure>,
    ) -> Result<ChannelTestAnswer, Failure> {
        let mut answer = done.map_err(|failure| self.failure(failure))?;
        for failure in answer.report.tests.iter_mut().filter_map(|test| test.failure.as_mut()) {
            self.texts([&mut failure.sentence].into_iter().chain(&mut failure.help));
            failure.help.retain(|help| !help.is_empty());
        }
        answer.ended = answer.ended.map(|failure| self.failure(failure));
        Ok(answer)
    }

    fn operator(&self, operator: &mut Operator) {
        self.texts(&mut operator.problems);
    }

    fn diagnosis(&self, diagnosis: &mut Diagnosis) {
        for cause in &mut diagnosis.causes {
            self.texts([&mut cause.sentence]);
            let is_it =
                |one: &&OperatorState| one.code == Some(cause.code) && one.subscription == cause.subscription;
            let operator = diagnosis.operators.iter().find(is_it);
            let is_fixable = FIXABLE.contains(&cause.code);
            let fix = operator.filter(|_| is_fixable).map(|operator| {
                let name =
                    Some(format!(" {}", cause.subscription)).filter(|_| !cause.subscription.is_empty());
                let (name, flags) = (name.unwrap_or_default(), &self.flags);
                format!("olmkit operator doctor{name} -n {} --fix{flags}", operator.namespace)
            });
            let aimed = std::mem::take(&mut cause.repair).into_iter().filter_map(|repair| {
                let effect = self.text(&repair.effect);
                match self.command(&repair.command) {
                    Some(command) => Some(Repair { command, effect, ..repair }),
                    // Where it was applied, it is not named again.
                    None if repair.safe && is_fixable => {
                        Some(Repair { command: fix.clone()?, effect, ..repair })
                    }
                    None => Some(Repair { effect: format!("on a real cluster: {effect}"), ..repair }),
                }
            });
            cause.repair = aimed.collect();
            cause.repair.dedup_by(|one, other| one.command == other.command);
        }
        self.texts(diagnosis.fixes.iter_mut().map(|fix| &mut fix.what));
    }

    /// What was removed and kept.
    pub(in crate::actions) fn removed(&self, removed: &mut Removed) {
        self.texts(removed.kept.iter_mut().chain(&mut removed.deleting).map(|part| &mut part.reason));
    }

    /// Why a verb failed.
    pub(in crate::actions) fn failure(&self, mut failure: Failure) -> Failure {
        failure.help = failure.help.map(|help| self.text(&help)).filter(|help| !help.is_empty());
        match failure.error.downcast_mut::<EngineError>() {
            Some(EngineError::Stuck(stuck) | EngineError::TimedOut { suspicion: Some(stuck), .. }) => {
                self.stuck(stuck);
            }
            Some(EngineError::Refused { what, .. }) => self.texts([what]),
            _ => {}
        }
        failure
    }

    fn stuck(&self, stuck: &mut Stuck) {
        self.texts([&mut stuck.sentence].into_iter().chain(&mut stuck.help));
    }
}

/// What is told of a cluster, with commands that act on it.
pub(in crate::actions) struct Aimed<'p> {
    pub(in crate::actions) aim: &'p Aim,
    pub(in crate::actions) progress: &'p dyn Progress,
}

impl Progress for Aimed<'_> {
    fn state(&self, at: Duration, object: &str, state: &str) {
        self.progress.state(at, object, state);
    }

    fn said(&self, at: Duration, text: &str) {
        self.progress.said(at, &self.aim.text(text));
    }

    fn operators(&self, cluster: &str, operators: &[Operator]) -> bool {
        self.progress.operators(cluster, operators)
    }

    fn looked(&self, cluster: &str, rows: &[Row]) {
        self.progress.looked(cluster, rows);
    }
}

/// The commands of a line, each with what separates it from the next one.
fn parts(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut quote, mut is_escaped) = (0, None, false);
    for (at, letter) in line.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (quote, letter) {
            // Nothing is escaped between single quotes.
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, '|' | '&' | ';' | '\n') => {
                parts.extend([&line[from..at], &line[at..at + 1]]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&line[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::kubernetes::Impersonation;

    #[test]
    fn every_command_of_a_line_acts_on_the_cluster_that_it_was_printed_for() {
        let aim = Aim::context(&Choice {
            kubeconfig: Some("my config".into()),
            context: Some("team".into()),
            impersonation: Impersonation { user: Some("jo".into()), groups: vec!["a b".into(), "c".into()] },
        });
        let flags = "--context team --kubeconfig 'my config' --as jo --as-group 'a b' --as-group c";
        for (line, expected) in [
            ("kubectl -n ns get pods", format!("kubectl {flags} -n ns get pods")),
            (
                "kubectl -n ns delete x/y && echo '{\"a\":\"kubectl | kubectl x\"}' | kubectl create -f -",
                format!(
                    "kubectl {flags} -n ns delete x/y && echo '{{\"a\":\"kubectl | kubectl x\"}}' | kubectl {flags} create -f -"
                ),
            ),
            (
                "echo 'it'\\''s' | kubectl create -f -",
                format!("echo 'it'\\''s' | kubectl {flags} create -f -"),
            ),
            ("olmkit operator approve demo -n ns", format!("olmkit operator approve demo -n ns {flags}")),
            ("olmkit olm status", format!("olmkit olm status {flags}")),
            ("olmkit bundle validate bundle", "olmkit bundle validate bundle".to_owned()),
            (
                "olmkit operator doctor --from objects.json",
                "olmkit operator doctor --from objects.json".to_owned(),
            ),
        ] {
            assert_eq!(aim.command(line).unwrap(), expected);
        }
        assert_eq!(
            aim.text("run `olmkit operator list -A`; `x`: see `kubectl get pods`, kubectl get"),
            format!(
                "run `olmkit operator list -A {flags}`; `x`: see `kubectl {flags} get pods`, kubectl get"
            )
        );
        assert_eq!(Aim::default().text("see `kubectl get pods`"), "see `kubectl get pods`");
    }

    #[test]
    fn no_command_of_a_simulated_cluster_reaches_a_real_one() {
        let aim = Aim::file(Path::new("c.json"));
        assert_eq!(aim.command("kubectl get pods"), None);
        assert_eq!(
            aim.text("`kubectl delete x`: deletes it\n`olmkit operator list`: lists them\nit stays: `kubectl delete y` removes it"),
            "`olmkit operator list --simulate c.json`: lists them\nit stays: on a real cluster, `kubectl delete y` removes it"
        );
        assert_eq!(aim.command("olmkit operator test demo").as_deref(), Some("olmkit operator test demo"));
    }
}
