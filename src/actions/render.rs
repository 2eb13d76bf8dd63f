//! `catalog render` and `catalog template`: catalogs made of bundles.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};

use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::names::ImageRef;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::suggest::nearest;
use olmkit_catalog::draw::{self, Drawing};
use olmkit_catalog::edit::VALUE_HELP;
use olmkit_catalog::fbc::write::{self, Format};
use olmkit_catalog::fbc::{Catalog, FaultKind};
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::render::{self, Form, Rendered};
use olmkit_catalog::template::{self, BundleSource, Component, Composite, Strategy, Template, TemplateError};

use super::absent::{What, Within};
use super::parallel::in_parallel;
use super::readable::check_readable;
use crate::actions::results::FileText;
use crate::exit::{Exit, Failure};
use crate::files::{self, OutputDir};
use crate::image::{Access, Place};
use crate::input::{CONFIGS_LABEL, Input};
use crate::sentence::Help;
use crate::shell::argument;

/// What to render.
#[derive(Debug)]
pub struct Request {
    /// Bundles and catalogs.
    pub inputs: Vec<Input>,
    /// The images of bundles that are directories, with `{{.Package}}`, `{{.Name}}` and `{{.Version}}` to be filled in.
    pub image_ref_template: Option<String>,
    /// What becomes of manifests.
    pub form: Form,
    /// How the catalog is written.
    pub format: Format,
}

/// More inputs at once gain nothing: registries answer slower.
const AT_ONCE: usize = 8;

/// What an input is.
enum Found {
    Bundle(Box<Rendered>),
    Catalog(CatalogFiles),
}

/// One catalog of bundles and catalogs.
///
/// # Errors
/// When an input cannot be read or rendered.
pub fn render(request: &Request, access: &Access) -> Result<FileText, Failure> {
    let found = in_parallel(&request.inputs, AT_ONCE, |input| found(input, request, access));
    let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut catalog = Catalog::default();
    for (found, input) in found.iter().zip(&request.inputs) {
        match found {
            Found::Bundle(rendered) => catalog.bundles.push(rendered.blob.clone()),
            Found::Catalog(files) => {
                let parsed = Catalog::parse(files);
                writable(&parsed, input)?;
                catalog.merge(parsed);
            }
        }
    }
    if request.form == Form::Metadata {
        render::migrate(&mut catalog).map_err(Failure::failed)?;
    }
    Ok(FileText { text: write::to_text(&catalog, request.format).map_err(Failure::failed)? })
}

/// Refuses a catalog of which a part cannot be read, or not be written anew.
fn writable(catalog: &Catalog<'_>, input: &Input) -> Result<(), Failure> {
    check_readable(catalog, input)?;
    catalog.check_values().map_err(|fault| {
        let why = match &fault.kind {
            FaultKind::Syntax(why) => why.as_str(),
            _ => "it cannot be read",
        };
        let error = format!("a value of `{input}` cannot be written: {why}");
        Failure::failed(error).at(Some(catalog.place(fault.at))).help(VALUE_HELP)
    })
}

fn found(input: &Input, request: &Request, access: &Access) -> Result<Found, Failure> {
    if is_catalog(input, access)? {
        return input.catalog(access).map(Found::Catalog);
    }
    let files = input.bundle(access)?;
    let rendered =
        render_bundle(&Bundle::parse(&files), input, request.image_ref_template.as_deref(), request.form)?;
    Ok(Found::Bundle(Box::new(rendered)))
}

/// Whether something is a catalog rather than a bundle: a file, a directory without a bundle's own directories, an image that
/// says so.
fn is_catalog(input: &Input, access: &Access) -> Result<bool, Failure> {
    match input {
        Input::Disk(path) => {
            Ok(!path.join("metadata/annotations.yaml").is_file() && !path.join("manifests").is_dir())
        }
        Input::Image(_) => {
            let (_, root) = input.image(access)?;
            Ok(root.image(None)?.label(CONFIGS_LABEL).is_some())
        }
    }
}

/// How a template's catalog is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As a catalog.
    Catalog(Format),
    /// As its upgrade graph.
    Mermaid,
}

/// Which template to render.
#[derive(Debug)]
pub struct TemplateRequest {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// A file that says in which directories the bundles are, so that nothing is fetched.
    pub bundles: Option<PathBuf>,
    /// What becomes of manifests.
    pub form: Form,
    /// How the catalog is shown.
    pub shown: Shown,
    /// Of a composite only this component.
    pub component: Option<String>,
    /// Where the catalogs of a composite go.
    pub output_dir: Option<PathBuf>,
}

/// Expands a catalog template.
///
/// # Errors
/// When the template is none, a bundle cannot be had, or the bundles do not go together.
pub fn template(request: &TemplateRequest, access: &Access) -> Result<FileText, Failure> {
    let source = Source { access, form: request.form, map: request.bundles.as_deref().map(map).transpose()? };
    let (name, text) = read(&request.file)?;
    let template = match Template::parse(&name, &text).map_err(template_failure)? {
        Template::Composite(composite) => return expand(&composite, request, &source),
        template => template,
    };
    let needs_composite = |flag: &str, help: &'static str| {
        let error = format!("`{flag}` needs a composite template, which `{name}` is not");
        Err(Failure::usage(error).help(help))
    };
    if request.output_dir.is_some() {
        return needs_composite("--output-dir", "redirect standard output to a file instead");
    }
    if request.component.is_some() {
        return needs_composite("--component", "omit --component: the template makes a single catalog");
    }
    let catalog = template.render(&source).map_err(template_failure)?;
    Ok(FileText { text: shown(&catalog, request)? })
}

/// Expands the components of a composite that were asked for.
fn expand(
    composite: &Composite,
    request: &TemplateRequest,
    source: &Source<'_>,
) -> Result<FileText, Failure> {
    let wanted =
        |component: &&Component| request.component.as_ref().is_none_or(|name| *name == component.name);
    let components: Vec<&Component> = composite.components.iter().filter(wanted).collect();
    let dir = match (&request.output_dir, &components[..]) {
        (_, []) => {
            let names: Vec<_> =
                composite.components.iter().map(|found| format!("`{}`", found.name)).collect();
            let error = "the composite has no such component";
            return Err(Failure::failed(error).help(format!("there are {}", names.join(", "))));
        }
        (None, [component]) => return Ok(FileText { text: component_text(component, request, source)? }),
        (None, _) => {
            return Err(Failure::usage("a composite template expands to several catalogs")
                .help("pass --output-dir, or choose one with --component"));
        }
        (Some(_), _) if matches!(request.shown, Shown::Mermaid) => {
            return Err(Failure::usage("catalogs are not written as Mermaid")
                .help("omit --output-dir, and choose a catalog with --component"));
        }
        (Some(dir), _) => dir,
    };
    let catalogs = catalogs(&components, request, source)?;
    let mut files = BTreeMap::new();
    let mut text = String::new();
    for component in components {
        let file = below(&component.name)?.join(below(&component.path)?).join(below(&component.output)?);
        let file: PathBuf = file.components().collect();
        text += &format!("{}\n", dir.join(&file).display());
        // Paths of a template are UTF-8, so nothing is lost.
        let name = file.to_string_lossy().into_owned();
        if files.insert(name, catalogs.get(&input(component))).is_some() {
            let error = format!("two components of the composite make `{}`", file.display());
            return Err(Failure::failed(error).help("give one of them another `output`"));
        }
    }
    let mut output = OutputDir::open(dir)?;
    for (name, text) in &files {
        check_replaced(&dir.join(name), text.map_or("", String::as_str))?;
    }
    output.write(&files)?;
    Ok(FileText { text })
}

/// What the catalog of a component follows from.
fn input(component: &Component) -> (&str, bool) {
    (&component.input, component.strategy == Strategy::Raw)
}

/// The catalogs of components by their inputs: an input that several of them have is expanded once.
fn catalogs<'c>(
    components: &[&'c Component],
    request: &TemplateRequest,
    source: &Source<'_>,
) -> Result<BTreeMap<(&'c str, bool), String>, Failure> {
    let mut of_inputs = BTreeMap::<_, Vec<&Component>>::new();
    for component in components {
        of_inputs.entry(input(component)).or_default().push(component);
    }
    if let Some(((file, _), all)) = of_inputs.iter().find(|(_, all)| all.len() > MOST_OF_ONE_INPUT) {
        let error = format!(
            "`{file}` is the input of {} components, and can be that of {MOST_OF_ONE_INPUT}",
            all.len()
        );
        return Err(Failure::failed(error).help("split the composite"));
    }
    let texts = of_inputs.into_iter().map(|(key, all)| Ok((key, component_text(all[0], request, source)?)));
    texts.collect()
}

/// One input of a composite may have this many components.
const MOST_OF_ONE_INPUT: usize = 100;

/// Refuses to replace a file that is no catalog, or has other packages.
fn check_replaced(path: &Path, new: &str) -> Result<(), Failure> {
    if !path.is_file() {
        return Ok(());
    }
    let old = CatalogFiles::load(path).map_err(Failure::incomplete)?;
    let catalog = Catalog::parse(&old);
    let is_empty = catalog.packages.is_empty() && catalog.channels.is_empty() && catalog.bundles.is_empty();
    if is_empty || !catalog.faults.is_empty() {
        let error = format!("`{}` exists and is not a catalog", path.display());
        return Err(Failure::usage(error).help("move it away, or choose another --output-dir"));
    }
    let new = CatalogFiles::from_text("", new);
    let new = Catalog::parse(&new);
    let is_kept = |name: &str| new.packages.iter().any(|package| *package.name == *name);
    if let Some(lost) = catalog.packages.iter().find(|package| !is_kept(&package.name)) {
        let error = format!("`{}` has the package `{}`, which would be lost", path.display(), lost.name);
        return Err(Failure::usage(error).help("move it away, or choose another --output-dir"));
    }
    Ok(())
}

/// What a component of a composite stands for. Its input is looked for where we are, then beside the composite, as opm did.
fn component_text(
    component: &Component,
    request: &TemplateRequest,
    source: &Source<'_>,
) -> Result<String, Failure> {
    let beside = request.file.parent().unwrap_or(Path::new("")).join(&component.input);
    let here = PathBuf::from(&component.input);
    let input = if here.exists() { here } else { beside };
    if component.strategy == Strategy::Raw {
        let input = Input::Disk(input);
        let files = input.catalog(source.access)?;
        let catalog = Catalog::parse(&files);
        writable(&catalog, &input)?;
        return shown(&catalog, request);
    }
    let (name, text) = read(&input)?;
    let template = Template::parse(&name, &text).map_err(template_failure)?;
    shown(&template.render(source).map_err(template_failure)?, request)
}

/// A path of a composite, which must not lead out of the directory that everything goes to.
fn below(path: &str) -> Result<&Path, Failure> {
    let path = Path::new(path.trim_start_matches("./"));
    let stays = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if stays {
        Ok(path)
    } else {
        Err(Failure::failed(format!("`{}` is outside of the output directory", path.display())))
    }
}

fn shown(catalog: &Catalog<'_>, request: &TemplateRequest) -> Result<String, Failure> {
    match request.shown {
        Shown::Catalog(format) => write::to_text(catalog, format).map_err(Failure::failed),
        Shown::Mermaid => {
            let mut options = draw::Options::default();
            options.v0_semantics = true;
            let drawing = Drawing::of(catalog, &options).map_err(Failure::failed)?;
            Ok(drawing.text(draw::Format::Mermaid))
        }
    }
}

fn read(file: &Path) -> Result<(String, String), Failure> {
    if file != Path::new("-") {
        return Ok((file.display().to_string(), files::read_text(file)?));
    }
    Ok(("standard input".into(), files::read_stdin(MAX_TEMPLATE)?))
}

/// A template that is larger than this is not read from standard input.
const MAX_TEMPLATE: u64 = 256 << 20;

/// What cannot be read or had.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("`{file}`:{line} is not `REFERENCE<TAB>DIRECTORY`")]
    Map { file: String, line: usize },
    #[error("`{file}`:{line} names `{reference}` again, with another directory")]
    MapTwice { file: String, line: usize, reference: String },
}

/// Where bundles are, by their references: lines of a reference and a directory with a tab between.
fn map(file: &Path) -> Result<HashMap<String, PathBuf>, Failure> {
    let text = files::read_text(file)?;
    let mut map = HashMap::new();
    for (at, line) in
        text.trim_start_matches('\u{feff}').lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
    {
        let Some((reference, directory)) = line.split_once('\t') else {
            let error = ReadError::Map { file: file.display().to_string(), line: at + 1 };
            return Err(Failure::failed(error));
        };
        let (reference, directory) = (reference.trim().to_owned(), PathBuf::from(directory.trim()));
        if let Some(other) = map.insert(reference.clone(), directory.clone())
            && other != directory
        {
            let error = ReadError::MapTwice { file: file.display().to_string(), line: at + 1, reference };
            return Err(Failure::usage(error));
        }
    }
    Ok(map)
}

/// Bundles from directories, or from wherever their references lead.
struct Source<'s> {
    access: &'s Access,
    form: Form,
    map: Option<HashMap<String, PathBuf>>,
}

/// A bundle that cannot be had or rendered, with what is known of why.
#[derive(Debug, thiserror::Error)]
#[error("cannot render `{reference}`")]
struct SourceError {
    reference: String,
    exit: Exit,
    place: Option<Box<olmkit_bundle::finding::Place>>,
    help: Help,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl BundleSource for Source<'_> {
    fn bundles(&self, references: &[&str]) -> Result<Vec<Rendered>, Box<dyn Error + Send + Sync>> {
        let bundles = in_parallel(references, AT_ONCE, |reference| {
            self.bundle(reference).map_err(|failure| SourceError {
                reference: (*reference).to_owned(),
                exit: failure.exit,
                place: failure.place,
                help: failure.help,
                source: failure.error,
            })
        });
        Ok(bundles.into_iter().collect::<Result<_, _>>()?)
    }
}

impl Source<'_> {
    fn bundle(&self, reference: &str) -> Result<Rendered, Failure> {
        let files: BundleFiles = match &self.map {
            Some(map) => match map.get(reference) {
                Some(directory) => Input::Disk(directory.clone()).bundle(self.access)?,
                None => {
                    return Err(Failure::failed("the file given by --bundles does not have it")
                        .help("add a line with the reference, a tab and the bundle's directory"));
                }
            },
            None => reference.parse::<Input>().map_err(Failure::failed)?.bundle(self.access)?,
        };
        let is_local =
            matches!(reference.parse(), Ok(Input::Image(place)) if !matches!(place, Place::Registry(_)));
        if is_local || reference.parse::<ImageRef>().is_err() {
            let error =
                "it is not the reference of an image in a registry, and clusters pull bundles from there";
            return Err(Failure::failed(error).help(
                "write the reference that the image is going to have in a registry, and say in a file for --bundles \
                 which directory has the bundle",
            ));
        }
        let options = render::Options::new(reference, self.form);
        render::bundle(&Bundle::parse(&files), &options).map_err(|error| {
            let place = error.place().cloned();
            Failure::failed(error).at(place)
        })
    }
}

/// The template that stands for a catalog, or for one package of it.
///
/// # Errors
/// When the catalog cannot be read, or has no such template.
pub fn convert(
    catalog: &Input,
    target: template::Target,
    package: Option<&str>,
    format: Format,
    access: &Access,
) -> Result<FileText, Failure> {
    let files = catalog.catalog(access)?;
    let parsed = Catalog::parse(&files);
    writable(&parsed, catalog)?;
    let within = Within { catalog: &parsed, input: catalog, package: None };
    let text = template::convert(&parsed, target, package, format).map_err(|error| {
        let place = error.place().cloned();
        let help = match &error {
            template::ConvertError::NoPackage { package } => Some(within.help(What::Package, package)),
            error => error.help().map(str::to_owned),
        };
        Failure::failed(error).help(help).at(place)
    })?;
    Ok(FileText { text })
}

fn template_failure(error: TemplateError) -> Failure {
    match error {
        TemplateError::Source(source) => match source.downcast::<SourceError>() {
            Ok(error) => {
                let mut error = *error;
                let (exit, place, help) = (error.exit, error.place.take(), std::mem::take(&mut error.help));
                Failure { exit, error: Box::new(error), place, help }
            }
            Err(source) => Failure::failed(TemplateError::Source(source)),
        },
        error => {
            let (place, help) = (error.place().cloned(), error.help());
            let failure = Failure::failed(error).at(place);
            match help {
                Some(help) => failure.help(help),
                None => failure,
            }
        }
    }
}

/// A bundle as catalogs hold it. Its image is what the template says, else the one in a registry that it was read from.
pub(super) fn render_bundle(
    parsed: &Bundle<'_>,
    input: &Input,
    template: Option<&str>,
    form: Form,
) -> Result<Rendered, Failure> {
    let image = match (template, input) {
        (Some(template), _) => fill(template, parsed)?,
        (None, Input::Image(Place::Registry(reference))) => reference.whole(),
        _ => String::new(),
    };
    if let Err(error) = image.parse::<ImageRef>()
        && !image.is_empty()
    {
        return Err(Failure::usage(error).help(
            "give --image-ref-template a reference such as `registry.example.com/{{.Package}}:v{{.Version}}`",
        ));
    }
    render::bundle(parsed, &render::Options::new(image, form)).map_err(|error| {
        let place = error.place().cloned();
        Failure::failed(error).at(place).help(format!("run `olmkit bundle validate {}`", argument(input)))
    })
}

/// Fills in what opm's templates know.
///
/// # Errors
/// The template has another field, or one that does not end.
fn fill(template: &str, bundle: &Bundle<'_>) -> Result<String, Failure> {
    let package = bundle.annotations().map(|annotations| annotations.package()).unwrap_or_default();
    let csv = bundle.csv().map(|csv| csv.typed);
    let name = csv.map(|csv| csv.name()).unwrap_or_default();
    let version = csv.map(|csv| csv.spec.version.as_str()).unwrap_or_default();
    let values = [("Package", package.as_str()), ("Name", name), ("Version", version)];
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once("{{") {
        let Some((key, after)) = from.split_once("}}") else {
            let error =
                format!("`--image-ref-template` has a field without `}}}}`: `{{{{{}`", from.escape_debug());
            return Err(Failure::usage(error).help("write it like `{{.Version}}`"));
        };
        let key = key.trim();
        let Some((_, value)) = values.iter().find(|(name, _)| key.strip_prefix('.') == Some(*name)) else {
            return Err(unknown_field(key));
        };
        text += before;
        text += value;
        rest = after;
    }
    Ok(text + rest)
}

fn unknown_field(key: &str) -> Failure {
    const FIELDS: [&str; 3] = ["Package", "Name", "Version"];
    let near =
        nearest(key.trim_start_matches('.'), FIELDS).map(|near| format!("did you mean `{{{{.{near}}}}}`? "));
    let error = format!("`--image-ref-template` has no field `{{{{{}}}}}`", key.escape_debug());
    Failure::usage(error).help(format!(
        "{}the fields are `{{{{.Package}}}}`, `{{{{.Name}}}}` and `{{{{.Version}}}}`",
        near.unwrap_or_default()
    ))
}
