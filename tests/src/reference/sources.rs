//! Rust sources of the program.

use std::fs;
use std::path::Path;

use syn::visit::Visit;

use crate::binary::repository;

/// Folders with sources of the program.
const FOLDERS: [&str; 5] = ["facade", "machinery", "proto", "server", "src"];
/// Folders without sources of the program.
const SKIPPED: [&str; 4] = ["benches", "examples", "target", "tests"];

/// A source file.
pub(super) struct Source {
    /// Path in the repository.
    pub(super) path: String,
    /// Text of the file.
    pub(super) text: String,
}

impl Source {
    /// Syntax tree without the modules for tests.
    pub(super) fn parse(&self) -> syn::File {
        let mut file = syn::parse_file(&self.text).unwrap_or_else(|error| panic!("{}: {error}", self.path));
        file.items.retain(|item| !is_for_tests(item));
        file
    }
}

/// All source files, sorted by path.
pub(super) fn program() -> Vec<Source> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(&repository().join(folder), &mut sources);
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

fn collect(folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(&path, sources);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(repository()).unwrap_or(&path).to_string_lossy().into_owned();
            sources.push(Source { path, text });
        }
    }
}

fn is_for_tests(item: &syn::Item) -> bool {
    let syn::Item::Mod(module) = item else { return false };
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    };
    module.attrs.iter().any(is_test)
}

/// Paragraphs of a doc comment, each as one line.
pub(super) fn paragraphs(attributes: &[syn::Attribute]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in attributes.iter().filter_map(doc) {
        match (line.trim(), paragraphs.last_mut()) {
            ("", _) => paragraphs.push(String::new()),
            (text, Some(last)) if last.is_empty() => last.push_str(text),
            (text, Some(last)) => last.extend([" ", text]),
            (_, None) => {}
        }
    }
    paragraphs
}

fn doc(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(value) = &attribute.meta else { return None };
    value.path.is_ident("doc").then(|| text(&value.value))?
}

/// Value of a string literal.
pub(super) fn text(expr: &syn::Expr) -> Option<String> {
    match expr {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Expressions of the fields named `name` in struct expressions of a file.
pub(super) fn field_values(file: &syn::File, name: &str) -> Vec<syn::Expr> {
    struct Values<'n>(&'n str, Vec<syn::Expr>);
    impl<'ast> Visit<'ast> for Values<'_> {
        fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
            if matches!(&field.member, syn::Member::Named(member) if member == self.0) {
                self.1.push(field.expr.clone());
            }
            syn::visit::visit_field_value(self, field);
        }
    }
    let mut values = Values(name, Vec::new());
    values.visit_file(file);
    values.1
}

/// Expression of a constant of a file or of its implementations.
pub(super) fn constant(file: &syn::File, name: &str) -> Option<syn::Expr> {
    file.items.iter().find_map(|item| match item {
        syn::Item::Const(constant) if constant.ident == name => Some((*constant.expr).clone()),
        syn::Item::Impl(item) => item.items.iter().find_map(|item| match item {
            syn::ImplItem::Const(constant) if constant.ident == name => Some(constant.expr.clone()),
            _ => None,
        }),
        _ => None,
    })
}
