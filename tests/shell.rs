//! What shells and manual pages get from the program: completion of words, scripts, pages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const CATALOG: &str = "{schema: olm.package, name: redis, defaultChannel: stable}\n---\n\
                       {schema: olm.channel, package: redis, name: stable, entries: [{name: redis.v1}]}\n---\n\
                       {schema: olm.package, name: etcd, defaultChannel: alpha}\n---\n\
                       {schema: olm.channel, package: etcd, name: alpha, entries: [{name: etcd.v1}]}\n";

const KUBECONFIG: &str = "{apiVersion: v1, kind: Config, current-context: kind, contexts: [\
                          {name: kind, context: {cluster: kind, user: kind}}, \
                          {name: prod, context: {cluster: kind, user: kind}}], \
                          clusters: [{name: kind, cluster: {server: 'http://127.0.0.1:9'}}], users: [{name: kind}]}";

/// A directory with a catalog and a kubeconfig, whose cluster does not answer.
fn place() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("catalog")).unwrap();
    fs::write(dir.path().join("catalog/catalog.yaml"), CATALOG).unwrap();
    fs::write(dir.path().join("kubeconfig"), KUBECONFIG).unwrap();
    dir
}

fn answer(command: &mut Command, dir: &Path) -> String {
    let output = command.current_dir(dir).env("KUBECONFIG", dir.join("kubeconfig")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What bash offers for the last word of a line.
fn offered(dir: &Path, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    program.arg("--").args(&words).env("OLMKIT_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    program.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    answer(&mut program, dir).lines().map(str::to_owned).collect()
}

#[test]
fn names_are_those_of_the_catalog_and_the_kubeconfig() {
    let dir = place();
    assert_eq!(offered(dir.path(), "olmkit cat"), ["catalog"]);
    assert_eq!(offered(dir.path(), "olmkit catalog promote catalog --package "), ["etcd", "redis"]);
    assert_eq!(
        offered(dir.path(), "olmkit catalog set-default catalog --package redis --channel st"),
        ["stable"]
    );
    assert_eq!(offered(dir.path(), "olmkit operator list --context "), ["kind", "prod"]);
    assert_eq!(offered(dir.path(), "olmkit operator list -o ").first().map(String::as_str), Some("text"));
    // A cluster that is not there has no names, and nobody waits for it.
    assert_eq!(offered(dir.path(), "olmkit operator list -n "), [""; 0]);
}

#[test]
fn kubectl_gets_its_own_form() {
    let dir = place();
    let plugin = dir.path().join("kubectl_complete-olmkit");
    symlink(env!("CARGO_BIN_EXE_olmkit"), &plugin).unwrap();
    let answer = answer(Command::new(&plugin).args(["catalog", "val"]), dir.path());
    let (first, rest) = answer.split_once('\n').unwrap();
    assert!(first.starts_with("validate\tValidate catalogs"), "{answer}");
    assert_eq!(rest, ":4\n");
}

#[test]
fn every_shell_reads_its_script() {
    let dir = place();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        let script = answer(program.args(["completions", shell]), dir.path());
        assert!(script.contains("OLMKIT_COMPLETE"), "{shell}: {script}");
        fs::write(dir.path().join(shell), script).unwrap();
    }
    // The one shell that is everywhere.
    answer(Command::new("bash").args(["-n", "bash"]), dir.path());
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = place();
    let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    let written = answer(program.args(["man", "--output-dir", "man1"]), dir.path());
    assert!(written.lines().any(|path| path == "man1/olmkit-bundle-generate.1"), "{written}");
    for path in written.lines() {
        let page = fs::read_to_string(dir.path().join(path)).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{path}");
    }
    let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    let page = answer(program.args(["man", "bundle", "generate"]), dir.path());
    assert_eq!(page, fs::read_to_string(dir.path().join("man1/olmkit-bundle-generate.1")).unwrap());
}

#[test]
fn manual_pages_replace_manual_pages_alone() {
    let dir = place();
    let at = |path: &str| dir.path().join(path);
    let man = |code: i32| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        let output = program.args(["man", "--output-dir", "m"]).current_dir(dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    man(0);
    fs::write(at("m/olmkit.1"), fs::read_to_string(at("m/olmkit.1")).unwrap() + "old").unwrap();
    man(0);
    assert!(!fs::read_to_string(at("m/olmkit.1")).unwrap().ends_with("old"));
    let page = fs::read(at("m/olmkit.1")).unwrap();
    fs::remove_file(at("m/olmkit-version.1")).unwrap();
    fs::write(at("m/olmkit.1"), "mine").unwrap();
    let refused = man(2);
    assert!(refused.contains("`m/olmkit.1` exists and is not a page that olmkit wrote"), "{refused}");
    assert_eq!(fs::read_to_string(at("m/olmkit.1")).unwrap(), "mine");
    // Nothing is written before all of it may be.
    assert!(!at("m/olmkit-version.1").exists());
    for (target, content) in
        [("../precious", Some(&page[..])), ("../precious", Some(b"mine")), ("../new", None)]
    {
        fs::remove_file(at("m/olmkit.1")).unwrap();
        symlink(target, at("m/olmkit.1")).unwrap();
        if let Some(content) = content {
            fs::write(at("precious"), content).unwrap();
        }
        man(if content == Some(b"mine") { 2 } else { 3 });
        assert_eq!(content.map(<[u8]>::to_vec), fs::read(at(target.trim_start_matches("../"))).ok());
    }
}

/// A user who asks for help and gets none has to see that from the exit code.
#[test]
fn help_that_cannot_be_printed_is_an_error() {
    for arguments in [&["--help"][..], &["operator", "upgrade", "--help"], &["--version"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = program.args(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
        assert!(
            said.contains("error: cannot write to standard output\n  caused by: No space left"),
            "{said}"
        );
    }
}

/// Nobody reads the answer: the command ends without a word about that, and with the exit code that it has with a reader.
#[test]
fn the_exit_code_is_that_of_the_command_without_a_reader() {
    let dir = place();
    fs::create_dir_all(dir.path().join("none/manifests")).unwrap();
    for (arguments, code) in [(&["bundle", "validate", "none"][..], 1), (&["version"], 0), (&["--help"], 0)] {
        for redirection in [">&-", "| true", "2>&- >&-"] {
            let script = format!("\"$0\" \"$@\" {redirection}; exit ${{PIPESTATUS[0]}}");
            let mut bash = Command::new("bash");
            bash.args(["-c", &script, env!("CARGO_BIN_EXE_olmkit")]).args(arguments);
            let output = bash.current_dir(dir.path()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{arguments:?} {redirection}: {said}");
            assert!(!said.contains("standard output"), "{arguments:?} {redirection}: {said}");
        }
    }
}

/// A script that a shell is to read must not become JSON, nor be text where JSON was asked for.
#[test]
fn scripts_and_pages_are_text_only() {
    let dir = place();
    for arguments in [&["completions", "bash"][..], &["man", "bundle"]] {
        for format in ["json", "yaml", "sarif"] {
            let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
            let program = program.args(arguments).args(["--output", format]).current_dir(dir.path());
            let output = program.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{arguments:?} {format}");
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(said.contains("this command prints text only"), "{said}");
        }
    }
}

#[test]
fn the_version_names_what_the_tests_are_built_with() {
    let dir = place();
    let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    let version = answer(program.arg("version"), dir.path());
    let modules = |path: &str| fs::read_to_string(path).unwrap();
    let olm = modules("tests/cluster/olm/go.mod");
    assert!(version.starts_with(&format!("olmkit {}\n", env!("CARGO_PKG_VERSION"))));
    let number = |modules: &str, module: &str| {
        let line = modules.lines().find(|line| line.contains(&format!("{module} v"))).unwrap();
        line.split(" v").nth(1).unwrap().split(' ').next().unwrap().to_owned()
    };
    for module in ["operator-lifecycle-manager", "operator-registry"] {
        let number = number(&olm, &format!("operator-framework/{module}"));
        assert!(version.contains(&format!(" {number}")), "{module} {number}: {version}");
    }
    // Of Kubernetes, the patch does not matter: the versions of the cluster from parts, and of nodes that `with-kind` makes besides.
    let minor = |path: &str| {
        let number = number(&modules(&format!("{path}/go.mod")), "k8s.io/kubernetes");
        number.rsplit_once('.').unwrap().0.to_owned()
    };
    let newest = minor("tests/cluster");
    let names = fs::read_dir("tests/cluster").unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut minors: Vec<String> = names
        .filter_map(|name| {
            let of_name = name.strip_prefix("kubernetes-")?.to_owned();
            assert_eq!(minor(&format!("tests/cluster/{name}")), of_name);
            Some(of_name)
        })
        .collect();
    minors.sort();
    minors.push(newest.clone());
    assert_eq!(minor("tests/cluster/kind"), newest);
    assert!(version.contains(&format!(" Kubernetes {}\n", minors.join(" and "))), "{minors:?}: {version}");
    let kind = fs::read_to_string("src/actions/operator/kind.rs").unwrap();
    assert!(kind.contains(&format!("kindest/node:v{newest}.")), "nodes of kind do not run {newest}");
}

#[test]
fn quiet_commands_show_no_progress() {
    let dir = place();
    let bundles = fs::canonicalize("tests/cli/operator.in/bundles").unwrap();
    let run = |arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        let output = program.current_dir(dir.path()).args(arguments).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {talk}");
        talk
    };
    let bundle = bundles.join("0.1.0");
    run(&[
        "catalog",
        "add",
        "echo",
        bundle.to_str().unwrap(),
        "--image-ref-template",
        "registry.example.com/{{.Package}}:v{{.Version}}",
    ]);
    let install = |state: &str, quiet: &[&str]| {
        let mut arguments = vec!["operator", "install", "echo-operator", "-n", "echo", "--simulate", state];
        arguments.extend(["--catalog-from", "echo", "--bundles-from", bundles.to_str().unwrap()]);
        run(&[&arguments[..], quiet].concat())
    };
    assert!(install("a.json", &[]).contains("subscription/echo-operator: created"));
    assert_eq!(install("b.json", &["-q"]), "");
}
