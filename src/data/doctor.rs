//! `portico doctor`: examines a SQLite database. Flags let it also export readable objects and remove unreadable objects.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portico_gostd::os::error_text;
use portico_kit::platform::OpenOptionsExt;
use portico_machinery::effective_version::KUBERNETES;
use portico_machinery::expiration::ExpirationEvaluator;
use portico_server::data::{DataError, DataFolder, ExportResult};

use super::failure::{Failure as LocationFailure, NAME_DATA};
use super::location::{DataLocation, LocationArgs, two_locations_error};
use crate::exit::{fail_with_hint, is_closed_pipe};
use crate::exit_codes;

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[arg(value_name = "DATA_DIR", hide = true)]
    folder: Option<PathBuf>,
    /// Write all readable objects, including Secrets, into a new file, one JSON object per line; - writes to standard output
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Remove unreadable objects, and past states that no rule of --history-retention keeps; no server may use the database
    ///
    /// Begins a new epoch: clients with watches get status 410 and list again.
    #[arg(long)]
    remove_unreadable: bool,
    #[command(flatten)]
    location: LocationArgs,
}

/// Error of `portico doctor`. The message is one line.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Location(#[from] LocationFailure),
    #[error("--export {}: {}", path.display(), error_text(error))]
    Export { path: PathBuf, error: io::Error },
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
}

impl Failure {
    /// Returns the hint to print below the message, if the error has one.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Location(failure) => failure.hint(),
            Self::Data(DataError::Missing(_)) => Some(NAME_DATA),
            _ => None,
        }
    }

    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if is_closed_pipe(error))
    }
}

impl Doctor {
    /// Returns the data folder, or an error for other locations: only SQLite databases can be examined.
    fn folder(&self) -> Result<&Path, LocationFailure> {
        match (&self.folder, self.location.selecting_flag()) {
            (Some(_), Some(flag)) => return Err(two_locations_error("DATA_DIR", flag)),
            (Some(folder), None) => return self.location.refuse_unused("", &[]).map(|()| folder.as_path()),
            (None, _) => {}
        }
        let (problem, hint) = match self.location.location()? {
            DataLocation::Folder(folder) => return Ok(folder),
            DataLocation::Server(_) => (
                "the files of a running control service are not accessible through its API",
                "run doctor with --data-dir DIR on the machine of the server",
            ),
            DataLocation::Postgres(_) => {
                ("only SQLite databases can be examined", "PostgreSQL's pg_amcheck examines its databases")
            }
            DataLocation::Etcd(_) => (
                "only SQLite databases can be examined",
                "`etcdctl endpoint health` and `etcdutl` examine an etcd",
            ),
        };
        Err(LocationFailure::Hinted(problem.to_owned(), hint))
    }
}

pub(super) async fn run(verb: &Doctor) -> ExitCode {
    match examine(verb).await {
        Ok(true) => ExitCode::from(exit_codes::SUCCESS),
        Ok(false) => ExitCode::from(exit_codes::FOUND),
        Err(failure) if failure.is_closed_pipe() => ExitCode::from(exit_codes::NOT_EXAMINED),
        Err(failure) => {
            fail_with_hint(&format!("doctor: {failure}"), failure.hint(), exit_codes::NOT_EXAMINED)
        }
    }
}

/// Examines the database, and returns true if it is sound.
async fn examine(verb: &Doctor) -> Result<bool, Failure> {
    let mut folder = DataFolder::new(verb.folder()?, &ExpirationEvaluator::new(KUBERNETES))?;
    if let Some(file) = verb.location.encryption() {
        folder = folder.with_encryption_config(file)?;
    }
    let to_stdout = verb.export.as_deref() == Some(Path::new("-"));
    let mut out: Box<dyn Write> = if to_stdout { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    let mut examined = folder.examine().await?;
    for finding in &examined.findings {
        writeln!(out, "{finding}")?;
    }
    let mut is_complete = true;
    if let Some(path) = &verb.export {
        let ExportResult { objects, end } = export(&folder, path).await?;
        writeln!(out, "exported {objects} objects, skipped {} that cannot be read", end.unreadable)?;
        if let Some(damage) = end.damage {
            let lost = end.lost;
            writeln!(out, "the file is damaged ({damage}): at least {lost} objects are lost")?;
            is_complete = false;
        }
    }
    if verb.remove_unreadable {
        for object in folder.remove_unreadable().await? {
            writeln!(out, "removed {} of revision {}", object.key(), object.revision())?;
        }
        examined = folder.examine().await?;
        for finding in &examined.findings {
            writeln!(out, "remaining: {finding}")?;
        }
    }
    if examined.sealed > 0 {
        writeln!(out, "{} states are encrypted and were not examined", examined.sealed)?;
    }
    let is_sound = examined.is_sound() && is_complete;
    let sound = if is_sound { "sound" } else { "problems found" };
    writeln!(
        out,
        "{sound}: revision {}, {} objects, {} states",
        examined.revision, examined.objects, examined.states
    )?;
    Ok(is_sound)
}

async fn export(folder: &DataFolder, path: &Path) -> Result<ExportResult, Failure> {
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
