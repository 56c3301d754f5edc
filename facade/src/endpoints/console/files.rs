//! Files of the console. The build script compresses them; they are decompressed on first use.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page. `{assets}` is replaced by the path of the assets, `{modules}` by links that preload all modules.
const PAGE: &str = include_str!("../../../console/index.html");

/// Lists names, media types and compressed contents of the assets.
macro_rules! assets {
    ($($name:literal $media_type:expr),* $(,)?) => {
        &[$(($name, $media_type, include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))),*]
    };
}

const ASSETS: &[(&str, &str, &[u8])] = assets![
    "console.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "access.js" JAVASCRIPT,
    "actions.js" JAVASCRIPT,
    "apis.js" JAVASCRIPT,
    "app.js" JAVASCRIPT,
    "audit.js" JAVASCRIPT,
    "certs.js" JAVASCRIPT,
    "definitions.js" JAVASCRIPT,
    "discovery.js" JAVASCRIPT,
    "dom.js" JAVASCRIPT,
    "editor.js" JAVASCRIPT,
    "grid.js" JAVASCRIPT,
    "history.js" JAVASCRIPT,
    "http.js" JAVASCRIPT,
    "keys.js" JAVASCRIPT,
    "kinds.js" JAVASCRIPT,
    "login.js" JAVASCRIPT,
    "namespace.js" JAVASCRIPT,
    "object.js" JAVASCRIPT,
    "objects.js" JAVASCRIPT,
    "owners.js" JAVASCRIPT,
    "palettes.js" JAVASCRIPT,
    "past.js" JAVASCRIPT,
    "rights.js" JAVASCRIPT,
    "router.js" JAVASCRIPT,
    "schema.js" JAVASCRIPT,
    "session.js" JAVASCRIPT,
    "states.js" JAVASCRIPT,
    "status.js" JAVASCRIPT,
    "summary.js" JAVASCRIPT,
    "time.js" JAVASCRIPT,
    "watch.js" JAVASCRIPT,
    "yaml.js" JAVASCRIPT,
    "yaml_view.js" JAVASCRIPT,
];

/// One file, ready to send.
pub(super) struct File {
    pub(super) media_type: &'static str,
    pub(super) plain: Bytes,
    /// `None` if compression failed.
    pub(super) gzip: Option<Bytes>,
    /// Weak entity tag of the contents in any encoding.
    pub(super) tag: String,
}

/// The page and its assets.
pub(super) struct Files {
    pub(super) page: File,
    pub(super) assets: HashMap<&'static str, File>,
    /// Folder of the assets; its name changes with their contents.
    pub(super) folder: String,
}

/// Returns the files of this build.
pub(super) fn files() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(Files::new);
    &FILES
}

impl Files {
    fn new() -> Self {
        let folder = fingerprint(&ASSETS.iter().map(|(name, _, bytes)| (*name, *bytes)).collect::<Vec<_>>());
        let page = PAGE.replace("{modules}", &preloads()).replace("{assets}", &format!("assets/{folder}"));
        let file = |media_type, plain: Bytes, gzip| File {
            media_type,
            tag: format!("W/\"{}\"", fingerprint(&plain)),
            plain,
            gzip,
        };
        let assets = ASSETS.iter().map(|(name, media_type, packed)| {
            (*name, file(media_type, decompress(name, packed), Some(Bytes::from_static(packed))))
        });
        let assets = assets.collect();
        let page = Bytes::from(page);
        Self { page: file("text/html; charset=utf-8", page.clone(), compress(&page)), assets, folder }
    }
}

/// Builds the links that preload all modules, so that the browser does not fetch imports one after the other. Their low
/// priority lets the style sheet, which the first paint needs, arrive first.
fn preloads() -> String {
    let modules = ASSETS.iter().filter(|(name, ..)| name.ends_with(".js") && *name != "app.js");
    modules
        .map(|(name, ..)| {
            format!("<link rel=\"modulepreload\" fetchpriority=\"low\" href=\"{{assets}}/{name}\">\n")
        })
        .collect()
}

/// Hashes contents. Equal bytes have the same fingerprint in all processes of one build.
fn fingerprint(contents: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Compresses the page, which is assembled at runtime.
fn compress(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

/// Decompresses an asset for clients that do not accept gzip.
fn decompress(name: &str, packed: &[u8]) -> Bytes {
    let mut plain = Vec::new();
    if let Err(error) = GzDecoder::new(packed).read_to_end(&mut plain) {
        tracing::error!(%error, name, "failed to decompress a file of the console");
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit for all scripts together, compressed.
    const MAX_COMPRESSED_SCRIPT: usize = 60 * 1024;

    #[test]
    fn the_scripts_stay_small() {
        let scripts = files().assets.iter().filter(|(name, _)| name.ends_with(".js"));
        let total: usize = scripts.map(|(_, file)| file.gzip.as_ref().unwrap().len()).sum();
        assert!(total <= MAX_COMPRESSED_SCRIPT, "{total} bytes");
    }

    #[test]
    fn every_file_of_the_folder_is_served_and_every_imported_module_exists() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(
                name == "index.html" || files().assets.contains_key(name.as_str()),
                "{name} is not served"
            );
        }
        for (name, file) in files().assets.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(&file.plain).unwrap();
            for line in text.lines().filter(|line| line.starts_with("import ") || line.starts_with("} from "))
            {
                let Some((_, from)) = line.split_once(" from './") else { continue };
                let imported = from.trim_end_matches("';");
                assert!(files().assets.contains_key(imported), "{name} imports {imported}");
            }
        }
    }

    #[test]
    fn no_script_inserts_markup_or_runs_text() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "http://",
            "https://",
        ];
        for (name, file) in files().assets.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(&file.plain).unwrap();
            for (number, line) in text.lines().enumerate() {
                let found =
                    forbidden.iter().find(|word| line.contains(**word) && !line.contains("www.w3.org"));
                assert_eq!(found, None, "{name}:{}", number + 1);
            }
        }
    }

    #[test]
    fn scripts_start_with_a_comment_and_keep_their_code_without_comments() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        for (name, file) in files().assets.iter().filter(|(name, _)| name.ends_with(".js")) {
            let source = std::fs::read_to_string(folder.join(name)).unwrap();
            assert!(source.starts_with("// "), "{name}");
            for (number, line) in source.lines().enumerate() {
                // The build removes comments, blank lines and indentation line by line, which would change a multi-line template.
                assert!(
                    line.matches('`').count() % 2 == 0,
                    "{name}:{}: a template of several lines",
                    number + 1
                );
            }
            let lines = source.lines().map(str::trim_start);
            let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
            let code: String = code.flat_map(|line| [line, "\n"]).collect();
            assert_eq!(code.as_bytes(), file.plain, "{name}");
        }
    }
}
