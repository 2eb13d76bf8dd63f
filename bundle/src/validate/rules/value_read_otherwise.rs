use crate::finding::{Finding, Findings};
use crate::parse::File;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::yaml::{Entry, Node, Value};

rule!("value-read-otherwise", Warning, STRICT, "value_read_otherwise.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.files.iter().filter(|file| file.is_manifest() || file.is_metadata()) {
        let Some(root) = file.root() else { continue };
        walk(file, root, findings);
        for annotation in facts
            .annotations()
            .filter(|annotations| annotations.file.path == file.path)
            .into_iter()
            .flat_map(|a| a.map)
        {
            as_text(file, &annotation.value, findings);
        }
    }
    let csv = facts.csv().into_iter().flat_map(|csv| csv.as_text.iter().map(move |span| (csv.object, *span)));
    let crds = facts
        .crd_fits()
        .iter()
        .flat_map(|(object, fit)| fit.as_text.iter().map(move |span| (*object, *span)));
    for (object, span) in csv.chain(crds) {
        if let Some(file) = facts.files.iter().find(|file| std::ptr::eq(&file.source, object.source)) {
            let written = span.slice(file.source.text());
            if let Some(read) = crate::yaml::as_plain_text(written).filter(|read| read != written) {
                report(file, span, written, &read, findings);
            }
        }
    }
}

/// Keys that are words of YAML 1.1, and octal numbers, wherever they stand.
fn walk(file: &File<'_>, node: &Node<'_>, findings: &mut Findings) {
    match &node.value {
        Value::Sequence(items) => items.iter().for_each(|item| walk(file, item, findings)),
        Value::Mapping(entries) => {
            for entry in entries {
                check_key(file, entry, findings);
                if !is_a_mode(&entry.key) {
                    check_octal(file, &entry.value, findings);
                }
                walk(file, &entry.value, findings);
            }
        }
        _ => {}
    }
}

fn check_key(file: &File<'_>, entry: &Entry<'_>, findings: &mut Findings) {
    let written = entry.key_span.slice(file.source.text());
    if matches!(entry.key.as_ref(), "true" | "false")
        && !written.trim_matches(['"', '\'']).eq_ignore_ascii_case(&entry.key)
    {
        report(file, entry.key_span, written, &entry.key, findings);
    }
}

/// Modes of files are octal on purpose.
fn is_a_mode(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("mode")
}

fn check_octal(file: &File<'_>, node: &Node<'_>, findings: &mut Findings) {
    let Value::Int(value) = node.value else { return };
    let written = node.span.slice(file.source.text());
    let digits = written.trim_start_matches(['+', '-']);
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        report(file, node.span, written, &value.to_string(), findings);
    }
}

fn as_text(file: &File<'_>, node: &Node<'_>, findings: &mut Findings) {
    let written = node.span.slice(file.source.text());
    if node.as_str().is_none()
        && let Some(read) = node.to_text().filter(|read| read != written && !node.is_null())
    {
        report(file, node.span, written, &read, findings);
    }
}

fn report(file: &File<'_>, span: crate::source::Span, written: &str, read: &str, findings: &mut Findings) {
    let written = written.replace('`', "'");
    let finding = Finding::new(&RULE.code, format!("`{written}` is read as `{}`", read.replace('`', "'")))
        .at(file.place_at(span))
        .subject(file.source.path());
    findings.push(finding.help(format!("write `\"{written}\"` if you mean that")));
}
