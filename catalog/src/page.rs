//! A catalog as web pages: a list of its packages, and a page for each with its channels, upgrade paths and bundles.
//!
//! The pages need nothing else: no server, no network, no other file. Scripts and styles are embedded, and a content security policy names
//! them by their digests, so that a browser runs nothing else. Whatever comes from the catalog is escaped, here and nowhere
//! else: by `Text` in markup, by `json` in data. `bundle` has what is said of a bundle, `style.css` and `script.js` the rest.

mod bundle;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Display, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olmkit_bundle::finding::Finding;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::draw::{self, svg};
use crate::fbc::{self, At, Catalog, schema};
use crate::index::{self, Index};
use crate::path::{About, NextHops, Rules};
use crate::validate;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// What every page has in it, and no other file: what may be replaced by a newer page.
pub const MARK: &str = "<meta name=\"generator\" content=\"olmkit catalog pages\">";

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The path below the directory of all pages: `index.html`, or `packages/NAME.html`.
    pub path: String,
    /// The whole page.
    pub html: String,
}

/// The pages of a catalog, the list of its packages first.
///
/// ```
/// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, page};
/// let files = CatalogFiles::from_text("catalog.yaml", "{schema: olm.package, name: redis, description: '<script>'}");
/// let pages = page::pages(&Catalog::parse(&files));
/// assert_eq!(pages[1].path, "packages/redis.html");
/// assert!(pages[1].html.contains("&lt;script&gt;"));
/// ```
pub fn pages(catalog: &Catalog<'_>) -> Vec<Page> {
    let index = Index::new(catalog);
    let findings = findings_by_bundle(catalog);
    let known = index.packages.iter().filter(|(_, package)| !package.blobs.is_empty());
    let packages: Vec<PackagePage<'_, '_, '_>> =
        known.map(|(name, package)| PackagePage::of(name, package, &findings)).collect();
    let mut pages = vec![Page { path: "index.html".into(), html: list(catalog.name, &packages) }];
    pages.extend(
        packages.iter().map(|package| Page { path: package.path(), html: package.html(catalog.name) }),
    );
    pages
}

/// What there is to say about bundles, by where they stand.
fn findings_by_bundle(catalog: &Catalog<'_>) -> BTreeMap<At, Vec<Finding>> {
    let mut places: BTreeMap<(String, u32), At> = BTreeMap::new();
    for bundle in &catalog.bundles {
        let place = catalog.place(bundle.at);
        if let Some(position) = place.position {
            places.insert((place.path, position.line), bundle.at);
        }
    }
    let mut findings: BTreeMap<At, Vec<Finding>> = BTreeMap::new();
    for finding in validate::advise(catalog) {
        let Some(place) = &finding.place else { continue };
        let Some(position) = place.position else { continue };
        let before = places.range(..=(place.path.clone(), position.line)).next_back();
        let Some(((path, _), at)) = before else { continue };
        // It stands in the bundle's blob, which ends before the next.
        let end = catalog.place(At {
            span: olmkit_bundle::source::Span::new(at.span.end as usize, at.span.end as usize),
            ..*at
        });
        if *path == place.path && end.position.is_some_and(|end| position.line <= end.line) {
            findings.entry(*at).or_default().push(finding);
        }
    }
    findings
}

/// A text of the catalog as HTML has it.
struct Text<'t>(&'t str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                '\r' => {}
                c if c.is_control() => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Data for the script, in which nothing ends the element that it stands in.
fn json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A whole page.
fn page(title: &str, body: &str) -> String {
    let digest = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{MARK}\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{body}<script>{SCRIPT}</script>\n</body>\n</html>\n",
        digest(SCRIPT),
        digest(STYLE),
        Text(title),
    )
}

/// The page with all packages.
fn list(name: &str, packages: &[PackagePage<'_, '_, '_>]) -> String {
    let mut body = format!("<h1>{}</h1>\n", Text(name));
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        body,
        "<div class=\"tools\"><label>Search packages<input id=\"filter\" type=\"search\" autocomplete=\"off\"></label><span id=\"count\" class=\"soft\" role=\"status\">{}</span></div>\n<ul class=\"cards\">",
        packages.len()
    );
    for package in packages {
        let _ = write!(
            body,
            "<li><a href=\"{}\">{}<span><strong>{}</strong>",
            Text(&package.path()),
            package.icon(),
            Text(package.name)
        );
        for (text, class) in [(package.display_name(), "soft"), (package.head_version(), "tag")] {
            if !text.is_empty() {
                let _ = write!(body, "<span class=\"{class}\">{}</span> ", Text(&text));
            }
        }
        if package.deprecation(schema::PACKAGE, "").is_some() {
            body += "<span class=\"tag warn\">deprecated</span>";
        }
        if package.channels.iter().any(|channel| !channel.problems.is_empty()) {
            body += "<span class=\"tag warn\">invalid</span>";
        }
        let _ = writeln!(body, "<p>{}</p></span></a></li>", Text(&package.summary()));
    }
    body += "</ul>\n";
    page(name, &body)
}

/// What the page of a package says.
struct PackagePage<'p, 'c, 'a> {
    name: &'p str,
    package: &'p index::Package<'c, 'a>,
    channels: Vec<Channel>,
    /// The highest version first.
    bundles: Vec<bundle::Facts<'p>>,
    /// The position of each bundle, by its name.
    anchors: HashMap<&'p str, usize>,
    /// What users are told about deprecated parts, by schema and name.
    deprecations: HashMap<(&'p str, &'p str), &'p str>,
}

/// The first words of a description in Markdown: those of its first paragraph of text.
fn summary(description: &str) -> String {
    const MOST: usize = 160;
    /// Links and tags among the first words may be longer than what remains of them; beyond this nobody writes any.
    const READ: usize = 4 << 10;
    let description = &description[..description.floor_char_boundary(64 << 10)];
    // A link alone is a badge, or a table of contents.
    let is_link = |line: &str| line.starts_with('[') && line.ends_with([')', ']']) && !line.contains(") ");
    let is_text = |line: &&str| {
        !line.is_empty()
            && !line.starts_with(['#', '!', '<', '=', '-', '|'])
            && !line.starts_with("[!")
            && !is_link(line)
    };
    let lines = description.lines().map(str::trim).skip_while(|line| !is_text(line)).take_while(is_text);
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = without_markup(&without_tags(&text[..text.floor_char_boundary(READ)]));
    match text.char_indices().nth(MOST) {
        None => text,
        Some((end, _)) => {
            // The last word is left out unless it ends there.
            let start = &text[..end];
            let words = if text[end..].starts_with(' ') {
                start
            } else {
                start.rsplit_once(' ').map_or(start, |(words, _)| words)
            };
            format!("{}…", words.trim_end_matches([' ', ',', ';', ':', '.']))
        }
    }
}

/// A text without the tags of HTML, which Markdown may have.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        out += before;
        let is_tag = behind.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        rest = match behind.split_once('>').filter(|_| is_tag) {
            Some((_, after)) => after,
            None => {
                out.push('<');
                behind
            }
        };
    }
    out + rest
}

/// A line of Markdown as text: links by their names, without marks for code and emphasis.
fn without_markup(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('[') {
        out += before;
        rest = match behind.split_once("](").and_then(|(name, url)| Some((name, url.split_once(')')?.1))) {
            Some((name, after)) if !name.contains('[') => {
                out += name;
                after
            }
            _ => {
                out.push('[');
                behind
            }
        };
    }
    (out + rest).replace("**", "").replace(['`', '*'], "")
}

/// A channel as it is drawn, and OLM's next hops in it.
struct Channel {
    drawn: draw::Channel,
    /// For each entry of the drawing the next under the rules of OLM v0 and v1.
    next: Vec<[Option<usize>; 2]>,
    stranded: Vec<String>,
    /// Why the channel is invalid, so that nobody can serve the catalog.
    problems: Vec<String>,
}

impl<'p, 'c, 'a> PackagePage<'p, 'c, 'a> {
    fn of(
        name: &'p str,
        package: &'p index::Package<'c, 'a>,
        findings: &'p BTreeMap<At, Vec<Finding>>,
    ) -> Self {
        let mut bundles: Vec<&index::Bundle<'_, '_>> = package.bundles.iter().collect();
        bundles.sort_by(|a, b| b.version.cmp(&a.version).then_with(|| a.blob.name.cmp(&b.blob.name)));
        let facts = |bundle: &&'p index::Bundle<'c, 'a>| {
            let found = findings.get(&bundle.blob.at).map_or(&[][..], Vec::as_slice);
            bundle::Facts::of(bundle, package, found)
        };
        let mut anchors = HashMap::new();
        for (at, bundle) in bundles.iter().enumerate() {
            anchors.entry(bundle.blob.name.as_str()).or_insert(at);
        }
        let mut deprecations = HashMap::new();
        for entry in package.deprecations.iter().flat_map(|blob| &blob.entries) {
            let of = (entry.reference.schema.as_str(), entry.reference.name.as_str());
            deprecations.entry(of).or_insert(entry.message.as_str());
        }
        let bundles = bundles.iter().map(facts).collect();
        Self { name, package, channels: channels(package), bundles, anchors, deprecations }
    }

    /// The path of its page. Names that could lead elsewhere, which no valid catalog has, are encoded.
    fn path(&self) -> String {
        let mut path = String::from("packages/");
        for byte in self.name.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' => path.push(byte.into()),
                _ => path += &format!("_{byte:02x}"),
            }
        }
        path + ".html"
    }

    fn blob(&self) -> Option<&'p fbc::Package<'a>> {
        self.package.blobs.first().copied()
    }

    /// The picture of the package, or its first letter.
    fn icon(&self) -> String {
        const KNOWN: [&str; 4] = ["image/svg+xml", "image/png", "image/jpeg", "image/gif"];
        let icon = self.blob().and_then(|blob| blob.icon.as_ref());
        let icon = icon.and_then(|icon| {
            let kind = KNOWN.into_iter().find(|known| *known == icon.media_type.as_str())?;
            let data = crate::base64::decode(&icon.data).ok().filter(|data| !data.is_empty())?;
            let data = STANDARD.encode(data);
            Some(format!("<img class=\"icon\" alt=\"\" loading=\"lazy\" decoding=\"async\" src=\"data:{kind};base64,{data}\">"))
        });
        let letter = || {
            let first: String = self.name.chars().take(1).collect();
            format!("<span class=\"icon letter\" aria-hidden=\"true\">{}</span>", Text(&first.to_uppercase()))
        };
        icon.unwrap_or_else(letter)
    }

    fn default_channel(&self) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.drawn.is_default)
    }

    /// The facts of the default channel's head, or else of the highest version.
    fn head(&self) -> Option<&bundle::Facts<'p>> {
        let head = self.default_channel()?.drawn.entries.iter().find(|entry| entry.is_head);
        let head = head.and_then(|head| self.bundles.iter().find(|bundle| bundle.name == head.name));
        head.or(self.bundles.first())
    }

    fn display_name(&self) -> String {
        self.head().map(|head| head.display_name.clone()).unwrap_or_default()
    }

    fn head_version(&self) -> String {
        self.head().map(|head| head.version.clone()).unwrap_or_default()
    }

    fn description(&self) -> &str {
        let own = self.blob().map_or("", |blob| &blob.description);
        match own {
            "" => self.head().map_or("", |head| head.description.as_str()),
            own => own,
        }
    }

    /// The first words of the description.
    fn summary(&self) -> String {
        summary(self.description())
    }

    /// What users are told about a part of the package that is deprecated.
    fn deprecation(&self, of: &str, name: &str) -> Option<&'p str> {
        self.deprecations.get(&(of, name)).copied()
    }

    fn html(&self, catalog: &str) -> String {
        let mut body =
            format!("<nav><a href=\"../index.html\">All packages of {}</a></nav>\n", Text(catalog));
        let _ = writeln!(body, "<h1>{}<span>{}</span></h1>", self.icon(), Text(self.name));
        if let Some(message) = self.deprecation(schema::PACKAGE, "") {
            let _ =
                writeln!(body, "<p class=\"note-box\"><strong>Deprecated.</strong> {}</p>", Text(message));
        }
        let _ = writeln!(
            body,
            "<nav class=\"tools\"><a href=\"#channels\">Channels</a> <a href=\"#paths\">Upgrade path</a> <a href=\"#bundles\">Bundles</a></nav>"
        );
        let description = self.description();
        if !description.is_empty() {
            let _ = writeln!(
                body,
                "<details><summary>{}</summary><div class=\"text\">{}</div></details>",
                Text(&self.summary()),
                Text(description.trim())
            );
        }
        body += &svg::markers();
        let _ = writeln!(
            body,
            "<h2 id=\"channels\">Channels</h2>\n<p class=\"legend\"><span class=\"replaces-key\">replaces</span><span class=\"skips-key\">skips</span><span class=\"range-key\">skipRange</span><span>● head</span><span>▲ deprecated</span><span>Point at a version, or move to it with Tab, to see its edges; in a graph, + and − zoom.</span></p>"
        );
        for channel in &self.channels {
            self.channel(&mut body, channel);
        }
        let paths: Vec<_> = self.channels.iter().map(|channel| self.paths(channel)).collect();
        let _ = writeln!(
            body,
            "<h2 id=\"paths\">Upgrade path</h2>\n<noscript>The path between two versions needs scripts.</noscript>\n<form id=\"path\" hidden>\n<div class=\"tools\"><label>Channel<select name=\"channel\"></select></label><label>From version<select name=\"from\"></select></label><label>To version<select name=\"to\"></select></label></div>\n<div class=\"both\"><section><h3>OLM v0</h3><div id=\"v0\" role=\"status\"></div></section>\n<section><h3>OLM v1</h3><div id=\"v1\" role=\"status\"></div></section></div>\n</form>\n<script type=\"application/json\" id=\"upgrades\">{}</script>",
            json(&paths.into())
        );
        let _ = writeln!(body, "<h2 id=\"bundles\">Bundles</h2>");
        for bundle in &self.bundles {
            bundle.write(
                &mut body,
                &self.bundle_id(&bundle.name),
                self.deprecation(schema::BUNDLE, &bundle.name),
            );
        }
        page(&format!("{} – {catalog}", self.name), &body)
    }

    fn channel(&self, body: &mut String, channel: &Channel) {
        let drawn = &channel.drawn;
        let _ = write!(body, "<section class=\"channel\">\n<h3>{}", Text(&drawn.name));
        for (is_so, class, word) in
            [(drawn.is_default, "tag", "default"), (drawn.is_deprecated, "tag warn", "deprecated")]
        {
            if is_so {
                let _ = write!(body, " <span class=\"{class}\">{word}</span>");
            }
        }
        body.push_str("</h3>\n");
        if let Some(message) = self.deprecation(schema::CHANNEL, &drawn.name) {
            let _ =
                writeln!(body, "<p class=\"note-box\"><strong>Deprecated.</strong> {}</p>", Text(message));
        }
        if !channel.problems.is_empty() {
            let _ = writeln!(
                body,
                "<p class=\"note-box\"><strong>Invalid.</strong> No server serves this catalog: {}.</p>",
                Text(&channel.problems.join("; "))
            );
        }
        if !channel.stranded.is_empty() {
            let _ = writeln!(
                body,
                "<p class=\"note-box\"><strong>Stranded.</strong> No upgrade path leads to the head from {}.</p>",
                Text(&channel.stranded.join(", "))
            );
        }
        let link = |name: &str| format!("#{}", self.bundle_id(name));
        let _ = writeln!(
            body,
            "<div class=\"tools\"><label>Search versions<input type=\"search\" autocomplete=\"off\"></label><button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">−</button><button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button><button type=\"button\" data-zoom=\"fit\">Fit</button><button type=\"button\" data-zoom=\"reset\">100%</button></div>\n<div class=\"graph\" tabindex=\"0\" role=\"region\" aria-label=\"Upgrade graph of {}\">\n{}</div>\n</section>",
            Text(&drawn.name),
            svg::channel(drawn, &link)
        );
    }

    /// What the script needs to follow upgrade paths.
    fn paths(&self, channel: &Channel) -> serde_json::Value {
        let drawn = &channel.drawn;
        let number = |next: Option<usize>| next.map_or(-1, |next| next as i64);
        let entry = |(entry, next): (&draw::Entry, &[Option<usize>; 2])| {
            let version = self.package.version(&entry.name).map(ToString::to_string).unwrap_or_default();
            let deprecated = self.deprecation(schema::BUNDLE, &entry.name).is_some();
            json!({"name": entry.name, "version": version, "deprecated": deprecated, "v0": number(next[0]), "v1": number(next[1])})
        };
        let entries: Vec<_> = drawn.entries.iter().zip(&channel.next).map(entry).collect();
        let head = drawn.entries.iter().position(|entry| entry.is_head);
        json!({"name": drawn.name, "default": drawn.is_default, "head": number(head), "entries": entries})
    }

    /// The anchor of a bundle on the page.
    fn bundle_id(&self, name: &str) -> String {
        match self.anchors.get(name) {
            Some(at) => format!("bundle-{at}"),
            None => "bundles".into(),
        }
    }
}

/// The channels of a package, its default first.
fn channels(package: &index::Package<'_, '_>) -> Vec<Channel> {
    let mut drawn = draw::channels(package, &draw::Options::default(), None);
    drawn.sort_by_key(|channel| !channel.is_default);
    let about = About::in_package(package);
    let channel = |mut drawn: draw::Channel| {
        let blob = package.channels.iter().find(|channel| *channel.blob.name == *drawn.name);
        let ways = |rules| NextHops::of(&blob?.blob.entries, &about, rules).ok();
        let (v0, v1) = (ways(Rules::V0), ways(Rules::V1));
        let rows: HashMap<&str, usize> =
            drawn.entries.iter().enumerate().map(|(row, entry)| (entry.name.as_str(), row)).collect();
        let head = drawn.entries.iter().position(|entry| entry.is_head);
        let next = |row: usize, ways: &Option<NextHops>| {
            let entry = drawn.entries.get(row).filter(|_| head != Some(row))?;
            let next = ways.as_ref()?.next(&entry.name, package.version(&entry.name))?;
            rows.get(next).copied()
        };
        let next: Vec<_> = (0..drawn.entries.len()).map(|row| [next(row, &v0), next(row, &v1)]).collect();
        let mut stranded = Vec::new();
        if let (Some(ways), Some(blob)) = (&v0, blob) {
            let names: HashSet<&str> = ways
                .unreachable()
                .into_iter()
                .filter_map(|at| Some(blob.blob.entries.get(at)?.name.as_str()))
                .collect();
            for entry in drawn.entries.iter_mut().filter(|entry| names.contains(entry.name.as_str())) {
                entry.is_stranded = true;
                stranded.push(entry.name.clone());
            }
        }
        let errors = blob.and_then(|blob| blob.linked.as_ref().err()).into_iter().flatten();
        let problems = errors.map(ToString::to_string).collect();
        Channel { drawn, next, stranded, problems }
    };
    drawn.into_iter().map(channel).collect()
}

#[cfg(test)]
mod tests;
