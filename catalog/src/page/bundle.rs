//! What a page says of a bundle: description, APIs, permissions, images, findings.

use std::fmt::Write as _;

use olmkit_bundle::finding::{Finding, Level};
use serde_json::Value as Json;

use super::Text;
use crate::fbc::{self, property};
use crate::index;
use crate::render;

/// What is known of a bundle.
pub(super) struct Facts<'p> {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) display_name: String,
    pub(super) description: String,
    channels: Vec<String>,
    image: String,
    /// A few lines such as the provider: name and value.
    details: Vec<(&'static str, String)>,
    owned: Vec<Api>,
    requires: Vec<String>,
    /// None when the blob has no ClusterServiceVersion to tell.
    permissions: Option<Vec<Permission>>,
    images: Vec<(String, String)>,
    findings: &'p [Finding],
}

/// An API that the bundle provides.
struct Api {
    kind: String,
    version: String,
    group_or_name: String,
    description: String,
}

/// What a ServiceAccount may do.
struct Permission {
    account: String,
    scope: &'static str,
    what: String,
    verbs: String,
}

impl<'p> Facts<'p> {
    pub(super) fn of(
        bundle: &index::Bundle<'_, '_>,
        package: &index::Package<'_, '_>,
        findings: &'p [Finding],
    ) -> Self {
        let blob = bundle.blob;
        let values = |kind: &'static str| {
            let of_kind = blob.properties.iter().filter(move |found| *found.kind == *kind);
            of_kind.filter_map(|found| Some(found.value.as_ref()?.to_json()))
        };
        let csv = render::csv_of(blob);
        let metadata = values(property::CSV_METADATA).next();
        // The metadata has the fields of the specification at its top.
        let spec = csv.as_ref().map(|csv| &csv["spec"]).or(metadata.as_ref()).unwrap_or(&Json::Null);
        let owned = [&spec["customresourcedefinitions"]["owned"], &spec["crdDescriptions"]["owned"]];
        let mut owned: Vec<Api> = owned.into_iter().flat_map(items).map(Api::of_description).collect();
        if owned.is_empty() {
            owned = values(property::GVK).map(|gvk| Api::of_gvk(&gvk)).collect();
        }
        let packages = values(property::PACKAGE_REQUIRED)
            .map(|value| format!("package {} {}", text(&value["packageName"]), text(&value["versionRange"])));
        let apis = values(property::GVK_REQUIRED).map(|gvk| {
            let Api { kind, version, group_or_name, .. } = Api::of_gvk(&gvk);
            format!("API {kind} {version} ({group_or_name})")
        });
        let mut channels: Vec<String> = package
            .channels
            .iter()
            .filter(|channel| channel.blob.entries.iter().any(|entry| entry.name == blob.name))
            .map(|channel| channel.blob.name.to_string())
            .collect();
        channels.sort();
        let mut details = Vec::new();
        let annotation = |key: &str| {
            text(&csv.as_ref().map_or(&spec["annotations"], |csv| &csv["metadata"]["annotations"])[key])
        };
        for (name, value) in [
            ("Provider", text(&spec["provider"]["name"])),
            ("Maturity", text(&spec["maturity"])),
            ("Kubernetes", text(&spec["minKubeVersion"])),
            ("Capabilities", annotation("capabilities")),
            ("Created", annotation("createdAt")),
        ] {
            if !value.is_empty() {
                details.push((name, value));
            }
        }
        let modes: Vec<String> = items(&spec["installModes"])
            .filter(|mode| mode["supported"] == true)
            .map(|mode| text(&mode["type"]))
            .collect();
        if !modes.is_empty() {
            details.push(("Install modes", modes.join(", ")));
        }
        Self {
            name: blob.name.to_string(),
            version: bundle.version.as_ref().map(ToString::to_string).unwrap_or_default(),
            display_name: text(&spec["displayName"]),
            description: text(&spec["description"]),
            channels,
            image: blob.image.to_string(),
            details,
            owned,
            requires: packages.chain(apis).collect(),
            permissions: csv.as_ref().map(permissions),
            images: related_images(blob),
            findings,
        }
    }

    /// Writes the part of the page that is about it.
    pub(super) fn write(&self, body: &mut String, id: &str, deprecation: Option<&str>) {
        let title = if self.version.is_empty() { &self.name } else { &self.version };
        // Writing to a string does not fail, here and below.
        let _ = write!(body, "<details id=\"{id}\"><summary><strong>{}</strong>", Text(title));
        for channel in &self.channels {
            let _ = write!(body, " <span class=\"tag\">{}</span>", Text(channel));
        }
        if deprecation.is_some() {
            body.push_str(" <span class=\"tag warn\">deprecated</span>");
        }
        if !self.findings.is_empty() {
            let plural = if self.findings.len() == 1 { "" } else { "s" };
            let _ = write!(body, " <span class=\"tag warn\">{} finding{plural}</span>", self.findings.len());
        }
        body.push_str("</summary>\n");
        if let Some(message) = deprecation {
            let _ =
                writeln!(body, "<p class=\"note-box\"><strong>Deprecated.</strong> {}</p>", Text(message));
        }
        let image =
            if self.image.is_empty() { "none: the manifests are in the catalog" } else { &self.image };
        let rows = [("Bundle", self.name.as_str()), ("Image", image)];
        let details = self.details.iter().map(|(name, value)| (*name, value.as_str()));
        let rows: Vec<[&str; 2]> =
            rows.into_iter().chain(details).map(|(name, value)| [name, value]).collect();
        table(body, "", &[], &rows);
        let findings: Vec<[String; 2]> = self
            .findings
            .iter()
            .map(|finding| {
                let level = if finding.level == Level::Error { "error" } else { "warning" };
                [format!("{level}: {}", finding.code.name), finding.message.clone()]
            })
            .collect();
        table(body, "Findings", &["Code", "Message"], &findings);
        let owned: Vec<[&str; 4]> = self
            .owned
            .iter()
            .map(|api| [api.kind.as_str(), &api.version, &api.group_or_name, &api.description])
            .collect();
        table(body, "Owned APIs", &["Kind", "Version", "Name", "Description"], &owned);
        let requires: Vec<[&str; 1]> = self.requires.iter().map(|text| [text.as_str()]).collect();
        table(body, "Requires", &[], &requires);
        match &self.permissions {
            Some(permissions) => {
                let rows: Vec<[&str; 4]> = permissions
                    .iter()
                    .map(|one| [one.account.as_str(), one.scope, &one.what, &one.verbs])
                    .collect();
                table(body, "Permissions", &["ServiceAccount", "Scope", "Resources", "Verbs"], &rows);
            }
            None => body.push_str("<h3>Permissions</h3>\n<p class=\"soft\">Not in the catalog: this blob has metadata instead of manifests.</p>\n"),
        }
        let images: Vec<[&str; 2]> = self.images.iter().map(|(name, image)| [name.as_str(), image]).collect();
        match images.iter().all(|[name, _]| name.is_empty()) {
            true => table(
                body,
                "Related images",
                &["Image"],
                &images.iter().map(|[_, image]| [image]).collect::<Vec<_>>(),
            ),
            false => table(body, "Related images", &["Name", "Image"], &images),
        }
        if !self.description.is_empty() {
            let _ = writeln!(
                body,
                "<h3>Description</h3>\n<div class=\"text\">{}</div>",
                Text(self.description.trim())
            );
        }
        body.push_str("</details>\n");
    }
}

/// Writes a table with a title, unless it has no rows. Without a head, the first column is one.
fn table<T: AsRef<str>, const N: usize>(body: &mut String, title: &str, head: &[&str], rows: &[[T; N]]) {
    if rows.is_empty() {
        return;
    }
    if !title.is_empty() {
        let _ = writeln!(body, "<h3>{title}</h3>");
    }
    body.push_str("<div class=\"scroll\"><table>");
    if !head.is_empty() {
        body.push_str("<thead><tr>");
        for cell in head {
            let _ = write!(body, "<th scope=\"col\">{cell}</th>");
        }
        body.push_str("</tr></thead>");
    }
    body.push_str("<tbody>");
    for row in rows {
        body.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let (open, close) = match head.is_empty() && column == 0 && N > 1 {
                true => ("<th scope=\"row\">", "</th>"),
                false => ("<td>", "</td>"),
            };
            let _ = write!(body, "{open}{}{close}", Text(cell.as_ref()));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
}

impl Api {
    /// An entry of the ClusterServiceVersion's owned CRDs.
    fn of_description(value: &Json) -> Self {
        Self {
            kind: text(&value["kind"]),
            version: text(&value["version"]),
            group_or_name: text(&value["name"]),
            description: text(&value["description"]),
        }
    }

    /// The value of an `olm.gvk` property.
    fn of_gvk(value: &Json) -> Self {
        Self {
            kind: text(&value["kind"]),
            version: text(&value["version"]),
            group_or_name: text(&value["group"]),
            description: String::new(),
        }
    }
}

/// The rules of a ClusterServiceVersion, a row each.
fn permissions(csv: &Json) -> Vec<Permission> {
    let install = &csv["spec"]["install"]["spec"];
    let scopes = [("clusterPermissions", "cluster"), ("permissions", "namespace")];
    let mut permissions = Vec::new();
    for (field, scope) in scopes {
        for grant in items(&install[field]) {
            for rule in items(&grant["rules"]) {
                let groups: Vec<String> = items(&rule["apiGroups"])
                    .map(|group| if group == "" { "core".into() } else { text(group) })
                    .collect();
                let mut what = texts(&rule["resources"]);
                if !groups.is_empty() {
                    what = format!("{what} ({})", groups.join(", "));
                }
                for (field, word) in [("resourceNames", "named "), ("nonResourceURLs", "")] {
                    let more = texts(&rule[field]);
                    if !more.is_empty() {
                        what = format!("{what} {word}{more}");
                    }
                }
                permissions.push(Permission {
                    account: text(&grant["serviceAccountName"]),
                    scope,
                    what: what.trim().to_owned(),
                    verbs: texts(&rule["verbs"]),
                });
            }
        }
    }
    permissions
}

fn related_images(blob: &fbc::Bundle<'_>) -> Vec<(String, String)> {
    blob.related_images.iter().map(|image| (image.name.to_string(), image.image.to_string())).collect()
}

fn items(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

fn texts(value: &Json) -> String {
    items(value).map(text).collect::<Vec<_>>().join(", ")
}
