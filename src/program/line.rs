//! The command line of a program that is started: no value can become an option of it.
//!
//! A value of a user, a file, a cluster or a registry that starts with `-` would be read as an option, and options of kubectl, helm
//! and git write files and run programs. Paths get `./` instead, and any other such value is refused. `tests/tidy.rs` checks that
//! programs are started in no other way.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::shell::quoted;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct CommandLine {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    refused: Option<OptionLike>,
}

/// A value that the program would take for an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value `{value}` would be an option of {program}; it must not start with `-`")]
pub(crate) struct OptionLike {
    program: String,
    value: String,
}

impl CommandLine {
    /// The program alone. Its name comes from us, from the user, or from a kubeconfig, which may name programs.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref().to_owned();
        Self { program, arguments: Vec::new(), environment: Vec::new(), refused: None }
    }

    /// Adds verbs and options of ours.
    #[must_use]
    pub(crate) fn words(mut self, words: &[&'static str]) -> Self {
        self.arguments.extend(words.iter().map(OsString::from));
        self
    }

    /// Adds a value: a name, a reference, a script.
    #[must_use]
    pub(crate) fn value(mut self, value: impl Into<String>) -> Self {
        let value = value.into();
        if value.starts_with('-') && self.refused.is_none() {
            let program = self.program.to_string_lossy().into_owned();
            self.refused = Some(OptionLike { program, value: value.clone() });
        }
        self.arguments.push(value.into());
        self
    }

    /// Adds an option of ours with a value.
    #[must_use]
    pub(crate) fn option(self, option: &'static str, value: impl Into<String>) -> Self {
        self.words(&[option]).value(value)
    }

    /// Adds a path, which gets `./` where it would be read as an option.
    #[must_use]
    pub(crate) fn path(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let is_option = path.as_os_str().as_encoded_bytes().starts_with(b"-");
        self.arguments.push(if is_option { Path::new(".").join(path).into() } else { path.into() });
        self
    }

    /// Adds what a kubeconfig passes to the program that it names: both are trusted alike.
    #[must_use]
    pub(crate) fn words_of_kubeconfig(mut self, words: &[String]) -> Self {
        self.arguments.extend(words.iter().map(OsString::from));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// The command, to be run.
    ///
    /// # Errors
    /// One of the values would be an option of the program.
    pub(crate) fn command(self) -> Result<Command, OptionLike> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let mut command = Command::new(self.program);
        command.args(self.arguments).envs(self.environment);
        Ok(command)
    }
}

/// As one types it.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [&self.program].into_iter().chain(&self.arguments);
        f.write_str(&words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_becomes_an_option() {
        let line = CommandLine::new("helm").words(&["template"]).value("release").path("--output=x");
        assert_eq!(line.to_string(), "helm template release ./--output=x");
        assert!(line.command().is_ok());
        for line in [
            CommandLine::new("helm").value("--post-renderer=./program"),
            CommandLine::new("helm").option("--namespace", "-f").value("fine"),
        ] {
            let error = line.command().unwrap_err().to_string();
            assert!(error.ends_with("would be an option of helm; it must not start with `-`"), "{error}");
        }
        let line = CommandLine::new("kustomize").words(&["build"]).path("a b").path("/-x").path("../-x");
        assert_eq!(line.to_string(), "kustomize build 'a b' /-x ../-x");
    }
}
