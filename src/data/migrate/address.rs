//! Addresses of the databases that `portico migrate` moves data from and to.

use std::path::{Path, PathBuf};

use portico_server::{EtcdSettings, PostgresSettings};

use crate::data::failure::Failure;
use crate::data::location::{
    DataLocation, ETCD_FILES, LocationArgs, SERVER, two_locations_error, with_password,
};
use crate::{etcd_flags, postgres_flags};

/// Database that a URL names.
#[derive(Clone, Debug)]
pub(super) enum Address {
    Sqlite(PathBuf),
    Postgres(Box<PostgresSettings>),
    Etcd(Box<EtcdSettings>),
}

pub(super) fn parse(url: &str) -> Result<Address, String> {
    if let Some(settings) = etcd_flags::from_url(url)? {
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

/// Returns the database to move: `from`, with the password in a file, or else the location. Accepts the TLS flags for etcd if `to` is
/// an etcd.
pub(super) fn source_of(
    from: Option<&Address>,
    password_file: Option<&Path>,
    to: Option<&Address>,
    location: &LocationArgs,
) -> Result<Address, Failure> {
    let of_target: &[&str] = if matches!(to, Some(Address::Etcd(_))) { &ETCD_FILES } else { &[] };
    let Some(from) = from else {
        return match location.location_or_server(of_target)? {
            DataLocation::Folder(folder) => Ok(Address::Sqlite(folder.to_owned())),
            DataLocation::Postgres(settings) => Ok(Address::Postgres(settings)),
            DataLocation::Etcd(settings) => Ok(Address::Etcd(Box::new(settings))),
            DataLocation::Server(_) => Err(Failure::Hinted(
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
    if let Some(flag) = location.selecting_flag().filter(|flag| !of_source.contains(flag)) {
        return Err(two_locations_error("--from", flag));
    }
    location.refuse_unused("", &[of_source, of_target].concat())?;
    Ok(match from {
        Address::Sqlite(folder) => Address::Sqlite(folder.clone()),
        Address::Postgres(settings) => {
            let settings = with_password(settings.as_ref().clone(), "--from-password-file", password_file)?;
            Address::Postgres(Box::new(settings))
        }
        Address::Etcd(settings) => {
            Address::Etcd(Box::new(location.with_etcd_files(settings.as_ref().clone())?))
        }
    })
}
