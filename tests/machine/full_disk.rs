//! A full disk: no file is left half written, and the error says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};

use crate::fixture::Catalog;
use crate::support::{Part, trial_with};

pub(crate) fn trials() -> Vec<Trial> {
    let parts = [Part::new("mounts", missing())];
    vec![
        trial_with("a_full_disk_keeps_the_compiled_catalog_of_before", &parts, compiled_catalog),
        trial_with("on_a_full_disk_an_image_archive_is_whole_or_not_there", &parts, image_archive),
        trial_with("on_a_full_disk_a_layout_keeps_its_images", &parts, layout),
        trial_with("on_a_full_disk_nothing_is_left_of_a_new_layout", &parts, new_layout),
        trial_with("on_a_full_disk_no_directory_is_half_filled", &parts, directories),
    ]
}

/// Runs a shell script with a tiny disk of its own at `$DISK`.
fn on_tiny_disk(disk: &Path, script: &str) -> Command {
    let script = format!("mount -t tmpfs -o size=16k tmpfs \"$DISK\" && {{ {script}\n}}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).env("DISK", disk);
    command
}

/// Why there can be no such disk, if there cannot.
fn missing() -> Option<String> {
    let disk = tempfile::tempdir().unwrap();
    let why = match on_tiny_disk(disk.path(), "true").output() {
        Ok(Output { status, .. }) if status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("cannot mount a file system in a namespace of its own: {}", why.replace('\n', "; ")))
}

/// What olmkit says when a shell script runs it on a full disk with a catalog that does not fit.
fn said(script: &str) -> String {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let disk = catalog.as_ref().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let mut command = on_tiny_disk(&disk, script);
    command.current_dir(&catalog);
    command.env("OLMKIT", env!("CARGO_BIN_EXE_olmkit")).env("CATALOG", catalog.path());
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn compiled_catalog() -> Result<(), Failed> {
    let said = said(
        r#"printf 'olmkit catalog\r\nold' >"$DISK/catalog.olmkit"
        "$OLMKIT" catalog build-index "$CATALOG" --to "$DISK/catalog.olmkit"
        echo "exit code $?, left: $(ls -A "$DISK"): $(cat "$DISK/catalog.olmkit")""#,
    );
    assert!(said.contains("exit code 3, left: catalog.olmkit: olmkit catalog\r\nold"), "{said}");
    assert!(said.contains("No space left on device") && said.contains("cannot write"), "{said}");
    Ok(())
}

fn image_archive() -> Result<(), Failed> {
    let said = said(
        r#""$OLMKIT" catalog build "$CATALOG" --data-only --to "oci-archive:$DISK/image.tar"
        echo "exit code $?, left: $(ls -A "$DISK")""#,
    );
    assert!(said.contains("exit code 3, left: \n") && said.contains("No space left on device"), "{said}");
    Ok(())
}

/// An image that does not fit goes to a layout that holds another one.
fn layout() -> Result<(), Failed> {
    let said = said(
        r#"mount -o remount,size=64k "$DISK"
        for name in small large; do
          mkdir $name && printf 'schema: olm.package\nname: %s\ndescription: ' $name >$name/catalog.yaml
        done
        head -c 200000 /dev/urandom | base64 -w0 >>large/catalog.yaml
        "$OLMKIT" catalog build large --data-only --to oci:images:v2
        cd "$DISK"
        "$OLMKIT" catalog build ../small --data-only --to oci:images:v1
        before=$(find . -type f | sort | xargs sha256sum)
        "$OLMKIT" catalog build ../large --data-only --to oci:images:v2; echo "exit code $?"
        "$OLMKIT" image copy oci:../images:v2 oci:images:v1; echo "exit code $?"
        [ "$before" = "$(find . -type f | sort | xargs sha256sum)" ] && echo same
        "$OLMKIT" image digest oci:images:v1 && echo readable"#,
    );
    assert_eq!(said.matches("exit code 3").count(), 2, "{said}");
    assert!(said.contains("same\n") && said.contains("readable"), "{said}");
    assert_eq!(said.matches("No space left on device").count(), 2, "{said}");
    assert_eq!(said.matches("cannot store a blob in the layout `images`").count(), 2, "{said}");
    Ok(())
}

/// A layout for which there is no room at all, or not for the whole image.
fn new_layout() -> Result<(), Failed> {
    let said = said(
        r#"cd "$DISK"; mkdir mine
        for room in 0 8; do
          dd if=/dev/zero of=filler bs=4k 2>/dev/null
          truncate -s -${room}k filler
          before=$(find . -exec ls -ld --time-style=+ {} +)
          for to in new mine deep/er; do
            "$OLMKIT" catalog build "$CATALOG" --data-only --to oci:$to:v1; echo "exit code $?"
          done
          [ "$before" = "$(find . -exec ls -ld --time-style=+ {} +)" ] && echo same || find .
        done"#,
    );
    assert_eq!(said.matches("exit code 3").count(), 6, "{said}");
    assert_eq!(said.matches("No space left on device").count(), 6, "{said}");
    assert_eq!(said.matches("same\n").count(), 2, "{said}");
    Ok(())
}

/// What does not fit into a directory beside files of others.
fn directories() -> Result<(), Failed> {
    let said = said(
        r#"mkdir -p bundle/manifests bundle/metadata package/1.0.0
        image=operators.operatorframework.io.bundle
        printf "annotations:\n  $image.package.v1: a\n  $image.manifests.v1: manifests/\n  $image.metadata.v1: metadata/\n" \
          >bundle/metadata/annotations.yaml
        csv='apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a.v1.0.0}\nspec: {version: 1.0.0, description: "%s"}\n'
        printf "$csv" "$(head -c 60000 /dev/zero | tr '\0' x)" | tee package/1.0.0/csv.yaml >bundle/manifests/csv.yaml
        printf 'packageName: a\nchannels: [{name: stable, currentCSV: a.v1.0.0}]\n' >package/a.package.yaml
        "$OLMKIT" bundle build bundle --to oci:images:v1
        cd "$DISK"; mkdir mine; echo kept >mine/notes; before=$(find . | sort)
        for to in new mine/new; do
          "$OLMKIT" bundle unpack ../bundle --output-dir $to; echo "exit code $?"
          "$OLMKIT" bundle unpack oci:../images:v1 --output-dir $to; echo "exit code $?"
          "$OLMKIT" bundle convert ../package --output-dir $to; echo "exit code $?"
        done
        [ "$before" = "$(find . | sort)" ] && cat mine/notes && echo same"#,
    );
    assert_eq!(said.matches("exit code 3").count(), 6, "{said}");
    assert_eq!(said.matches("No space left on device").count(), 6, "{said}");
    assert_eq!(said.matches("error: cannot write `").count(), 6, "{said}");
    assert!(said.contains("kept\nsame\n"), "{said}");
    Ok(())
}
