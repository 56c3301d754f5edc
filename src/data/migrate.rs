//! `portico migrate`: moves a store from one database to another while the server runs.

mod address;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_server::EtcdSettings;
use portico_server::data::{
    self, CopySource, CopyTarget, DataError, EtcdSource, EtcdSwitch, EtcdTarget, ExclusiveStore, Migration,
    MigrationStep, MigrationSummary, OpenError, PostgresSource, PostgresSwitch, PostgresTarget, SqliteSource,
    SqliteTarget, StoreExtent, WriteSwitch,
};

use super::backup::describe_content;
use super::etcd_servers;
use super::failure::Failure;
use super::location::{LocationArgs, with_password};
use super::remote::RemoteStore;
use crate::connection_flags::ADMIN_KUBECONFIG;
use address::{Address, source_of};

/// Minimum interval between progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Migrate {
    #[arg(long, value_name = "URL", value_parser = address::parse, hide = true)]
    from: Option<Address>,
    /// Database to move to: `sqlite://DATA_DIR`, `postgres://USER@HOST:PORT/DATABASE`, `etcd://HOST:PORT,HOST:PORT/PREFIX` (`etcds://`: TLS)
    ///
    /// No server may have this database open.
    #[arg(long, value_name = "URL", value_parser = address::parse, required_unless_present = "resume_writes")]
    to: Option<Address>,
    /// Only make the old database writable again after a killed move; never use this once a server uses the new database
    #[arg(long, conflicts_with_all = ["to", "without_history", "force"])]
    resume_writes: bool,
    /// Leave out past states that --history-retention keeps
    #[arg(long)]
    without_history: bool,
    #[arg(long, value_name = "FILE", hide = true)]
    from_password_file: Option<PathBuf>,
    /// File with the password for a PostgreSQL database in --to
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
    /// Replace existing data at --to, and move an etcd even if a kube-apiserver recently wrote to it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    location: LocationArgs,
}

/// Source of a move, and the switch that stops writes to it.
struct MigrationSource {
    source: Arc<dyn CopySource>,
    switch: Arc<dyn WriteSwitch>,
    /// Store to close at the end, if no server has the database open.
    owned: Option<ExclusiveStore>,
}

pub(super) async fn run(verb: &Migrate) -> Result<String, Failure> {
    let from = open(verb).await?;
    let result = match &verb.to {
        Some(to) => move_to(verb, to, &from).await.map(summary),
        None => resume(&from).await,
    };
    if let Some(owned) = from.owned {
        owned.close().await;
    }
    result
}

async fn resume(from: &MigrationSource) -> Result<String, Failure> {
    let revision = from.switch.set_read_only(None).await?;
    Ok(format!("the database accepts writes again, from revision {revision} on"))
}

fn summary(moved: MigrationSummary) -> String {
    let MigrationSummary {
        extent,
        is_new_epoch,
        objects,
        changes,
        past_states,
        history_skipped,
        write_downtime,
        saved_to,
    } = moved;
    let (identity, revision) = (extent.identity, extent.revision);
    let content = describe_content(objects, (past_states > 0).then_some(past_states));
    let mut text = format!(
        "moved: store {}, epoch {}, revision {revision}, {content} and {changes} changes; writes were refused for {} ms\n\
         start the control service on the new database; the old one refuses writes",
        identity.store_id,
        identity.epoch,
        write_downtime.as_millis()
    );
    if is_new_epoch {
        text.push_str("\nrevisions could not be kept: clients that watch get 410 and list again");
    }
    if history_skipped {
        text.push_str(
            "\nthe past states that --history-retention kept were left out: etcd keeps only its own history",
        );
    }
    if let Some(location) = saved_to {
        text.push_str(&format!("\nthe previous database is now {location}"));
    }
    text
}

async fn move_to(verb: &Migrate, to: &Address, from: &MigrationSource) -> Result<MigrationSummary, Failure> {
    let extent = from.source.extent().await?;
    let (target, engine) = target(verb, to, &extent).await?;
    // The reason is shown to clients, so it does not contain the address.
    let reason = format!("it was moved to {engine}");
    let history = !verb.without_history;
    let migration = Migration { source: &*from.source, switch: &*from.switch, reason: &reason, history };
    let mut last_report = None;
    Ok(data::migrate(&migration, target, &mut |step| report(step, &mut last_report)).await?)
}

async fn target(
    verb: &Migrate,
    to: &Address,
    from: &StoreExtent,
) -> Result<(Box<dyn CopyTarget>, &'static str), Failure> {
    Ok(match to {
        Address::Sqlite(path) => {
            let database = data::resolve_database(path);
            let target = SqliteTarget::open(&database, &from.identity.store_id, verb.force).await?;
            (Box::new(target), "a SQLite file")
        }
        Address::Postgres(settings) => {
            let file = verb.to_password_file.as_deref();
            let settings = with_password(settings.as_ref().clone(), "--to-password-file", file)?;
            (Box::new(PostgresTarget::open(settings, verb.force).await?), "a PostgreSQL database")
        }
        Address::Etcd(settings) => {
            let settings = verb.location.with_etcd_files(settings.as_ref().clone())?;
            let format = data::etcd_format(verb.location.encryption()).await?;
            etcd_servers::refuse_served_target(&settings, &format, verb.force).await?;
            (Box::new(EtcdTarget::open(&settings, format, from.revision, verb.force).await?), "an etcd")
        }
    })
}

async fn open(verb: &Migrate) -> Result<MigrationSource, Failure> {
    refuse_unused_passwords(verb)?;
    let opener = || data::load_seal(verb.location.encryption());
    let password_file = verb.from_password_file.as_deref();
    let folder = match source_of(verb.from.as_ref(), password_file, verb.to.as_ref(), &verb.location)? {
        Address::Sqlite(folder) => folder,
        Address::Etcd(settings) => return open_etcd(verb, &settings).await,
        Address::Postgres(settings) => {
            let source = PostgresSource::open((*settings).clone(), opener()?).await?;
            let (source, switch) = (Arc::new(source), Arc::new(PostgresSwitch(*settings)));
            return Ok(MigrationSource { source, switch, owned: None });
        }
    };
    let database = data::resolve_database(&folder);
    match ExclusiveStore::open(&database, opener()?).await {
        Ok(owned) => Ok(MigrationSource {
            source: owned.source(),
            switch: Arc::new(owned.switch()),
            owned: Some(owned),
        }),
        Err(DataError::Open(OpenError::InUse { .. })) => open_served(verb, &database).await,
        Err(error) => Err(error.into()),
    }
}

/// Opens an etcd as the source, with or without running servers.
async fn open_etcd(verb: &Migrate, settings: &EtcdSettings) -> Result<MigrationSource, Failure> {
    let format = data::etcd_format(verb.location.encryption()).await?;
    let source = Arc::new(EtcdSource::open(settings, format.clone()).await?);
    if !verb.force && !verb.resume_writes {
        etcd_servers::refuse_served_source(&source, &settings.place()).await?;
    }
    let switch = Arc::new(EtcdSwitch::open(settings, format).await?);
    Ok(MigrationSource { source, switch, owned: None })
}

/// Opens the source through the control service that has the SQLite file open.
async fn open_served(verb: &Migrate, database: &Path) -> Result<MigrationSource, Failure> {
    let default_kubeconfig = database.with_file_name(ADMIN_KUBECONFIG);
    let kubeconfig = verb.location.kubeconfig().unwrap_or(&default_kubeconfig);
    let remote = Arc::new(RemoteStore::new(&verb.location.server(kubeconfig))?);
    let file_identity = SqliteSource::open(database, data::load_seal(None)?).await?.extent().await?.identity;
    let served_identity = remote.extent().await?.identity;
    if served_identity != file_identity {
        return Err(Failure::OtherStore(format!(
            "the control service of {} serves store {}, epoch {}; {} is store {}, epoch {}",
            kubeconfig.display(),
            served_identity.store_id,
            served_identity.epoch,
            database.display(),
            file_identity.store_id,
            file_identity.epoch
        )));
    }
    Ok(MigrationSource { source: remote.clone(), switch: remote, owned: None })
}

/// Prints progress to standard error, at most once per [`PROGRESS_INTERVAL`].
fn report(step: MigrationStep, last: &mut Option<Instant>) {
    let is_due = last.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL);
    let text = match step {
        MigrationStep::Copied { objects, bytes } if is_due => {
            format!("copied {objects} objects, {bytes} bytes")
        }
        MigrationStep::Archived { states } if is_due => format!("copied {states} past states"),
        MigrationStep::Followed { changes, lag } if is_due || lag == 0 => {
            format!("applied {changes} changes, {lag} revisions behind")
        }
        MigrationStep::Stopped { revision } => format!("writes are stopped at revision {revision}"),
        _ => return,
    };
    *last = Some(Instant::now());
    // The move continues if standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Refuses a password file for a database that is not PostgreSQL.
fn refuse_unused_passwords(verb: &Migrate) -> Result<(), Failure> {
    let files = [
        ("--from-password-file", &verb.from_password_file, "--from", &verb.from),
        ("--to-password-file", &verb.to_password_file, "--to", &verb.to),
    ];
    for (flag, file, name, address) in files {
        if file.is_some() && !matches!(address, Some(Address::Postgres(_))) {
            return Err(Failure::Usage(format!("{flag} requires {name} postgres://...")));
        }
    }
    Ok(())
}
