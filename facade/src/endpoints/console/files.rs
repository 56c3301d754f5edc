//! The console's files, which the build compresses (`build.rs`); they are opened when the first of them is asked for.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page; it names its assets by `{assets}`, and has `{modules}` where all modules are asked for at once.
const PAGE: &str = include_str!("../../../console/index.html");

/// Names, media types and compressed contents of what the page loads.
macro_rules! assets {
    ($($name:literal $media_type:expr),* $(,)?) => {
        &[$(($name, $media_type, include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))),*]
    };
}

const ASSETS: &[(&str, &str, &[u8])] = assets![
    "console.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "access.js" JAVASCRIPT,
    "apis.js" JAVASCRIPT,
    "app.js" JAVASCRIPT,
    "audit.js" JAVASCRIPT,
    "certs.js" JAVASCRIPT,
    "create.js" JAVASCRIPT,
    "definitions.js" JAVASCRIPT,
    "diff.js" JAVASCRIPT,
    "discovery.js" JAVASCRIPT,
    "dom.js" JAVASCRIPT,
    "editor.js" JAVASCRIPT,
    "events.js" JAVASCRIPT,
    "facades.js" JAVASCRIPT,
    "grid.js" JAVASCRIPT,
    "grid_keys.js" JAVASCRIPT,
    "history.js" JAVASCRIPT,
    "http.js" JAVASCRIPT,
    "json.js" JAVASCRIPT,
    "keys.js" JAVASCRIPT,
    "login.js" JAVASCRIPT,
    "object.js" JAVASCRIPT,
    "objects.js" JAVASCRIPT,
    "overview.js" JAVASCRIPT,
    "owners.js" JAVASCRIPT,
    "past.js" JAVASCRIPT,
    "plot.js" JAVASCRIPT,
    "rbac.js" JAVASCRIPT,
    "restore.js" JAVASCRIPT,
    "router.js" JAVASCRIPT,
    "schema.js" JAVASCRIPT,
    "session.js" JAVASCRIPT,
    "states.js" JAVASCRIPT,
    "theme.js" JAVASCRIPT,
    "time.js" JAVASCRIPT,
    "tree.js" JAVASCRIPT,
    "watch.js" JAVASCRIPT,
    "yaml.js" JAVASCRIPT,
];

/// One file, ready to be sent.
pub(super) struct File {
    pub(super) media_type: &'static str,
    pub(super) plain: Bytes,
    /// Nothing where it cannot be compressed.
    pub(super) gzip: Option<Bytes>,
    /// Names the contents, whatever the encoding.
    pub(super) tag: String,
}

/// All of them.
pub(super) struct Files {
    pub(super) page: File,
    pub(super) assets: HashMap<&'static str, File>,
    /// The folder of the assets: another one whenever one of them is another.
    pub(super) folder: String,
}

/// The files of this build.
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
            (*name, file(media_type, opened(name, packed), Some(Bytes::from_static(packed))))
        });
        let assets = assets.collect();
        let page = Bytes::from(page);
        Self { page: file("text/html; charset=utf-8", page.clone(), compressed(&page)), assets, folder }
    }
}

/// Asks for all modules beside the first one: what a module imports is not waited for one after the other. The style sheet, which the first
/// paint waits for, goes before them.
fn preloads() -> String {
    let modules = ASSETS.iter().filter(|(name, ..)| name.ends_with(".js") && *name != "app.js");
    modules
        .map(|(name, ..)| {
            format!("<link rel=\"modulepreload\" fetchpriority=\"low\" href=\"{{assets}}/{name}\">\n")
        })
        .collect()
}

/// The same bytes have the same one in every process of one build.
fn fingerprint(of: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The page's way: it is put together at run time.
fn compressed(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing into memory does not fail; what is not compressed is sent as it is.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

/// An asset as it was before the build compressed it.
fn opened(name: &str, packed: &[u8]) -> Bytes {
    let mut plain = Vec::new();
    if let Err(error) = GzDecoder::new(packed).read_to_end(&mut plain) {
        // The build wrote it; browsers take it compressed.
        tracing::error!(%error, name, "a file of the console cannot be opened");
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser has to load before the page works.
    const MAX_COMPRESSED_SCRIPT: usize = 60 * 1024;

    #[test]
    fn the_scripts_stay_small() {
        let scripts = files().assets.iter().filter(|(name, _)| name.ends_with(".js"));
        let total: usize = scripts.map(|(_, file)| file.gzip.as_ref().unwrap().len()).sum();
        assert!(total <= MAX_COMPRESSED_SCRIPT, "{total} bytes");
    }

    #[test]
    fn every_file_of_the_folder_is_served_and_every_module_that_is_imported_is_there() {
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
    fn every_script_says_what_it_is_for() {
        for (name, file) in files().assets.iter().filter(|(name, _)| name.ends_with(".js")) {
            assert!(file.plain.starts_with(b"// "), "{name}");
        }
    }
}
