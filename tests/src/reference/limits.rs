//! limits.md: constants and fields whose doc comment has a paragraph `Limit (AREA[, UNIT]): what happens when it is reached.`

use syn::visit::Visit;

use super::markdown::table;
use super::page::Page;
use super::sources::{Source, field_values, paragraphs};
use super::values::{Evaluator, Value};

/// Start of the paragraph that makes a constant a limit.
const MARK: &str = "Limit (";
/// Areas in the order of the page.
const AREAS: [&str; 16] = [
    "Serving",
    "Requests",
    "Definitions and schemas",
    "Expressions",
    "Admission and quota",
    "Webhooks",
    "Authentication and authorization",
    "Priority and fairness",
    "Storage and watches",
    "Facades and control services",
    "Backends",
    "Kubelets and remote commands",
    "Manifests",
    "Audit",
    "Console",
    "Logs, traces and files",
];

/// A limit.
struct Limit {
    area: &'static str,
    name: String,
    value: String,
    reached: String,
}

pub(super) fn page(sources: &[Source]) -> Page {
    let limits: Vec<Limit> = sources.iter().flat_map(|source| limits(source, sources)).collect();
    let mut text = String::from(
        "# Limits\n\nEvery queue, buffer, size, depth and time has a limit. The limits on this page are fixed; the others are \
         [flags](flags.md). A number such as 413 under \"When reached\" is the HTTP status of the response.\n\n",
    );
    for area in AREAS {
        let rows = limits.iter().filter(|limit| limit.area == area);
        let rows = rows.map(|limit| [&limit.name, &limit.value, &limit.reached].map(Clone::clone));
        text.push_str(&format!("## {area}\n\n{}\n", table(["Limit", "Value", "When reached"], rows)));
    }
    Page::new("limits.md", text)
}

fn limits(source: &Source, sources: &[Source]) -> Vec<Limit> {
    if !source.text.contains(&format!("/// {MARK}")) {
        return Vec::new();
    }
    let file = source.parse();
    let mut marked = Marked::default();
    marked.visit_file(&file);
    assert_eq!(
        marked.0.len(),
        source.text.matches(&format!("/// {MARK}")).count(),
        "{}: a limit is documented on neither a constant nor a field",
        source.path
    );
    let evaluator = Evaluator { sources };
    let limits = marked.0.into_iter().map(|(name, docs, expr)| {
        let exprs = expr.map_or_else(|| field_values(&file, &name), |expr| vec![expr]);
        let location = format!("{}: {name}", source.path);
        limit(&location, &docs, value(&location, &source.path, &exprs, &evaluator))
    });
    limits.collect()
}

/// The value of a constant, or the one that struct expressions set a field to.
fn value(location: &str, path: &str, exprs: &[syn::Expr], evaluator: &Evaluator<'_>) -> Value {
    let mut values: Vec<Result<Value, String>> =
        exprs.iter().map(|expr| evaluator.value(path, expr)).collect();
    if values.iter().any(Result::is_ok) {
        values.retain(Result::is_ok);
    }
    values.dedup();
    match &values[..] {
        [Ok(value)] => *value,
        values => panic!("{location} cannot be evaluated: {values:?}"),
    }
}

fn limit(location: &str, docs: &[String], value: Value) -> Limit {
    let mark = docs.iter().find_map(|paragraph| paragraph.strip_prefix(MARK));
    let (parameters, reached) =
        mark.and_then(|mark| mark.split_once("): ")).unwrap_or_else(|| panic!("{location}: {docs:?}"));
    let area = AREAS.into_iter().find(|area| parameters.starts_with(area));
    let area = area.unwrap_or_else(|| panic!("{location}: unknown area in {parameters:?}"));
    let unit = parameters[area.len()..].trim_start_matches(", ");
    Limit {
        area,
        name: docs[0].trim_end_matches('.').to_owned(),
        value: value.with_unit(unit),
        reached: reached.trim_end_matches('.').to_owned(),
    }
}

/// Constants and fields that are limits: name, doc comment, and the expression of a constant.
#[derive(Default)]
struct Marked(Vec<(String, Vec<String>, Option<syn::Expr>)>);

impl Marked {
    fn add(&mut self, name: &syn::Ident, attributes: &[syn::Attribute], expr: Option<&syn::Expr>) {
        let docs = paragraphs(attributes);
        if docs.iter().any(|paragraph| paragraph.starts_with(MARK)) {
            self.0.push((name.to_string(), docs, expr.cloned()));
        }
    }
}

impl<'ast> Visit<'ast> for Marked {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add(&item.ident, &item.attrs, Some(&item.expr));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.add(&item.ident, &item.attrs, Some(&item.expr));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.add(name, &field.attrs, None);
        }
    }
}
