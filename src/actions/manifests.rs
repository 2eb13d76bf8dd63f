//! `bundle manifests`: a bundle as the objects that OLM v1 applies, printed or written as a kustomization or a chart.

mod certificates;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::manifests::{
    Certificates, Options, RenderError, lacks_own_leases, render, unsound, webhook_services,
};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::yaml::{first_document, write};
use serde_json::{Value, json};

use crate::actions::results::{FileText, Written};
use crate::exit::{Exit, Failure};
use crate::files::{OutputDir, read_text};
use crate::image::Access;
use crate::input::Input;
use crate::shell::argument;

/// Who issues the certificates of webhooks.
#[derive(Clone, Copy, Debug)]
pub enum Issuer {
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// Nobody: a new authority for this bundle alone.
    SelfSigned,
}

/// What becomes of the objects.
#[derive(Clone, Debug)]
pub enum Form {
    /// They are printed, a YAML document each.
    Yaml,
    /// They are printed as one List in JSON.
    Json,
    /// They are written with a kustomization to a directory.
    Kustomization(PathBuf),
    /// They are written as a chart to a directory.
    HelmChart(PathBuf),
}

/// Which bundle, and how it is to be installed.
#[derive(Debug)]
pub struct Request {
    /// The bundle.
    pub bundle: Input,
    /// Where the operator runs.
    pub namespace: String,
    /// The one namespace that it watches.
    pub watch_namespace: Option<String>,
    /// Who issues certificates.
    pub issuer: Option<Issuer>,
    /// A file with a configuration.
    pub config: Option<PathBuf>,
    /// What becomes of the objects.
    pub form: Form,
}

/// The objects of a rendered bundle.
#[derive(Debug)]
pub struct Rendered {
    /// The objects.
    pub content: Content,
    /// What the user should know of them.
    pub warnings: Vec<String>,
}

/// Where the objects of a rendered bundle are.
#[derive(Debug)]
pub enum Content {
    /// Here.
    Stream(FileText),
    /// In files.
    Files(Written),
}

/// Renders the bundle.
///
/// # Errors
/// When the bundle or the configuration cannot be read, OLM v1 would refuse them, or the output not be written.
pub fn run(request: &Request, access: &Access) -> Result<Rendered, Failure> {
    if let (Form::HelmChart(_), Some(Issuer::SelfSigned)) = (&request.form, request.issuer) {
        let error = "a chart cannot carry self-signed certificates: they are valid in one namespace, and that of the release \
                     is not known before `helm install`";
        return Err(
            Failure::usage(error).help("pass --webhook-certs cert-manager, or write a --kustomize directory")
        );
    }
    let files = request.bundle.bundle(access)?;
    let config = match &request.config {
        None => None,
        Some(path) => {
            let text = read_text(path)?;
            let document = first_document(&text).map_err(|error| {
                Failure::incomplete(format!("`{}` is not valid YAML: {}", path.display(), error.message))
            })?;
            Some(document.root.to_json())
        }
    };
    let mut options = Options::new(&request.namespace);
    options.watch_namespace.clone_from(&request.watch_namespace);
    options.certificates = match request.issuer {
        None => None,
        Some(Issuer::CertManager) => Some(Certificates::CertManager),
        Some(Issuer::ServiceCa) => Some(Certificates::ServiceCa),
        Some(Issuer::SelfSigned) => {
            let services = webhook_services(&files).map_err(|error| refused(request, &error))?;
            Some(Certificates::Given(certificates::issue(&services, &request.namespace)?))
        }
    };
    options.config = config;
    let objects = render(&files, &options).map_err(|error| refused(request, &error))?;
    let unsound = unsound(&objects);
    if let (Form::Kustomization(_) | Form::HelmChart(_), false) = (&request.form, unsound.is_empty()) {
        let tool = if let Form::HelmChart(_) = request.form { "Helm" } else { "kustomize" };
        let error = format!("cannot render `{}` for {tool}: {}", request.bundle, unsound.join("; "));
        return Err(Failure::failed(error).help("correct the bundle's manifests"));
    }
    let mut warnings = unsound;
    if lacks_own_leases(&objects, &request.namespace) {
        warnings.push(format!(
            "the operator may use Leases in the namespace that it watches, and not in its own, `{}`: if it elects a \
             leader there, add a Role and a RoleBinding (OLM v1 renders neither)",
            request.namespace
        ));
    }
    let content = match &request.form {
        Form::Yaml => Content::Stream(FileText { text: stream(&objects)? }),
        Form::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            let text = serde_json::to_string_pretty(&list).map_err(Failure::incomplete)? + "\n";
            Content::Stream(FileText { text })
        }
        Form::Kustomization(directory) => {
            let mut written = each(&objects)?;
            let resources: Vec<_> = written.iter().map(|(name, _)| name.clone()).collect();
            // They may hold private keys.
            let secrets = resources.iter().zip(&objects).filter(|(_, object)| object["kind"] == "Secret");
            let private = secrets.map(|(name, _)| name.clone()).collect();
            let kustomization = json!({
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": resources,
            });
            written.push(("kustomization.yaml".to_owned(), yaml(&kustomization)?));
            Content::Files(fill(directory, written, private)?)
        }
        Form::HelmChart(directory) => {
            let written = chart(&files, &objects, &request.namespace)?;
            Content::Files(fill(directory, written, BTreeSet::new())?)
        }
    };
    Ok(Rendered { content, warnings })
}

fn refused(request: &Request, error: &RenderError) -> Failure {
    let help = error.help().map(str::to_owned).unwrap_or_else(|| {
        let bundle = argument(&request.bundle);
        format!("run `olmkit bundle validate --suite olm,olm-v1 {bundle}`")
    });
    let is_misuse = matches!(error, RenderError::Namespace { .. } | RenderError::Contradiction { .. });
    let exit = if is_misuse { Exit::Usage } else { Exit::Failed };
    Failure {
        help: help.into(),
        exit,
        ..Failure::incomplete(format!("cannot render `{}`: {error}", request.bundle))
    }
}

fn fill(
    directory: &Path,
    written: Vec<(String, String)>,
    private: BTreeSet<String>,
) -> Result<Written, Failure> {
    let mut tree: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
    let paths: Vec<_> = written.iter().map(|(path, _)| path.clone()).collect();
    for (path, text) in written {
        if let Some((above, _)) = path.split_once('/') {
            tree.insert(above.to_owned(), None);
        }
        tree.insert(path, Some(text.into_bytes()));
    }
    OutputDir::open(directory)?.with_private(private).fill(&tree)?;
    Ok(Written { directory: directory.to_owned(), files: paths, note: None })
}

fn yaml(object: &Value) -> Result<String, Failure> {
    write::to_string(object).map_err(Failure::incomplete)
}

fn stream(objects: &[Value]) -> Result<String, Failure> {
    let mut text = String::new();
    for object in objects {
        text += "---\n";
        text += &yaml(object)?;
    }
    Ok(text)
}

/// A file for each object, named so that the order of names is the order to apply.
fn each(objects: &[Value]) -> Result<Vec<(String, String)>, Failure> {
    let name = |at: usize, object: &Value| {
        let kind = object["kind"].as_str().unwrap_or("object").to_lowercase();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let sound = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '-' };
        let name: String = name.chars().map(sound).take(80).collect();
        format!("{:02}-{kind}-{name}.yaml", at + 1)
    };
    objects.iter().enumerate().map(|(at, object)| Ok((name(at, object), yaml(object)?))).collect()
}

/// A chart: CRDs in `crds/`, the rest as templates in which the release's namespace stands for ours.
fn chart(files: &BundleFiles, objects: &[Value], namespace: &str) -> Result<Vec<(String, String)>, Failure> {
    let bundle = Bundle::parse(files);
    let package = bundle.annotations().map(|annotations| annotations.package()).unwrap_or_default();
    let version = bundle.csv().map(|csv| csv.typed.spec.version.clone()).unwrap_or_default();
    let about = json!({
        "apiVersion": "v2",
        "name": package,
        "version": version,
        "appVersion": version,
        "description": bundle.csv().map(|csv| csv.typed.spec.display_name.clone()).unwrap_or_default(),
    });
    let mut written = vec![("Chart.yaml".to_owned(), yaml(&about)?)];
    for ((path, text), object) in each(objects)?.into_iter().zip(objects) {
        // A CRD whose webhook is in the release's namespace has to be a template; Helm does not touch `crds/`.
        let is_plain_crd =
            object["kind"] == "CustomResourceDefinition" && object["spec"]["conversion"]["webhook"].is_null();
        if is_plain_crd {
            written.push((format!("crds/{path}"), text));
            continue;
        }
        let mut object = object.clone();
        if object["kind"] == "CustomResourceDefinition" {
            // With a template's CRD, `helm uninstall` would delete every custom resource.
            object["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep".into();
        }
        mark_namespace(&mut object, namespace, "");
        let text = yaml(&object)?;
        // What looks like a template in the bundle is text.
        let text: Vec<_> = text.replace("{{", "{{ \"{{\" }}").lines().map(in_release_namespace).collect();
        let text = text.join("\n") + "\n";
        written.push((format!("templates/{path}"), text));
    }
    Ok(written)
}

/// Stands in a template for the namespace until the rest is escaped.
const NAMESPACE_MARK: &str = "olmkit-release-namespace";

/// A line with the namespace of the release in place of the mark; quoted where it is the whole value, since `123` would be a number.
fn in_release_namespace(line: &str) -> String {
    match line.strip_suffix(NAMESPACE_MARK) {
        Some(start) if start.ends_with(": ") || start.ends_with("- ") => {
            format!("{start}{{{{ .Release.Namespace | quote }}}}")
        }
        _ => line.replace(NAMESPACE_MARK, "{{ .Release.Namespace }}"),
    }
}

/// Puts a mark wherever our namespace stands in a place that means one.
fn mark_namespace(value: &mut Value, namespace: &str, key: &str) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                mark_namespace(value, namespace, key);
            }
        }
        Value::Array(items) => {
            for item in items {
                mark_namespace(item, namespace, key);
            }
        }
        Value::String(text) => {
            let whole =
                matches!(key, "namespace" | "olm.operatorNamespace" | "olm.targetNamespaces" | "values");
            if whole && text == namespace {
                *text = NAMESPACE_MARK.to_owned();
            } else if matches!(key, "commonName" | "dnsNames") {
                *text = text.replacen(&format!(".{namespace}"), &format!(".{NAMESPACE_MARK}"), 1);
            } else if key == "cert-manager.io/inject-ca-from" {
                *text = text.replacen(&format!("{namespace}/"), &format!("{NAMESPACE_MARK}/"), 1);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_that_look_like_numbers_stay_texts_in_a_chart() {
        for (line, expected) in [
            ("  namespace: olmkit-release-namespace", "  namespace: {{ .Release.Namespace | quote }}"),
            ("  - olmkit-release-namespace", "  - {{ .Release.Namespace | quote }}"),
            ("  host: a.olmkit-release-namespace.svc", "  host: a.{{ .Release.Namespace }}.svc"),
            ("  name: a", "  name: a"),
        ] {
            assert_eq!(in_release_namespace(line), expected);
        }
    }
}
