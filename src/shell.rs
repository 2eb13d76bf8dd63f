//! Command lines that are printed for somebody to run. Names in them come from clusters and files, so every one of them is quoted
//! here: a name that Kubernetes allows stands as it is, anything else cannot do more than be a word.

use std::fmt::{self, Display};
use std::path::Path;

/// JSON has a value of this type as its text.
macro_rules! json_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <String as schemars::JsonSchema>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <String as schemars::JsonSchema>::json_schema(generator)
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}
pub(crate) use json_as_text;

/// How a command reaches the cluster that it is about: the flags that select it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// None for the cluster that is current anyway.
    flags: Vec<(&'static str, String)>,
    /// Whether it is a simulated cluster, which kubectl does not reach.
    is_simulated: bool,
    /// Whether it is deleted before anybody reads the command.
    is_deleted: bool,
}

impl Reach {
    /// A real cluster, with the flags that select it.
    pub fn real(flags: Vec<(&'static str, String)>) -> Self {
        Self { flags, ..Self::default() }
    }

    /// A simulated cluster in a file; without one it ends with the command that made it.
    pub fn simulated(file: Option<&Path>) -> Self {
        let flags = file.iter().map(|path| ("simulate", path.to_string_lossy().into_owned())).collect();
        Self { flags, is_simulated: true, ..Self::default() }
    }

    /// A cluster that goes with the command that prints commands for it.
    pub fn deleted() -> Self {
        Self { is_deleted: true, ..Self::default() }
    }
}

impl Display for Reach {
    /// The flags, with a space before each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.flags.iter().try_for_each(|(name, value)| write!(f, " --{name} {}", quoted(value)))
    }
}

/// A command line for a shell: programs with their words, and the cluster that they act on.
///
/// ```
/// use olmkit::shell::command;
/// assert_eq!(command!("kubectl -n {} get pod {}", "here", "a").to_string(), "kubectl -n here get pod a");
/// assert_eq!(command!("kubectl get crd {}", "a; id").to_string(), "kubectl get crd 'a; id'");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    stages: Vec<Stage>,
    reach: Reach,
}

/// A program of a command line, with what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stage {
    /// What joins it to the one before.
    joint: &'static str,
    program: &'static str,
    words: Vec<Word>,
}

/// What a program is given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// As a shell reads it, with the spaces around it.
    Literal(&'static str),
    /// Any text. Whether it begins a word, which must not be taken for an option.
    Value(String, bool),
}

/// What joins two programs in a template.
const JOINTS: [&str; 3] = [" && ", " | ", "; do "];
/// The nouns of our commands that ask a cluster.
const NOUNS: [&str; 3] = [" operator", " source", " olm"];

impl Stage {
    fn is_kubectl(&self) -> bool {
        self.program == "kubectl"
    }

    /// Whether it is a command of ours that takes the flags of a cluster.
    fn is_ours(&self, reach: &Reach) -> bool {
        let Some(Word::Literal(first)) = self.words.first().filter(|_| self.program == "olmkit") else {
            return false;
        };
        let has = |wanted: &str| {
            self.words.iter().any(|word| matches!(word, Word::Literal(text) if text.contains(wanted)))
        };
        NOUNS.iter().any(|noun| first.starts_with(noun))
            && !has(" --from ")
            // These are never about a file with a simulated cluster.
            && !(reach.is_simulated && (first.starts_with(" olm") || first.starts_with(" operator test")))
    }

    fn write(&self, reach: &Reach, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.joint, self.program)?;
        if self.is_kubectl() && !reach.is_simulated {
            write!(f, "{reach}")?;
        }
        for one in &self.words {
            match one {
                Word::Literal(text) => f.write_str(text)?,
                Word::Value(text, true) => f.write_str(&word(text))?,
                Word::Value(text, false) => f.write_str(&quoted(text))?,
            }
        }
        if self.is_ours(reach) {
            write!(f, "{reach}")?;
        }
        Ok(())
    }
}

impl Command {
    /// A template in which each `{}` is replaced by a word of its own.
    #[doc(hidden)]
    pub fn fill(template: &'static str, words: &[&dyn Display]) -> Self {
        Self::default().then(template, words)
    }

    /// More of the line, as [`Command::fill`].
    #[must_use]
    pub(crate) fn then(mut self, template: &'static str, words: &[&dyn Display]) -> Self {
        let mut values = words.iter();
        let mut parts = template.split("{}");
        self.literal(parts.next().unwrap_or_default());
        for part in parts {
            self.value(values.next().map(ToString::to_string).unwrap_or_default());
            self.literal(part);
        }
        self
    }

    /// More words.
    #[must_use]
    pub(crate) fn words(mut self, more: impl IntoIterator<Item = impl Display>) -> Self {
        for one in more {
            self.literal(" ");
            self.value(one.to_string());
        }
        self
    }

    /// The same command on a cluster.
    #[must_use]
    pub fn on(mut self, reach: &Reach) -> Self {
        reach.clone_into(&mut self.reach);
        self
    }

    /// Whether it does what it says: kubectl does not reach a simulated cluster, and nothing reaches a deleted one.
    pub fn is_possible(&self) -> bool {
        let Reach { is_simulated, is_deleted, .. } = &self.reach;
        let mut stages = self.stages.iter();
        match (is_deleted, is_simulated) {
            (true, _) => !stages.any(|stage| stage.is_kubectl() || stage.is_ours(&self.reach)),
            (false, true) => !stages.any(Stage::is_kubectl),
            (false, false) => true,
        }
    }

    /// Where it would do that.
    pub(crate) fn where_possible(&self) -> &'static str {
        if self.reach.is_deleted { "on the cluster, which --keep keeps" } else { "on a real cluster" }
    }

    /// The programs of the line, each with its words as a shell would hand them over.
    pub(crate) fn programs(&self) -> Vec<Vec<String>> {
        let line =
            |stage: &Stage| Self { stages: vec![Stage { joint: "", ..stage.clone() }], ..Self::default() };
        self.stages.iter().map(|stage| split(&line(stage).to_string())).collect()
    }

    /// Text of a template, with the programs that begin in it.
    fn literal(&mut self, mut text: &'static str) {
        while let Some((at, joint)) =
            JOINTS.iter().filter_map(|joint| Some((text.find(joint)?, *joint))).min()
        {
            self.push(&text[..at]);
            self.stages.push(Stage { joint, program: "", words: Vec::new() });
            text = &text[at + joint.len()..];
        }
        self.push(text);
    }

    fn push(&mut self, text: &'static str) {
        let Some(stage) = self.stages.last_mut() else {
            self.stages.push(Stage { joint: "", program: "", words: Vec::new() });
            return self.push(text);
        };
        let (program, words) = match stage.program {
            "" => text.split_at(text.find(' ').unwrap_or(text.len())),
            program => (program, text),
        };
        stage.program = program;
        stage.words.push(Word::Literal(words));
    }

    fn value(&mut self, text: String) {
        if let Some(stage) = self.stages.last_mut() {
            let is_start = matches!(stage.words.last(), Some(Word::Literal(before)) if before.ends_with(' '));
            stage.words.push(Word::Value(text, is_start));
        }
    }
}
impl Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stages.iter().try_for_each(|stage| stage.write(&self.reach, f))
    }
}

json_as_text!(Command);

impl From<&'static str> for Command {
    fn from(line: &'static str) -> Self {
        Self::fill(line, &[])
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

/// What a user names, such as a path or an image, as a shell takes it: a path that begins with a dash is no option.
pub(crate) fn argument(named: impl Display) -> String {
    let text = named.to_string();
    if text.starts_with('-') { quoted(&format!("./{text}")) } else { quoted(&text) }
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

/// The words of a line, as [`quoted`] has put them together.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let (mut is_quoted, mut letters) = (false, line.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '\\' if !is_quoted => word.get_or_insert_default().extend(letters.next()),
            ' ' if !is_quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
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
        assert_eq!(line.to_string(), "kubectl -n _x delete job/'b;c' -l a=--d");
        let more = command!("kubectl delete").words(["a", "b c", "-A"]).then(" && echo {}", &[&"{}"]);
        assert_eq!(more.to_string(), "kubectl delete a 'b c' _A && echo '{}'");
    }

    #[test]
    fn the_programs_of_a_line_get_their_words_unquoted() {
        let line = command!("kubectl -n {} delete {}", "ns", "a/b")
            .then(" && echo {} | kubectl create -f -", &[&"it's {}"]);
        let expected = ["kubectl|-n|ns|delete|a/b", "echo|it's {}", "kubectl|create|-f|-"];
        assert_eq!(line.programs().iter().map(|words| words.join("|")).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_path_that_begins_with_a_dash_stays_a_path() {
        for (path, expected) in [
            ("bundle", "bundle"),
            ("-b", "./-b"),
            ("-a b", "'./-a b'"),
            ("oci:my images:v1", "'oci:my images:v1'"),
        ] {
            assert_eq!(argument(path), expected);
        }
    }

    fn team() -> Reach {
        let flags = [("context", "team"), ("kubeconfig", "my config"), ("as", "jo"), ("as-group", "a b")];
        Reach::real(flags.map(|(name, value)| (name, value.to_owned())).into())
    }

    #[test]
    fn every_program_of_a_line_acts_on_the_cluster_that_it_is_printed_for() {
        let flags = "--context team --kubeconfig 'my config' --as jo --as-group 'a b'";
        let text = "it's; do kubectl | kubectl x && kubectl y";
        for (line, expected) in [
            (command!("kubectl -n {} get pods", "ns"), format!("kubectl {flags} -n ns get pods")),
            (
                command!("kubectl -n {} delete x/y", "ns")
                    .then(" && echo {} | kubectl create -f -", &[&text]),
                format!(
                    "kubectl {flags} -n ns delete x/y && echo 'it'\\''s; do kubectl | kubectl x && kubectl y' | kubectl {flags} create -f -"
                ),
            ),
            (
                command!("for list in")
                    .words(["/a", "/b"])
                    .then("; do kubectl get --raw $list; done > x", &[]),
                format!("for list in /a /b; do kubectl {flags} get --raw $list; done > x"),
            ),
            (
                command!("olmkit operator approve {} -n {}", "demo", "ns"),
                format!("olmkit operator approve demo -n ns {flags}"),
            ),
            (command!("olmkit olm status"), format!("olmkit olm status {flags}")),
            (command!("olmkit bundle validate {}", "bundle"), "olmkit bundle validate bundle".to_owned()),
            (
                command!("olmkit operator doctor --from {}", "objects.json"),
                "olmkit operator doctor --from objects.json".to_owned(),
            ),
        ] {
            assert_eq!(line.on(&team()).to_string(), expected);
        }
    }

    #[test]
    fn no_command_of_a_simulated_cluster_reaches_a_real_one() {
        let file = Reach::simulated(Some(Path::new("c.json")));
        assert!(!command!("kubectl get pods").on(&file).is_possible());
        assert!(!command!("echo {} | kubectl create -f -", "x").on(&file).is_possible());
        let list = command!("olmkit operator list").on(&file);
        assert!(list.is_possible());
        assert_eq!(list.to_string(), "olmkit operator list --simulate c.json");
        let test = command!("olmkit operator test {}", "demo").on(&file);
        assert_eq!(test.to_string(), "olmkit operator test demo");
    }

    #[test]
    fn no_command_reaches_a_deleted_cluster() {
        let deleted = Reach::deleted();
        for command in [command!("kubectl get pods"), command!("olmkit operator doctor {}", "demo")] {
            assert!(!command.on(&deleted).is_possible());
        }
        assert!(command!("olmkit bundle push {}", "demo").on(&deleted).is_possible());
    }
}
