//! The databases that `portico migrate` moves from and to.

use std::path::PathBuf;

use portico_server::{EtcdSettings, PostgresSettings};

use super::Migrate;
use crate::data::failure::Failure;
use crate::data::location::{ETCD_FILES, Place, SERVER, two_places, with_password};
use crate::{etcd_flags, postgres_flags};

/// A database in a URL.
#[derive(Clone, Debug)]
pub(super) enum Address {
    Sqlite(PathBuf),
    Postgres(Box<PostgresSettings>),
    Etcd(Box<EtcdSettings>),
}

pub(super) fn parse(url: &str) -> Result<Address, String> {
    if let Some(settings) = etcd_flags::of_url(url)? {
        return Ok(Address::Etcd(Box::new(settings)));
    }
    match url.strip_prefix("sqlite://") {
        Some("") => Err("the path is missing".to_owned()),
        Some(path) => Ok(Address::Sqlite(PathBuf::from(path))),
        None if ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) => {
            postgres_flags::url(url).map(|settings| Address::Postgres(Box::new(settings)))
        }
        None => Err("must begin with sqlite://, postgres:// or etcd://".to_owned()),
    }
}

/// The database to move: `--from`, or the location.
pub(super) fn source_of(verb: &Migrate) -> Result<Address, Failure> {
    refuse_unused_passwords(verb)?;
    let of_target: &[&str] = if matches!(verb.to, Some(Address::Etcd(_))) { &ETCD_FILES } else { &[] };
    let Some(from) = &verb.from else {
        return match verb.location.place_of_data(of_target)? {
            Place::Folder(folder) => Ok(Address::Sqlite(folder.to_owned())),
            Place::Postgres(settings) => Ok(Address::Postgres(settings)),
            Place::Etcd(settings) => Ok(Address::Etcd(Box::new(settings))),
            Place::Server(_) => Err(Failure::Hinted(
                "a move needs access to the database itself".to_owned(),
                "name it: --data-dir, --database-url or --etcd-servers",
            )),
        };
    };
    let of_source: &[&str] = match from {
        Address::Sqlite(_) => &SERVER,
        Address::Postgres(_) => &[],
        Address::Etcd(_) => &ETCD_FILES,
    };
    if let Some(flag) = verb.location.name().filter(|flag| !of_source.contains(flag)) {
        return Err(two_places("--from", flag));
    }
    verb.location.refuse_unused("", &[of_source, of_target].concat())?;
    Ok(match from {
        Address::Sqlite(folder) => Address::Sqlite(folder.clone()),
        Address::Postgres(settings) => {
            let file = verb.from_password_file.as_deref();
            let settings = with_password(settings.as_ref().clone(), "--from-password-file", file)?;
            Address::Postgres(Box::new(settings))
        }
        Address::Etcd(settings) => {
            Address::Etcd(Box::new(verb.location.with_etcd_files(settings.as_ref().clone())?))
        }
    })
}

/// Refuses a file with the password of a database that is not PostgreSQL.
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
