//! `portico migrate`: moves a store from one database to another while it is served.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_server::data::{
    self, CopySource, CopyTarget, DataError, EtcdSource, EtcdSwitch, EtcdTarget, Extent, Migrated, Migration,
    MigrationStep, OpenError, OwnedStore, PostgresSource, PostgresSwitch, PostgresTarget, SqliteSource,
    SqliteTarget, WriteSwitch,
};
use portico_server::{EtcdSettings, PostgresSettings};

use super::backup::content;
use super::failure::Failure;
use super::place::{postgres, read, with_password};
use super::remote::Remote;
use super::serving;
use crate::etcd_flags::{self, EtcdFiles};

/// How often progress is told.
const TOLD: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(super) struct Migrate {
    /// The database that is moved: `sqlite://DATA_DIR`, `postgres://...` or `etcd://HOST:PORT,HOST:PORT/PREFIX` (`etcds://` with TLS).
    /// It may be served; its control services refuse writes from the end of the move on. Stop every kube-apiserver first.
    #[arg(long, value_name = "URL", value_parser = address)]
    from: Address,
    /// Where it goes, which no server has open. Into etcd, and out of one that has given one revision to several objects, the store
    /// begins a new epoch: watches and versions of before end with 410.
    #[arg(long, value_name = "URL", value_parser = address, required_unless_present = "resume_writes")]
    to: Option<Address>,
    /// Move nothing: have --from take writes again, after a move that was killed before its end. Not once --to is served.
    #[arg(long, conflicts_with = "to")]
    resume_writes: bool,
    /// Leave behind the past states that --history-retention keeps longer.
    #[arg(long)]
    without_history: bool,
    /// The kubeconfig of the control service that serves --from, where that is a SQLite file; DATA_DIR/admin.kubeconfig if it is not
    /// given.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of --kubeconfig.
    #[arg(long, default_value = "control")]
    context: String,
    /// The password for --from, from a file.
    #[arg(long, value_name = "FILE")]
    from_password_file: Option<PathBuf>,
    /// The password for --to, from a file.
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
    /// What values are sealed with, where --from or --to is an etcd: they are sealed anew, as the other one keeps them.
    #[arg(long, value_name = "FILE", env = "PORTICO_ENCRYPTION_PROVIDER_CONFIG")]
    encryption_provider_config: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdFiles,
    /// Replace what is at --to, and move an etcd though a kube-apiserver has written to it just now.
    #[arg(long)]
    force: bool,
}

/// A database.
#[derive(Clone, Debug)]
enum Address {
    Sqlite(PathBuf),
    Postgres(Box<PostgresSettings>),
    Etcd(Box<EtcdSettings>),
}

fn address(url: &str) -> Result<Address, String> {
    if let Some(settings) = etcd_flags::of_url(url)? {
        return Ok(Address::Etcd(Box::new(settings)));
    }
    match url.strip_prefix("sqlite://") {
        Some("") => Err("a path is missing".to_owned()),
        Some(path) => Ok(Address::Sqlite(PathBuf::from(path))),
        None if ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) => {
            postgres(url).map(|settings| Address::Postgres(Box::new(settings)))
        }
        None => Err("it must begin with sqlite://, postgres:// or etcd://".to_owned()),
    }
}

/// What is moved, and what stops its writes.
struct From {
    source: Arc<dyn CopySource>,
    switch: Arc<dyn WriteSwitch>,
    /// Let go of in the end.
    owned: Option<OwnedStore>,
}

pub(super) async fn run(verb: &Migrate) -> Result<String, Failure> {
    let from = open(verb).await?;
    let ended = match &verb.to {
        Some(to) => move_to(verb, to, &from).await.map(told_of),
        None => resume(&from).await,
    };
    if let Some(owned) = from.owned {
        owned.close().await;
    }
    ended
}

async fn resume(from: &From) -> Result<String, Failure> {
    let revision = from.switch.set_read_only(None).await?;
    Ok(format!("writes are taken from revision {revision} on"))
}

fn told_of(moved: Migrated) -> String {
    let Migrated { extent, is_new_epoch, objects, changes, past, left_behind, stopped, kept } = moved;
    let (identity, revision) = (extent.identity, extent.revision);
    let content = content(objects, (past > 0).then_some(past));
    let mut text = format!(
        "moved: store {}, epoch {}, revision {revision}, {content} and {changes} changes; writes were refused for {} ms\n\
         start the control service on the new database; the old one takes no writes any more",
        identity.store_id,
        identity.epoch,
        stopped.as_millis()
    );
    if is_new_epoch {
        text.push_str("\nrevisions could not be kept: watches and versions of before end with 410");
    }
    if left_behind {
        text.push_str(
            "\nthe past states that --history-retention had kept were left behind: etcd has only its own history",
        );
    }
    if let Some(kept) = kept {
        text.push_str(&format!("\nthe database that was there before is {kept}"));
    }
    text
}

async fn move_to(verb: &Migrate, to: &Address, from: &From) -> Result<Migrated, Failure> {
    let extent = from.source.extent().await?;
    let (target, place) = target(verb, to, &extent).await?;
    // Clients are told: they need not know where.
    let reason = format!("it was moved to {place}");
    let history = !verb.without_history;
    let migration = Migration { source: &*from.source, switch: &*from.switch, reason: &reason, history };
    let mut told = None;
    Ok(data::migrate(&migration, target, &mut |step| tell(step, &mut told)).await?)
}

async fn target(
    verb: &Migrate,
    to: &Address,
    from: &Extent,
) -> Result<(Box<dyn CopyTarget>, &'static str), Failure> {
    Ok(match to {
        Address::Sqlite(path) => {
            let database = data::database_in(path);
            let target = SqliteTarget::open(&database, &from.identity.store_id, verb.force).await?;
            (Box::new(target), "a SQLite file")
        }
        Address::Postgres(settings) => {
            let file = verb.to_password_file.as_deref();
            let settings = with_password(settings.as_ref().clone(), "--to-password-file", file)?;
            (Box::new(PostgresTarget::open(settings, verb.force).await?), "a PostgreSQL database")
        }
        Address::Etcd(settings) => {
            let settings = verb.etcd.add_to(settings.as_ref().clone(), read)?;
            let known = data::known(verb.encryption_provider_config.as_deref()).await?;
            serving::refuse_into(&settings, &known, verb.force).await?;
            (Box::new(EtcdTarget::open(&settings, known, from.revision, verb.force).await?), "an etcd")
        }
    })
}

async fn open(verb: &Migrate) -> Result<From, Failure> {
    let opener = || data::opener(verb.encryption_provider_config.as_deref());
    let folder = match &verb.from {
        Address::Sqlite(folder) => folder,
        Address::Etcd(settings) => return of_etcd(verb, settings).await,
        Address::Postgres(settings) => {
            let file = verb.from_password_file.as_deref();
            let settings = with_password(settings.as_ref().clone(), "--from-password-file", file)?;
            let source = PostgresSource::open(settings.clone(), opener()?).await?;
            return Ok(From {
                source: Arc::new(source),
                switch: Arc::new(PostgresSwitch(settings)),
                owned: None,
            });
        }
    };
    let database = data::database_in(folder);
    match OwnedStore::open(&database, opener()?).await {
        Ok(owned) => {
            Ok(From { source: owned.source(), switch: Arc::new(owned.switch()), owned: Some(owned) })
        }
        Err(DataError::Open(OpenError::InUse { .. })) => served(verb, &database).await,
        Err(error) => Err(error.into()),
    }
}

/// Of an etcd, whoever serves it.
async fn of_etcd(verb: &Migrate, settings: &EtcdSettings) -> Result<From, Failure> {
    let settings = verb.etcd.add_to(settings.clone(), read)?;
    let known = data::known(verb.encryption_provider_config.as_deref()).await?;
    let source = Arc::new(EtcdSource::open(&settings, known.clone()).await?);
    if !verb.force && !verb.resume_writes {
        serving::refuse_from(&source, &settings.place()).await?;
    }
    let switch = Arc::new(EtcdSwitch::open(&settings, known).await?);
    Ok(From { source, switch, owned: None })
}

/// By the control service that has the file open.
async fn served(verb: &Migrate, database: &Path) -> Result<From, Failure> {
    let kubeconfig = verb.kubeconfig.clone().unwrap_or_else(|| database.with_file_name("admin.kubeconfig"));
    let remote = Arc::new(Remote::new(&kubeconfig, &verb.context)?);
    let there = SqliteSource::open(database, data::opener(None)?).await?.extent().await?.identity;
    let found = remote.extent().await?.identity;
    if found != there {
        return Err(Failure::Asked(format!(
            "the control service of {} serves store {}, epoch {}; {} is store {}, epoch {}",
            kubeconfig.display(),
            found.store_id,
            found.epoch,
            database.display(),
            there.store_id,
            there.epoch
        )));
    }
    Ok(From { source: remote.clone(), switch: remote, owned: None })
}

/// Tells how far it is, not too often.
fn tell(step: MigrationStep, told: &mut Option<Instant>) {
    let is_late = told.is_none_or(|at| at.elapsed() >= TOLD);
    let text = match step {
        MigrationStep::Copied { objects, bytes } if is_late => {
            format!("copied {objects} objects, {bytes} bytes")
        }
        MigrationStep::Archived { states } if is_late => format!("copied {states} past states"),
        MigrationStep::Followed { changes, behind } if is_late || behind == 0 => {
            format!("taken up {changes} changes, {behind} revisions behind")
        }
        MigrationStep::Stopped { revision } => format!("writes are stopped at revision {revision}"),
        _ => return,
    };
    *told = Some(Instant::now());
    // Nobody may be left to be told.
    let _ = writeln!(io::stderr(), "{text}");
}
