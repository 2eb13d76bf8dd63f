//! The pages of findings: every example is what it says.

use super::*;

/// A small operator without anything to complain about, for examples that show something else.
const OPERATOR: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: system}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      containers: [{name: manager, image: 'quay.io/example/operator:v1', ports: [{name: webhook, containerPort: 9443}]}]
";

/// The codes that an example of a page brings. `# olmkit.yaml`, `# base.yaml` and `# manifests.yaml` start a file; `# alone`
/// means without the small operator.
fn example_codes(example: &str) -> Vec<&'static str> {
    let (mut files, mut current) = (BTreeMap::<&str, String>::new(), "manifests.yaml");
    let mut alone = false;
    for line in example.lines() {
        match line.strip_prefix("# ") {
            Some(name) if name.ends_with(".yaml") => current = name,
            Some("alone") => alone = true,
            _ => *files.entry(current).or_default() += &format!("{line}\n"),
        }
    }
    let manifests = files.remove("manifests.yaml").unwrap_or_default();
    let texts = if alone { vec![manifests.as_str()] } else { vec![manifests.as_str(), OPERATOR] };
    let package =
        format!("package: echo\nversion: 0.1.0\n{}", files.remove("olmkit.yaml").unwrap_or_default());
    let base = files.remove("base.yaml");
    let input = Input { texts: &texts, package: Some(&package), base: base.as_deref(), ..Input::default() };
    input.run().findings.iter().map(|finding| finding.code.name).collect()
}

#[test]
fn examples_of_the_pages_are_what_they_say() {
    for code in codes::ALL {
        for block in code.docs.split("```yaml ").skip(1) {
            let (kind, rest) = block.split_once('\n').unwrap();
            let found = example_codes(rest.split_once("```").unwrap().0);
            match kind.trim() {
                "bad" => assert!(found.contains(&code.name), "{}: {found:?}", code.name),
                "good" => assert_eq!(found, [""; 0], "{}", code.name),
                other => panic!("{}: {other}", code.name),
            }
        }
    }
}

#[test]
fn codes_are_sorted_and_documented() {
    assert!(codes::ALL.is_sorted_by(|a, b| a.name < b.name));
    for code in codes::ALL {
        assert!(code.docs.len() > 80, "{}", code.name);
        assert!(validate::rules().iter().all(|rule| rule.code.name != code.name), "{}", code.name);
    }
}
