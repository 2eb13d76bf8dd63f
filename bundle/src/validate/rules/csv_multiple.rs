use crate::csv;
use crate::finding::Findings;
use crate::load::is_leftover;
use crate::parse::File;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-multiple", Error, OLM, "csv_multiple.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let is_csv = |file: &&File<'_>| file.object().is_some_and(|object| object.kind() == csv::KIND);
    let mut files: Vec<_> = facts.manifests().filter(is_csv).collect();
    // A copy that an editor made is the other one, whatever its name sorts to.
    files.sort_by_key(|file| is_leftover(file.path));
    let mut csvs = files.iter().filter_map(|file| Some((file.path, file.object()?)));
    let Some((_, first)) = csvs.next() else { return };
    for (path, csv) in csvs {
        let help = if is_leftover(path) {
            format!("remove `{path}`, which looks like a backup; `bundle build` leaves it out")
        } else {
            "keep the ClusterServiceVersion of this version, and remove the others".to_owned()
        };
        let finding = csv
            .finding(&RULE.code, "a bundle has one ClusterServiceVersion, this is another", steps!("kind"))
            .and(first.place(steps!("kind")).label("the first one"));
        findings.push(finding.help(help));
    }
}
