//! exit-codes.md: the table in src/exit_codes.rs.

use syn::{Expr, ExprTuple};

use super::markdown::{code, table};
use super::page::Page;
use super::sources::{Source, constant, text};
use super::values::Evaluator;

/// File with the table `TABLE` of codes, commands and meanings.
const FILE: &str = "src/exit_codes.rs";

pub(super) fn page(sources: &[Source]) -> Page {
    let source = sources.iter().find(|source| source.path == FILE);
    let file = source.unwrap_or_else(|| panic!("{FILE} is missing")).parse();
    let Some(Expr::Array(rows)) = constant(&file, "TABLE") else { panic!("{FILE} has no array TABLE") };
    let evaluator = Evaluator { sources };
    let rows = rows.elems.iter().map(|element| {
        let Expr::Tuple(ExprTuple { elems, .. }) = element else { panic!("{FILE}: a row of TABLE") };
        let value = evaluator.value(FILE, &elems[0]).unwrap_or_else(|error| panic!("{FILE}: {error}"));
        [value.with_unit(""), commands(&elems[1], &file), text(&elems[2]).unwrap_or_default()]
    });
    let table = table(["Code", "Commands", "Meaning"], rows);
    Page::new("exit-codes.md", format!("# Exit codes\n\nExit codes of `portico`, by command.\n\n{table}"))
}

/// Names of commands: a literal, or a constant that has one.
fn commands(expr: &Expr, file: &syn::File) -> String {
    let named = match expr {
        Expr::Path(path) => path.path.get_ident().and_then(|name| constant(file, &name.to_string())),
        literal => Some(literal.clone()),
    };
    let names = named.as_ref().and_then(text).unwrap_or_else(|| panic!("{FILE}: commands of a row of TABLE"));
    if names == "all" { names } else { names.split(", ").map(code).collect::<Vec<_>>().join(", ") }
}
