//! Chart.yaml: what a Helm chart says of the operator that it installs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::codes;
use super::draft::{By, Draft, Origin};
use crate::finding::{Finding, Place};
use crate::source::Source;
use crate::version::{Version, parse_tolerant};
use crate::yaml::{self, Node, steps};

/// A Chart.yaml that was read.
#[derive(Debug)]
pub struct ChartFile<'a> {
    source: Source<'a>,
    root: Node<'a>,
    icon: Option<Vec<u8>>,
}

impl<'a> ChartFile<'a> {
    /// Reads a Chart.yaml.
    ///
    /// # Errors
    /// A finding when it is not YAML.
    pub fn parse(source: Source<'a>) -> Result<Self, Box<Finding>> {
        match yaml::first_document(source.text()) {
            Ok(document) => {
                let mut chart = Self { source, root: document.root, icon: None };
                let encoded =
                    chart.icon_text().and_then(|icon| icon.strip_prefix("data:")?.split_once(";base64,"));
                chart.icon = encoded.and_then(|(_, data)| BASE64.decode(data.trim()).ok());
                Ok(chart)
            }
            Err(error) => {
                let place = Place::new(&source, error.span);
                Err(Box::new(Finding::new(&codes::SYNTAX, error.message).at(place)))
            }
        }
    }

    /// The file in the chart's directory that `icon` names, if it names one.
    pub fn icon_file(&self) -> Option<&str> {
        let icon = self.icon_text()?;
        let file = icon.strip_prefix("file://").unwrap_or(icon);
        (!file.contains("://") && !file.starts_with("data:") && !file.is_empty()).then_some(file)
    }

    /// The content of the icon's file.
    pub fn set_icon(&mut self, bytes: Vec<u8>) {
        self.icon = Some(bytes);
    }

    /// What Chart.yaml says as a CSV says it: the version of what the chart installs, else the chart's own.
    pub(super) fn text(&self, key: &str) -> Option<(&str, Origin<'_>)> {
        let own = |key: &str| {
            let text = self.root.get(key)?.as_str().filter(|text| !text.is_empty())?;
            Some((text, self.origin(key)))
        };
        match key {
            "version" => ["appVersion", "version"].into_iter().find_map(|key| {
                let (text, origin) = own(key)?;
                let text = text.strip_prefix('v').unwrap_or(text);
                text.parse::<Version>().is_ok().then_some((text, origin))
            }),
            _ => own(key),
        }
    }

    /// A list as it is written.
    pub(super) fn draft(&self, key: &str) -> Option<Draft<'_>> {
        Some(Draft::node(self.root.get(key)?, &self.source, By::Chart))
    }

    /// The maintainers that have a name and an address.
    pub(super) fn maintainers(&self) -> Vec<Draft<'_>> {
        let people = self.draft("maintainers").map(Draft::into_items).unwrap_or_default();
        let person = |own: &Draft<'_>| ["name", "email"].map(|key| own.text(key).to_owned());
        let complete = people.iter().filter(|own| person(own).iter().all(|text| !text.is_empty()));
        let entry = |own: &Draft<'_>| {
            let [name, email] = person(own);
            Draft::new(json!({ "name": name, "email": email }), self.origin("maintainers"))
        };
        complete.map(entry).collect()
    }

    /// Where the sources are.
    pub(super) fn repository(&self) -> Option<(&str, Origin<'_>)> {
        let path = steps!("sources", 0_usize);
        let text = self.root.at(path)?.as_str()?;
        Some((text, Origin::written(By::Chart, &self.source, self.root.locate(path))))
    }

    /// The oldest Kubernetes that `kubeVersion` allows, where it has such a bound.
    pub(super) fn oldest_kubernetes(&self) -> Option<(String, Origin<'_>)> {
        let (text, origin) = self.text("kubeVersion")?;
        let bounds: Option<Vec<Version>> = text.split("||").map(lower_bound).collect();
        Some((bounds?.into_iter().min()?.to_string(), origin))
    }

    /// The icon with its media type, if it is here and a picture.
    pub(super) fn icon(&self) -> Option<Draft<'_>> {
        let bytes = self.icon.as_ref()?;
        let media_type = super::icon::media_type(bytes)?;
        let icon = json!([{ "base64data": BASE64.encode(bytes), "mediatype": media_type }]);
        Some(Draft::new(icon, self.origin("icon")))
    }

    /// That there is an icon, and that it cannot be had.
    pub(super) fn icon_elsewhere(&self) -> Option<Finding> {
        let icon = self.icon_text()?;
        let message = if icon.starts_with("data:") || self.icon_file().is_some() {
            "the chart's icon is not a PNG, JPEG, GIF or SVG image that can be read".to_owned()
        } else {
            format!("the chart's icon `{icon}` is not fetched")
        };
        let place = Place::new(&self.source, self.root.locate(steps!("icon")));
        let finding = Finding::new(&codes::ICON_NOT_AN_IMAGE, message).at(place);
        let finding = finding.help("download it, and name the file under `icon` in the package file");
        Some(Finding { level: crate::finding::Level::Info, ..finding })
    }

    fn icon_text(&self) -> Option<&str> {
        self.root.get("icon")?.as_str().filter(|icon| !icon.is_empty())
    }

    fn origin(&self, key: &str) -> Origin<'_> {
        Origin::written(By::Chart, &self.source, self.root.locate(steps!(key)))
    }
}

/// The lowest version of a range such as `>=1.28.0-0 <1.35.0`, if it has a lowest one.
fn lower_bound(range: &str) -> Option<Version> {
    let spaced = range.replace(',', " ");
    // The operator may stand apart: `>= 1.28.0`.
    let joined =
        [">", "<", "=", "~", "^"].iter().fold(spaced, |text, sign| text.replace(&format!("{sign} "), sign));
    let bound = joined.split_whitespace().find(|word| !word.starts_with(['<', '!', '-']))?;
    let version = bound.trim_start_matches(['>', '=', '~', '^', 'v']);
    let version = version.split(['-', '+']).next()?.replace(['x', 'X', '*'], "0");
    parse_tolerant(&version).ok().filter(|version| *version > Version::new(0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_kubernetes_of_a_range() {
        for (range, oldest) in [
            (">=1.28.0-0", Some("1.28.0")),
            (">= 1.28 < 1.35", Some("1.28.0")),
            (">=1.30.0-0 || ~1.27.3", Some("1.27.3")),
            ("1.26.x", Some("1.26.0")),
            ("1.26 - 1.30", Some("1.26.0")),
            ("^1.2.3", Some("1.2.3")),
            ("<1.35.0", None),
            (">=1.28.0 || <1.0.0", None),
            ("*", None),
        ] {
            let text = format!("kubeVersion: '{range}'\n");
            let chart = ChartFile::parse(Source::new("Chart.yaml", &text)).unwrap();
            assert_eq!(chart.oldest_kubernetes().map(|(text, _)| text).as_deref(), oldest, "{range}");
        }
    }

    #[test]
    fn the_version_is_that_of_what_the_chart_installs() {
        for (text, version) in [
            ("{version: 1.0.0, appVersion: v2.3.4}", Some("2.3.4")),
            ("{version: 1.0.0, appVersion: latest}", Some("1.0.0")),
            ("{version: 1.0.0}", Some("1.0.0")),
            ("{appVersion: 1.2}", None),
        ] {
            let chart = ChartFile::parse(Source::new("Chart.yaml", text)).unwrap();
            assert_eq!(chart.text("version").map(|(text, _)| text), version, "{text}");
        }
    }

    #[test]
    fn icons_that_are_here_and_elsewhere() {
        let chart = |icon: &'static str| ChartFile::parse(Source::new("Chart.yaml", icon)).unwrap();
        let inline = chart("icon: 'data:image/svg+xml;base64,PHN2Zy8+'");
        assert!(inline.icon().is_some() && inline.icon_file().is_none());
        assert_eq!(chart("icon: file://art/a.png").icon_file(), Some("art/a.png"));
        let far = chart("icon: https://example.com/a.png");
        assert!(far.icon().is_none() && far.icon_file().is_none());
        let said = far.icon_elsewhere().unwrap();
        assert_eq!(said.message, "the chart's icon `https://example.com/a.png` is not fetched");
    }
}
