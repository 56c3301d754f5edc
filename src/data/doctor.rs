//! `portico doctor`: what is wrong with a database, what can be saved of it, and removing what cannot be read.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;
use clap::parser::ValueSource;
use portico_gostd::os::error_text;
use portico_kit::platform::OpenOptionsExt;
use portico_machinery::effective_version::KUBERNETES;
use portico_machinery::expiration::Evaluator;
use portico_server::data::{DataError, DataFolder, Exported};

use super::place::conflict;
use crate::ending::fail_with;

/// Something is wrong, or still is.
const FOUND: u8 = 1;
/// It could not be examined.
const FAILED: u8 = 2;

#[derive(Debug, clap::Args)]
pub(super) struct Doctor {
    /// The folder of the database; --data-dir names it as well.
    #[arg(value_name = "DATA_DIR")]
    folder: Option<PathBuf>,
    /// The folder of the database.
    #[arg(long, value_name = "DIR", default_value = "./portico-data", env = "PORTICO_DATA_DIR")]
    data_dir: PathBuf,
    /// Write every object that can be read into a new file, one line of JSON each, Secrets included; - writes to standard
    /// output, and findings to standard error.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Remove the objects that cannot be read, and all past states: a new epoch begins. The database must not be served.
    #[arg(long)]
    remove_unreadable: bool,
    /// What values are sealed with, as the server was given it. Without it those that are count as they stand, are left out of
    /// an export, and are never removed.
    #[arg(long, value_name = "FILE", env = "PORTICO_ENCRYPTION_PROVIDER_CONFIG")]
    encryption_provider_config: Option<PathBuf>,
}

/// Why it could not be examined; one line for people.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("--export {}: {}", path.display(), error_text(error))]
    Export { path: PathBuf, error: io::Error },
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
}

impl Doctor {
    /// The folder that the command line names; the variable counts where it names none.
    fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(&self.data_dir)
    }

    /// Refuses a command line that names two folders.
    pub(super) fn check(&self, matches: &ArgMatches) -> Result<(), clap::Error> {
        match self.folder.is_some() && matches.value_source("data_dir") == Some(ValueSource::CommandLine) {
            true => Err(conflict("DATA_DIR", "--data-dir")),
            false => Ok(()),
        }
    }
}

pub(super) async fn run(verb: &Doctor) -> ExitCode {
    match examine(verb).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FOUND),
        Err(failure) => fail_with(&format!("doctor: {failure}"), FAILED),
    }
}

/// Whether the database is sound in the end.
async fn examine(verb: &Doctor) -> Result<bool, Failure> {
    let mut folder = DataFolder::new(verb.folder(), &Evaluator::new(KUBERNETES))?;
    if let Some(file) = &verb.encryption_provider_config {
        folder = folder.opening_with(file)?;
    }
    let to_stdout = verb.export.as_deref() == Some(Path::new("-"));
    let mut out: Box<dyn Write> = if to_stdout { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    let mut examined = folder.examine().await?;
    for finding in &examined.findings {
        writeln!(out, "{finding}")?;
    }
    let mut is_whole = true;
    if let Some(path) = &verb.export {
        let Exported { objects, end } = export(&folder, path).await?;
        writeln!(out, "exported {objects} objects, left out {} that cannot be read", end.left_out)?;
        if let Some(damage) = end.damage {
            let lost = end.lost;
            writeln!(
                out,
                "the file is damaged ({damage}): {lost} objects are known to be lost, there may be more"
            )?;
            is_whole = false;
        }
    }
    if verb.remove_unreadable {
        for object in folder.remove_unreadable().await? {
            writeln!(out, "removed {} of revision {}", object.key(), object.revision())?;
        }
        examined = folder.examine().await?;
        for finding in &examined.findings {
            writeln!(out, "left: {finding}")?;
        }
    }
    if examined.sealed > 0 {
        writeln!(out, "{} states are sealed and were not looked into", examined.sealed)?;
    }
    let is_sound = examined.is_sound() && is_whole;
    let sound = if is_sound { "sound" } else { "something is wrong" };
    writeln!(
        out,
        "{sound}: revision {}, {} objects, {} states",
        examined.revision, examined.objects, examined.states
    )?;
    Ok(is_sound)
}

async fn export(folder: &DataFolder, path: &Path) -> Result<Exported, Failure> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout());
        let exported = folder.export(&mut out).await?;
        out.flush()?;
        return Ok(exported);
    }
    let failed = |error| Failure::Export { path: path.to_owned(), error };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let exported = folder.export(&mut out).await?;
    out.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    Ok(exported)
}
