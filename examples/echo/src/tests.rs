use kube::{CustomResourceExt, Resource};

use super::*;

fn echo(message: &str) -> Echo {
    let mut echo = Echo::new("e", EchoSpec { message: message.into() });
    echo.metadata.uid = Some("uid".into());
    echo
}

fn ended(condition: &str) -> Job {
    let conditions = json!([{"type": condition, "status": "True", "message": "why"}]);
    serde_json::from_value(json!({"metadata": {"name": "e"}, "status": {"conditions": conditions}})).unwrap()
}

fn said(job: Option<&Job>, problem: Option<&str>) -> String {
    let status = status_of(&echo("m"), &EchoStatus::default(), job, problem.map(Into::into));
    let conditions =
        status.conditions.iter().map(|one| format!(" {}={} {}", one.type_, one.status, one.reason));
    format!("{}{}", status.job.unwrap_or_default(), conditions.collect::<String>())
}

#[test]
fn the_status_follows_the_job() {
    assert_eq!(said(None, None), " Complete=False NotPrinted Degraded=False AsExpected");
    assert_eq!(said(Some(&ended("Other")), None), "e Complete=False NotPrinted Degraded=False AsExpected");
    assert_eq!(said(Some(&ended("Complete")), None), "e Complete=True Printed Degraded=False AsExpected");
    assert_eq!(said(Some(&ended("Failed")), None), "e Complete=False NotPrinted Degraded=True JobFailed");
    assert_eq!(said(None, Some("taken")), " Complete=False NotPrinted Degraded=True NameTaken");
}

#[test]
fn a_status_that_says_nothing_new_is_equal_to_the_one_before() {
    let (echo, job) = (echo("m"), ended("Complete"));
    let first = status_of(&echo, &EchoStatus::default(), Some(&job), None);
    assert_eq!(status_of(&echo, &first, Some(&job), None), first);
}

/// Neither a shell, nor `printf`, nor Kubernetes finds anything in it.
#[test]
fn a_message_is_printed_as_it_is() {
    for message in ["-n", "%s", "$(POD_NAME)", "a\nb", "'; rm -r /", "$$"] {
        let job = job(&echo(message), "image");
        let command = job.spec.unwrap().template.spec.unwrap().containers.remove(0).command.unwrap();
        assert_eq!(command[..2], ["printf", "%s\\n"]);
        assert_eq!(command[2].replace("$$", "$"), message);
        assert_eq!(command[2].matches('$').count(), message.matches('$').count() * 2, "{message}");
    }
}

#[test]
fn the_job_is_its_echos() {
    let (echo, job) = (echo("m"), job(&echo("m"), "image"));
    assert!(is_controlled_by(&job, &echo));
    assert_eq!(job.owner_references()[0].kind, Echo::kind(&()));
}

/// The program prints the CRD that is in the chart; `make manifests` renews it.
#[test]
fn the_crd_of_the_chart_is_fresh() {
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/chart/crds/crd.yaml")).unwrap();
    let kept: serde_json::Value = serde_saphyr::from_str(&kept).unwrap();
    assert_eq!(kept, serde_json::to_value(Echo::crd()).unwrap(), "run `make manifests`");
    let chart = include_str!("../chart/Chart.yaml");
    for key in ["version", "appVersion"] {
        let line = format!("\n{key}: {}\n", env!("CARGO_PKG_VERSION"));
        assert!(chart.contains(&line), "Chart.yaml is of another version: `{key}`");
    }
}
