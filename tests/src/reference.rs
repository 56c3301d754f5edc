//! The generated pages of docs/reference: one function per page, one list of all pages, and a check for stale files.

mod admission_plugins;
mod annotations;
mod cli;
mod config_file;
mod controllers;
mod exit_codes;
mod facts;
mod flags;
mod grpc;
mod kube_apiserver_flags;
mod limits;
mod markdown;
mod metrics;
mod page;
mod sources;
mod values;

use std::fs;
use std::path::PathBuf;

use crate::binary::repository;
use facts::Facts;
use page::Page;

/// Command that writes the pages.
const COMMAND: &str = "cargo run -p portico-tests --bin reference";

/// All pages.
fn pages() -> Vec<Page> {
    let facts = Facts::of_the_program();
    let sources = sources::program();
    let mut pages = flags::pages(&facts);
    pages.extend([
        admission_plugins::page(&facts),
        annotations::page(),
        config_file::page(&facts),
        controllers::page(&facts),
        exit_codes::page(&sources),
        grpc::page(&sources),
        kube_apiserver_flags::page(&facts),
        limits::page(&sources),
        metrics::page(&sources),
    ]);
    pages.extend(cli::pages(&facts));
    pages
}

fn folder() -> PathBuf {
    repository().join("docs/reference")
}

/// Writes pages that differ from their files and removes files that no longer have a page. Returns the names of both.
///
/// # Panics
/// If the folder cannot be written.
pub fn write() -> Vec<String> {
    let pages = pages();
    let differing = differing(&pages);
    fs::create_dir_all(folder()).unwrap();
    for file in &differing {
        let path = folder().join(file);
        match pages.iter().find(|page| page.file == *file) {
            Some(page) => fs::write(path, page.content(COMMAND)).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    }
    differing
}

/// Report of the files that differ from their pages, if there are any.
///
/// # Panics
/// If the folder cannot be read.
#[must_use]
pub fn stale() -> Option<String> {
    let differing = differing(&pages());
    let report = format!("stale pages in docs/reference: {}\nrun: {COMMAND}", differing.join(", "));
    (!differing.is_empty()).then_some(report)
}

/// Pages whose file differs or is missing, and files without a page.
fn differing(pages: &[Page]) -> Vec<String> {
    let is_current = |page: &&Page| {
        fs::read_to_string(folder().join(&page.file)).is_ok_and(|text| text == page.content(COMMAND))
    };
    let mut differing: Vec<String> =
        pages.iter().filter(|page| !is_current(page)).map(|page| page.file.clone()).collect();
    let files = fs::read_dir(folder()).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let files = files.map(|name| name.into_string().unwrap());
    differing.extend(files.filter(|file| pages.iter().all(|page| page.file != *file)));
    differing.sort();
    differing
}

/// Problems of layout: pages that are too long and table cells that are too wide.
///
/// # Panics
/// If a page cannot be made.
#[must_use]
pub fn layout_problems() -> Vec<String> {
    pages().iter().flat_map(Page::problems).collect()
}
