use crate::crd::Crd;
use crate::finding::Findings;
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Step, steps};

rule!("crd-printer-columns-invalid", Error, OLM, "crd_printer_columns_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        check_columns(object, crd, steps!("spec", "additionalPrinterColumns"), findings);
        for index in 0..crd.list(steps!("spec", "versions")).len() {
            check_columns(
                object,
                crd,
                steps!("spec", "versions", index, "additionalPrinterColumns"),
                findings,
            );
        }
    }
}

fn check_columns(object: Object<'_, '_>, crd: Crd<'_, '_>, path: &[Step<'_>], findings: &mut Findings) {
    // The newer API has no columns of the CRD as a whole.
    if crd.is_v1() && path.len() == 2 {
        return;
    }
    for (index, column) in crd.list(path).iter().enumerate() {
        let view = Crd(column);
        let name = view.text(steps!("name"));
        let mut report = |field, message: String, help: &str| {
            let path: Vec<_> = path.iter().copied().chain([Step::Index(index), Step::Key(field)]).collect();
            findings.push(object.finding(&RULE.code, message, &path).help(help));
        };
        if name.is_empty() {
            report("name", "a printer column has no name".into(), "name the column");
        }
        let kind = view.text(steps!("type"));
        if !TYPES.contains(&kind.as_ref()) {
            report("type", format!("`{kind}` is not a type of the column `{name}`"), TYPE_HELP);
        }
        let format = view.text(steps!("format"));
        if !format.is_empty() && !FORMATS.contains(&format.as_ref()) {
            report("format", format!("`{format}` is not a format of the column `{name}`"), FORMAT_HELP);
        }
        let json_path = view.text(steps!("jsonPath"));
        if !json_path.starts_with('.') {
            let message = match json_path.as_ref() {
                "" => format!("the column `{name}` has no `jsonPath`"),
                path => {
                    format!("`{path}` is not a path for the column `{name}`, it does not start with a dot")
                }
            };
            report("jsonPath", message, "write a path such as `.status.phase`");
        }
    }
}

const TYPES: [&str; 5] = ["integer", "number", "string", "boolean", "date"];
const TYPE_HELP: &str = "write `integer`, `number`, `string`, `boolean` or `date`";
const FORMATS: [&str; 8] = ["int32", "int64", "float", "double", "byte", "date", "date-time", "password"];
const FORMAT_HELP: &str =
    "write `int32`, `int64`, `float`, `double`, `byte`, `date`, `date-time` or `password`, or leave it out";
