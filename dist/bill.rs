//! The bill of materials of a release: the crates that are in the program `olmkit` for a target, in CycloneDX 1.5.
//! `bill-of-materials TARGET` prints it. Crates that only build others, such as procedural macros, are not in it.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// A crate, by name and version.
type Crate = (String, String);

/// The crates of a program, and on what each depends.
#[derive(Debug, Default, PartialEq)]
struct Tree {
    licenses: BTreeMap<Crate, String>,
    needs: BTreeMap<Crate, BTreeSet<Crate>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [target] = &arguments[..] else { return Err("usage: bill-of-materials TARGET".into()) };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["tree", "--locked", "--package=olmkit", "--edges=normal,no-proc-macro", "--prefix=depth"])
        .args(["--format=\t{p}\t{l}", "--target", target])
        .output()?;
    if !output.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let tree = Tree::read(&String::from_utf8(output.stdout)?)?;
    let checksums = checksums(&fs::read_to_string(root.join("Cargo.lock"))?)?;
    writeln!(io::stdout(), "{:#}", bill(&tree, &checksums))?;
    Ok(())
}

impl Tree {
    /// Reads what `cargo tree` prints: depth, name and version, licence. Crates that were printed before end in `(*)` and
    /// have their own dependencies there.
    fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        let mut tree = Self::default();
        let mut above: Vec<Crate> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let mut fields = line.split('\t');
            let mut field = || fields.next().ok_or_else(|| format!("not a line of cargo tree: {line}"));
            let (depth, package, license) = (field()?.parse::<usize>()?, field()?, field()?);
            let (name, rest) = package.split_once(" v").ok_or_else(|| format!("no version: {line}"))?;
            let version = rest.split(' ').next().unwrap_or(rest);
            let found = (name.to_owned(), version.to_owned());
            let license = license.strip_suffix(" (*)").unwrap_or(license);
            tree.licenses.insert(found.clone(), license.to_owned());
            above.truncate(depth);
            if let Some(parent) = above.last() {
                tree.needs.entry(parent.clone()).or_default().insert(found.clone());
            }
            above.push(found);
        }
        Ok(tree)
    }
}

/// The SHA-256 of each crate that was downloaded, from `Cargo.lock`.
fn checksums(lock: &str) -> Result<BTreeMap<Crate, String>, Box<dyn Error>> {
    let lock: toml::Value = toml::from_str(lock)?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).ok_or("Cargo.lock names no packages")?;
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let of =
        |package| Some(((text(package, "name")?, text(package, "version")?), text(package, "checksum")?));
    Ok(packages.iter().filter_map(of).collect())
}

fn address((name, version): &Crate) -> String {
    format!("pkg:cargo/{name}@{version}")
}

fn bill(tree: &Tree, checksums: &BTreeMap<Crate, String>) -> Value {
    let component = |one: &Crate| {
        let is_program = one.0 == "olmkit";
        let mut component = json!({
            "type": if is_program { "application" } else { "library" },
            "bom-ref": address(one),
            "name": one.0,
            "version": one.1,
            "purl": address(one),
        });
        // A slash between licences is how crates wrote `OR` before SPDX.
        let license = tree.licenses.get(one).map(|license| license.replace('/', " OR ")).unwrap_or_default();
        if !license.is_empty() {
            component["licenses"] = json!([{"expression": license}]);
        }
        if let Some(checksum) = checksums.get(one) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let (program, libraries): (Vec<&Crate>, Vec<&Crate>) =
        tree.licenses.keys().partition(|one| one.0 == "olmkit");
    let none = BTreeSet::new();
    let depends = |one: &Crate| {
        let on: Vec<String> = tree.needs.get(one).unwrap_or(&none).iter().map(address).collect();
        json!({"ref": address(one), "dependsOn": on})
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program.first().map(|one| component(one))},
        "components": libraries.into_iter().map(component).collect::<Vec<_>>(),
        "dependencies": tree.licenses.keys().map(depends).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_lists_each_crate_once_with_what_it_needs() {
        let text = "0\tolmkit v0.1.0 (/somewhere)\tMIT\n1\ta v1.0.0\tMIT/Apache-2.0\n2\tb v2.0.0\tMIT\n1\tb v2.0.0\tMIT (*)\n";
        let tree = Tree::read(text).unwrap();
        let lock = "[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"00ff\"\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";
        let bill = bill(&tree, &checksums(lock).unwrap());
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/olmkit@0.1.0");
        assert_eq!(
            bill["components"],
            json!([
                {
                    "type": "library", "bom-ref": "pkg:cargo/a@1.0.0", "name": "a", "version": "1.0.0",
                    "purl": "pkg:cargo/a@1.0.0", "licenses": [{"expression": "MIT OR Apache-2.0"}],
                },
                {
                    "type": "library", "bom-ref": "pkg:cargo/b@2.0.0", "name": "b", "version": "2.0.0",
                    "purl": "pkg:cargo/b@2.0.0", "licenses": [{"expression": "MIT"}],
                    "hashes": [{"alg": "SHA-256", "content": "00ff"}],
                },
            ])
        );
        assert_eq!(
            bill["dependencies"][2],
            json!({"ref": "pkg:cargo/olmkit@0.1.0", "dependsOn": ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0"]})
        );
        assert!(Tree::read("0\tolmkit").is_err());
    }
}
