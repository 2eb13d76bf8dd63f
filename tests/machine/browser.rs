//! The web pages of catalogs in a real browser: scripts run, paths are shown, and nothing that a catalog says becomes a script.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::support::{find, trial};

/// A page that takes longer hangs: on a machine that does nothing else it is a matter of a second.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("pages_in_a_browser", &["chromium"], pages_work),
        trial("pages_of_a_hostile_catalog", &["chromium"], nothing_of_a_catalog_runs),
        trial("pages_of_many_packages", &["chromium"], many_packages_are_listed),
    ]
}

/// Writes the pages of a catalog.
fn write_pages(catalog: &Path, pages: &Path) -> Result<(), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["catalog", "graph"])
        .arg(catalog)
        .arg("--output-dir")
        .arg(pages)
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A page as it is after its scripts have run, and what the browser's console says.
fn open(page: &str) -> Result<(String, String), Failed> {
    let profile = tempfile::tempdir()?;
    let program = find("chromium").ok_or("chromium is not installed")?;
    let (dom, log) = (profile.path().join("dom"), profile.path().join("log"));
    let mut browser = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
        .arg(page)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom)?)
        .stderr(fs::File::create(&log)?)
        .spawn()?;
    let start = Instant::now();
    while browser.try_wait()?.is_none() {
        if start.elapsed() > TIMEOUT {
            browser.kill()?;
            browser.wait()?;
            return Err(format!("{page} is not there after {} s", TIMEOUT.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    Ok((fs::read_to_string(&dom)?, console.join("\n")))
}

fn url(directory: &Path, page: &str) -> String {
    format!("file://{}/{page}", directory.display())
}

fn pages_work() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/edit.in/catalog");
    write_pages(&catalog, directory.path())?;
    let (dom, console) = open(&url(directory.path(), "index.html"))?;
    assert_eq!(console, "");
    assert!(dom.contains(">2 of 2</span>"), "{dom}");
    let (dom, console) = open(&url(directory.path(), "packages/redis-operator.html#bundle-1"))?;
    assert_eq!(console, "");
    assert!(dom.contains("<details id=\"bundle-1\" open=\"\">"), "the link does not open the bundle");
    let hops = "<p class=\"soft\">1 hop</p><ol class=\"hops\"><li>0.1.0</li><li>0.2.0</li></ol>";
    assert_eq!(dom.matches(hops).count(), 2, "both versions of OLM take that hop:\n{dom}");
    Ok(())
}

/// Texts that want to be scripts; if one of them ran, or was refused by the policy only, the console or the title would tell.
fn nothing_of_a_catalog_runs() -> Result<(), Failed> {
    let evil = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">' onload='document.title=1";
    let package = "evil";
    let entries = json!([{"name": evil}, {"name": "b", "replaces": evil}]);
    let metadata = json!({"displayName": evil, "description": evil, "provider": {"name": evil}});
    let properties = |version: &str| {
        json!([
            {"type": "olm.package", "value": {"packageName": package, "version": version}},
            {"type": "olm.csv.metadata", "value": metadata},
        ])
    };
    let icon = json!({"base64data": "PHN2ZyBvbmxvYWQ9ImRvY3VtZW50LnRpdGxlPSd0YWtlbiciLz4=", "mediatype": "image/svg+xml"});
    let blobs = [
        json!({"schema": "olm.package", "name": package, "defaultChannel": evil, "description": evil, "icon": icon}),
        json!({"schema": "olm.channel", "package": package, "name": evil, "entries": entries}),
        json!({"schema": "olm.bundle", "package": package, "name": evil, "image": evil, "properties": properties("1.0.0")}),
        json!({"schema": "olm.bundle", "package": package, "name": "b", "image": "x/y:z", "properties": properties("2.0.0")}),
    ];
    let directory = tempfile::tempdir()?;
    let catalog = directory.path().join("catalog.json");
    fs::write(&catalog, blobs.map(|blob| format!("{blob}\n")).concat())?;
    write_pages(&catalog, &directory.path().join("pages"))?;
    for page in ["pages/index.html", "pages/packages/evil.html"] {
        let (dom, console) = open(&url(directory.path(), page))?;
        assert_eq!(console, "", "{page}");
        assert!(!dom.contains("<title>taken") && !dom.contains("<title>1"), "{page}");
        assert!(!dom.contains("<img src=\"x\""), "{page}");
    }
    Ok(())
}

fn many_packages_are_listed() -> Result<(), Failed> {
    let package = |number: usize| {
        let name = format!("operator-{number}");
        let blobs = [
            json!({"schema": "olm.package", "name": name, "defaultChannel": "stable", "description": "An operator."}),
            json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": [{"name": format!("{name}.v1.0.0")}]}),
            json!({"schema": "olm.bundle", "package": name, "name": format!("{name}.v1.0.0"), "image": "x/y:z",
                "properties": [{"type": "olm.package", "value": {"packageName": name, "version": "1.0.0"}}]}),
        ];
        blobs.map(|blob| format!("{blob}\n")).concat()
    };
    let directory = tempfile::tempdir()?;
    let catalog = directory.path().join("catalog.json");
    fs::write(&catalog, (0..300).map(package).collect::<String>())?;
    let pages = directory.path().join("pages");
    write_pages(&catalog, &pages)?;
    let (dom, console) = open(&url(&pages, "index.html"))?;
    assert_eq!(console, "");
    assert!(dom.contains(">300 of 300</span>"));
    Ok(())
}
