//! Sentences for people that name commands: each command stays a value, so that the code that prints the sentence can say which
//! cluster the command acts on.

use std::fmt::{self, Display};
use std::ops::Add;

use serde::Serialize;

use crate::shell::{Command, Reach, json_as_text};

/// The first of many things, and how many more there are.
pub(crate) fn first_of<T: AsRef<str>>(all: &[T], most: usize) -> String {
    let first: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    match all.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Text with commands in it.
///
/// ```
/// use olmkit::sentence::Sentence;
/// use olmkit::shell::command;
/// let help = Sentence::from("see ") + command!("kubectl get pod {}", "a b") + " for more";
/// assert_eq!(help.to_string(), "see `kubectl get pod 'a b'` for more");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    parts: Vec<Part>,
    /// Whether it is a command with its effect, and nothing without the command.
    is_step: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Command(Command),
}

impl Sentence {
    /// A command, and what it does.
    pub fn step(command: Command, effect: impl Into<Sentence>) -> Self {
        Self { is_step: true, ..Self::from(command) + ": " + effect.into() }
    }

    /// The same, with its commands on a cluster.
    #[must_use]
    pub fn on(mut self, reach: &Reach) -> Self {
        for part in &mut self.parts {
            if let Part::Command(command) = part {
                *command = std::mem::take(command).on(reach);
            }
        }
        self
    }

    /// The same without words at its beginning.
    #[must_use]
    pub(crate) fn without(mut self, words: &str) -> Self {
        if let Some(Part::Text(text)) = self.parts.first_mut()
            && let Some(rest) = text.strip_prefix(words)
        {
            *text = rest.to_owned();
        }
        self
    }

    /// Whether it says nothing where it is read: it is about a command that does not reach the cluster.
    fn is_void(&self) -> bool {
        self.is_step && matches!(self.parts.first(), Some(Part::Command(command)) if !command.is_possible())
    }
}

impl Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Command(command) if command.is_possible() => write!(f, "`{command}`"),
            Part::Command(command) => write!(f, "{}, `{command}`", command.where_possible()),
        })
    }
}

impl From<String> for Sentence {
    fn from(text: String) -> Self {
        Self { parts: vec![Part::Text(text)], is_step: false }
    }
}

impl From<&str> for Sentence {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Command> for Sentence {
    fn from(command: Command) -> Self {
        Self { parts: vec![Part::Command(command)], is_step: false }
    }
}

impl<T: Into<Sentence>> Add<T> for Sentence {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self.parts.extend(more.into().parts);
        self
    }
}

impl<T: Into<Sentence>> Add<T> for Command {
    type Output = Sentence;

    fn add(self, more: T) -> Sentence {
        Sentence::from(self) + more
    }
}

json_as_text!(Sentence);

/// The ways out of a failure, a line for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Help(Vec<Sentence>);

impl Help {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This one, or another where there is none.
    #[must_use]
    pub fn or(self, other: impl Into<Help>) -> Self {
        if self.is_empty() { other.into() } else { self }
    }

    /// More of them below.
    #[must_use]
    pub fn and(mut self, more: impl Into<Help>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    /// The same, with more at the end of its last line.
    #[must_use]
    pub fn ending(mut self, more: impl Into<Sentence>) -> Self {
        if let Some(last) = self.0.pop() {
            self.0.push(last + more.into());
        }
        self
    }

    /// The same, with its commands on a cluster. What is only about a command that does not reach it is left out.
    #[must_use]
    pub fn on(self, reach: &Reach) -> Self {
        let lines = self.0.into_iter().map(|line| line.on(reach));
        Self(lines.filter(|line| !line.is_void()).collect())
    }

    /// The lines as text, if there are any.
    pub fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.to_string())
    }

    /// The sentences.
    pub fn into_sentences(self) -> Vec<Sentence> {
        self.0
    }
}

impl Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, line)| {
            let end = if at == 0 { "" } else { "\n" };
            write!(f, "{end}{line}")
        })
    }
}

impl<T: Into<Sentence>> From<T> for Help {
    fn from(line: T) -> Self {
        Self(vec![line.into()])
    }
}

impl From<Vec<Sentence>> for Help {
    fn from(lines: Vec<Sentence>) -> Self {
        Self(lines)
    }
}

impl From<Option<String>> for Help {
    fn from(line: Option<String>) -> Self {
        Self(line.into_iter().map(Sentence::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::shell::command;

    #[test]
    fn of_many_things_the_first_are_listed() {
        assert_eq!(first_of::<&str>(&[], 2), "");
        assert_eq!(first_of(&["a", "b"], 2), "a, b");
        assert_eq!(first_of(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn what_is_only_about_kubectl_is_left_out_on_a_simulated_cluster() {
        let help = Help::from(Sentence::step(command!("kubectl delete x"), "deletes it"))
            .and(Sentence::step(command!("olmkit operator list"), "lists them"))
            .and(Sentence::from("it stays: ") + command!("kubectl delete y") + " removes it");
        assert_eq!(
            help.clone().to_string(),
            "`kubectl delete x`: deletes it\n`olmkit operator list`: lists them\nit stays: `kubectl delete y` removes it"
        );
        assert_eq!(
            help.on(&Reach::simulated(Some(Path::new("c.json")))).to_string(),
            "`olmkit operator list --simulate c.json`: lists them\nit stays: on a real cluster, `kubectl delete y` removes it"
        );
    }
}
