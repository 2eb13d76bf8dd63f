//! Command lines that are printed for somebody to run. Names in them come from clusters and files, so every one of them is quoted
//! here: a name that Kubernetes allows stands as it is, anything else cannot do more than be a word.

use std::fmt::Display;

/// A command line for a shell.
///
/// ```
/// use olmkit::shell::command;
/// assert_eq!(command!("kubectl -n {} get pod {}", "here", "a").as_str(), "kubectl -n here get pod a");
/// assert_eq!(command!("kubectl get crd {}", "a; id").as_str(), "kubectl get crd 'a; id'");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(String);

impl Command {
    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A template in which each `{}` is replaced by a word of its own.
    #[doc(hidden)]
    pub fn fill(template: &'static str, words: &[&dyn Display]) -> Self {
        Self(String::new()).then(template, words)
    }

    /// More of the line, as [`Command::fill`].
    #[must_use]
    pub(crate) fn then(mut self, template: &'static str, words: &[&dyn Display]) -> Self {
        let mut parts = template.split("{}");
        self.0 += parts.next().unwrap_or("");
        for (part, value) in parts.zip(words) {
            let is_start = self.0.is_empty() || self.0.ends_with(' ');
            self.0 += &if is_start { word(&value.to_string()) } else { quoted(&value.to_string()) };
            self.0 += part;
        }
        self
    }

    /// More words.
    #[must_use]
    pub(crate) fn words(mut self, more: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        for one in more {
            self.0 += " ";
            self.0 += &word(one.as_ref());
        }
        self
    }
}

impl From<&'static str> for Command {
    fn from(line: &'static str) -> Self {
        Self(line.to_owned())
    }
}

impl From<Command> for String {
    fn from(command: Command) -> Self {
        command.0
    }
}

/// A command line: each `{}` of a template is replaced by a word, quoted where that is needed.
#[macro_export]
#[doc(hidden)]
macro_rules! __command {
    ($template:literal $(, $word:expr)* $(,)?) => {
        $crate::shell::Command::fill($template, &[$(&$word as &dyn ::std::fmt::Display),*])
    };
}
pub use __command as command;

/// A word as a shell takes it, which is no option either: no object has a name that begins with a dash.
pub(crate) fn word(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(rest) => quoted(&format!("_{rest}")),
        None => quoted(text),
    }
}

/// Text as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let line: String = text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    format!("'{}'", line.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_kubernetes_allows_stand_as_they_are() {
        for name in ["demo", "demo.v1.0.0", "a-b:c@d", "configmap/a", "x.example.com/y=z"] {
            assert_eq!(word(name), name);
        }
    }

    #[test]
    fn whatever_else_is_a_word_and_no_more() {
        for (name, expected) in [
            ("", "''"),
            ("a b", "'a b'"),
            ("$(touch x)", "'$(touch x)'"),
            ("it's", "'it'\\''s'"),
            ("a\nb\u{1b}[2J", "'a?b?[2J'"),
            ("--all", "_-all"),
            ("~root", "'~root'"),
        ] {
            assert_eq!(word(name), expected, "{name:?}");
        }
        let line = command!("kubectl -n {} delete job/{} -l a={}", "-x", "b;c", "--d");
        assert_eq!(line.as_str(), "kubectl -n _x delete job/'b;c' -l a=--d");
        let more = command!("kubectl delete").words(["a", "b c", "-A"]).then(" && echo {}", &[&"{}"]);
        assert_eq!(more.as_str(), "kubectl delete a 'b c' _A && echo '{}'");
    }
}
