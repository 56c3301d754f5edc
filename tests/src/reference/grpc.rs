//! grpc.md: services and methods of the descriptors, with their comments, and the access that each method requires.

use std::collections::HashMap;

use portico_proto::DESCRIPTORS;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto};

use super::page::Page;
use super::sources::{Source, paragraphs, text};

/// File with the access that methods require.
const ACCESS: &str = "server/src/chain/methods.rs";
/// Numbers of the fields `service` of a file and `method` of a service in descriptors.
const SERVICE: i32 = 6;
const METHOD: i32 = 2;

const HEAD: &str = "# gRPC API

Services of the control service. The `.proto` files in `proto/proto` describe all messages and fields; server reflection \
returns them to tools such as grpcurl. A Kubernetes verb, or the verb `post` on a path, is granted by RBAC.

";

pub(super) fn page(sources: &[Source]) -> Page {
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let access = Access::read(sources);
    let mut text = HEAD.to_owned();
    for file in &set.file {
        let comments = comments(file);
        for (index, service) in file.service.iter().enumerate() {
            let name = format!("{}.{}", file.package(), service.name());
            let at = [SERVICE, number(index)];
            let required: Vec<String> =
                service.method.iter().map(|method| access.of(&name, method.name())).collect();
            let is_common = required.iter().all(|access| *access == required[0]);
            text.push_str(&format!("## {name}\n\n{}\n\n", comment(&comments, &at)));
            if is_common {
                text.push_str(&format!("Access: {}.\n\n", required[0]));
            }
            for (index, method) in service.method.iter().enumerate() {
                let about = comment(&comments, &[at[0], at[1], METHOD, number(index)]);
                let about = about.strip_prefix(method.name()).map_or(about.as_str(), str::trim_start);
                let access = if is_common { String::new() } else { format!(" Access: {}.", required[index]) };
                text.push_str(&format!("- `{}`: {about}{access}\n", signature(method)));
            }
            text.push('\n');
        }
    }
    Page::new("grpc.md", text)
}

fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

fn signature(method: &MethodDescriptorProto) -> String {
    let message = |name: &str, streams: bool| {
        let name = name.rsplit('.').next().unwrap_or_default();
        if streams { format!("stream {name}") } else { name.to_owned() }
    };
    let input = message(method.input_type(), method.client_streaming());
    let output = message(method.output_type(), method.server_streaming());
    format!("{}({input}) returns ({output})", method.name())
}

/// Comments of a file by the path of what they describe.
fn comments(file: &FileDescriptorProto) -> HashMap<Vec<i32>, String> {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    locations.map(|location| (location.path.clone(), location.leading_comments().to_owned())).collect()
}

/// A comment as one line.
fn comment(comments: &HashMap<Vec<i32>, String>, path: &[i32]) -> String {
    let comment = comments.get(path).map(String::as_str).unwrap_or_default();
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Access that methods require.
struct Access {
    /// Beginnings of paths, and variants of `Access`.
    rows: Vec<(String, String)>,
    /// Descriptions of the variants.
    meanings: HashMap<String, String>,
}

impl Access {
    fn read(sources: &[Source]) -> Self {
        let source = sources.iter().find(|source| source.path == ACCESS);
        let file = source.unwrap_or_else(|| panic!("{ACCESS} is missing")).parse();
        let mut access = Self { rows: Vec::new(), meanings: HashMap::new() };
        for item in &file.items {
            match item {
                syn::Item::Enum(item) if item.ident == "Access" => access.meanings = meanings(item),
                syn::Item::Const(item) if item.ident == "TABLE" => access.rows = rows(&item.expr),
                _ => {}
            }
        }
        assert!(!access.rows.is_empty(), "{ACCESS} has no TABLE");
        access
    }

    fn of(&self, service: &str, method: &str) -> String {
        let path = format!("/{service}/{method}");
        let row = self.rows.iter().find(|(prefix, _)| path.starts_with(prefix));
        let (_, variant) = row.unwrap_or_else(|| panic!("{path} is not in TABLE of {ACCESS}"));
        self.meanings[variant].trim_end_matches('.').replace("<service>", service)
    }
}

fn meanings(item: &syn::ItemEnum) -> HashMap<String, String> {
    let meaning =
        |variant: &syn::Variant| (variant.ident.to_string(), paragraphs(&variant.attrs).swap_remove(0));
    item.variants.iter().map(meaning).collect()
}

fn rows(table: &syn::Expr) -> Vec<(String, String)> {
    let syn::Expr::Reference(table) = table else { return Vec::new() };
    let syn::Expr::Array(rows) = &*table.expr else { return Vec::new() };
    let row = |row: &syn::Expr| {
        let syn::Expr::Tuple(row) = row else { return None };
        let (prefix, syn::Expr::Path(variant)) = (text(row.elems.first()?)?, row.elems.last()?) else {
            return None;
        };
        Some((prefix, variant.path.segments.last()?.ident.to_string()))
    };
    rows.elems
        .iter()
        .map(|element| row(element).unwrap_or_else(|| panic!("{ACCESS}: a row of TABLE")))
        .collect()
}
