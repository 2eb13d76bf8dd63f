use crate::crd::Crd;
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::schema::{Schema, structural};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, crds, rule};
use crate::yaml::steps;

rule!("schema-not-structural", Error, INSTALL, "schema_not_structural.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    crds::each_crd(facts, of_crd, findings);
}

/// What is not structural in the schemas of a CRD.
pub(in crate::validate) fn of_crd(object: Object<'_, '_>, crd: Crd<'_, '_>, findings: &mut Findings) {
    // Clusters ask it of CRDs of the older API only where unknown fields are dropped.
    if !crd.is_v1() && crd.preserves_unknown_fields() {
        return;
    }
    for (index, version) in crd.versions().iter().enumerate() {
        let Some(schema) = crd.schema(version) else {
            let path = steps!("spec", "versions", index, "name");
            let message = format!("the version `{}` has no schema", version.name);
            findings.push(object.finding(&RULE.code, message, path).help("add `schema.openAPIV3Schema`"));
            continue;
        };
        let subresources = crd.of_version(version, "subresources");
        let has_status = subresources.and_then(|of| of.get("status")).is_some_and(|status| !status.is_null());
        let beside_status = structural::problem_beside_status(Schema(schema)).filter(|_| has_status);
        for problem in structural::problems(Schema(schema)).into_iter().chain(beside_status) {
            let at = if problem.path.is_empty() {
                String::new()
            } else {
                format!("`{}`: ", problem.path.replace('`', "'"))
            };
            let finding = Finding::new(&RULE.code, format!("{at}{}", problem.message))
                .at(object.place_at(problem.span))
                .subject(object.subject());
            findings.push(finding.help(way_out(&problem.message)));
        }
    }
}

/// The change to make, where a message leaves more than one open.
fn way_out(message: &str) -> &'static str {
    const WAYS_OUT: [(&str, &str); 9] = [
        (
            "there is no `type`",
            "set `type`, or `x-kubernetes-preserve-unknown-fields: true` where any value is allowed",
        ),
        ("is not a type", "set one of `array`, `boolean`, `integer`, `number`, `object` and `string`"),
        (
            "invalid or unsupported Perl syntax",
            "rewrite the pattern without look-around and flags of Perl, which RE2 does not have",
        ),
        (
            "invalid escape sequence",
            "write the character itself, or `\\x{…}`; RE2 has no backreferences and no `\\u`",
        ),
        ("RE2", "write the pattern as https://github.com/google/re2/wiki/Syntax says"),
        ("clusters do not accept", "remove it"),
        (
            "is not described outside of the logic",
            "describe it under `properties` beside `allOf`, `anyOf`, `oneOf` or `not` too",
        ),
        ("is neither required", "add it to `required` of the items, or give it a `default`"),
        ("is there twice", "remove one of the two"),
    ];
    let known = WAYS_OUT.iter().find(|(part, _)| message.contains(part));
    known.map_or(
        "correct the schema as https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema says",
        |(_, way_out)| way_out,
    )
}

#[cfg(test)]
mod tests {
    use super::way_out;
    use crate::pattern::Pattern;

    #[test]
    fn the_way_out_of_a_pattern_is_that_of_its_fault() {
        for (pattern, expected) in [
            ("(?!a)", "look-around"),
            (r"(a)\1", "backreferences"),
            (r"\u0041", r"`\u`"),
            ("(a", "as https://"),
        ] {
            let why = Pattern::parse(pattern).unwrap_err();
            let help = way_out(&format!("not a valid RE2 pattern: {why}"));
            assert!(help.contains(expected), "{pattern}: {help}");
        }
    }
}
