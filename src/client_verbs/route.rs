//! `portico route try`: one request through a facade, with all stages and their times.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Subcommand;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::facade::{Asked, Facade, ROUTE_TRY};
use super::failure::Failure;
use super::outcome::Ending;
use super::output::{self, Format};
use super::stages::state;
use super::table::{Cell, Table};
use crate::documents;

/// Look at the way of one request
#[derive(Debug, clap::Args)]
pub(super) struct Route {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Try(Try),
}

/// Take one request through a facade and show each stage: who asks, whether they may, where it goes, how long it takes
///
/// What reads is sent. What writes goes as far as a connection to the backend and is not sent, unless --send is given. Who asks needs
/// the verb get on the path /portico/route-try. Exit code 0: it is answered well, or could be sent; 1: it is not; 2: not tried.
#[derive(Debug, clap::Args)]
struct Try {
    /// The path, with its query.
    path: String,
    /// The method.
    #[arg(long, short = 'X', default_value = "GET")]
    method: Method,
    /// As this user.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// As a member of this group, which may be given several times.
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,
    /// With this uid.
    #[arg(long = "as-uid", value_name = "UID")]
    uid: Option<String>,
    /// Send what writes, too.
    #[arg(long)]
    send: bool,
    /// The body: one document, YAML or JSON; - reads what is piped in.
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    body: Option<PathBuf>,
    /// The media type of the body, if it is another than that of the file.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// How it is printed.
    #[arg(long, short, value_parser = Format::without_names(), default_value = "table")]
    output: Format,
    #[command(flatten)]
    facade: Facade,
}

/// What a facade says of the walk.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Walk {
    method: String,
    path: String,
    sent: bool,
    ok: bool,
    code: Option<u16>,
    message: String,
    bytes: u64,
    whole_ms: f64,
    stages: Vec<Stage>,
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stage {
    stage: String,
    ok: bool,
    message: String,
    at_ms: f64,
    took_ms: f64,
}

#[derive(Deserialize)]
struct Endpoint {
    endpoint: String,
    state: String,
    message: String,
}

/// Runs what follows `route`.
pub(super) async fn run(route: &Route) -> Result<Ending, Failure> {
    let Verb::Try(tried) = &route.verb;
    tried.run().await
}

impl Try {
    async fn run(&self) -> Result<Ending, Failure> {
        if !self.path.starts_with('/') {
            return Err(Failure::Usage(format!("{:?} is no path: it must begin with a slash", self.path)));
        }
        let client = self.facade.client()?;
        let reads = matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if !reads {
            // A server that does not know the header would carry the request out.
            client.check_walks().await?;
        }
        let asked = self.asked()?;
        let json = client.walk(asked).await?;
        let walk: Walk = serde_json::from_slice(&json)?;
        match self.output {
            Format::Json | Format::Yaml => output::document(&json, self.output)?,
            format => walk.print(format == Format::Wide)?,
        }
        Ok(if walk.ok { Ending::Well } else { Ending::NotSo })
    }

    fn asked(&self) -> Result<Asked, Failure> {
        let (body, media_type) = self.read_body()?;
        let mut headers = HeaderMap::new();
        let how = if self.send { "send" } else { "walk" };
        headers.insert(ROUTE_TRY, HeaderValue::from_static(how));
        if let Some(media_type) = self.content_type.as_deref().or(media_type) {
            append(&mut headers, CONTENT_TYPE, media_type)?;
        }
        let user = HeaderName::from_static("impersonate-user");
        let (group, uid) =
            (HeaderName::from_static("impersonate-group"), HeaderName::from_static("impersonate-uid"));
        if self.user.is_none() && (!self.groups.is_empty() || self.uid.is_some()) {
            return Err(Failure::Usage("--as-group and --as-uid need --as".to_owned()));
        }
        let named = self.user.iter().map(|value| (&user, value));
        let members = self.groups.iter().map(|value| (&group, value));
        for (name, value) in named.chain(members).chain(self.uid.iter().map(|value| (&uid, value))) {
            append(&mut headers, name.clone(), value)?;
        }
        Ok(Asked { method: self.method.clone(), path: self.path.clone(), headers, body })
    }

    fn read_body(&self) -> Result<(Bytes, Option<&'static str>), Failure> {
        let Some(file) = &self.body else { return Ok((Bytes::new(), None)) };
        let mut documents = documents::read(std::slice::from_ref(file))?.into_iter();
        match (documents.next(), documents.next()) {
            (Some(document), None) => Ok((document.manifest.into(), Some(document.media_type))),
            _ => Err(Failure::Usage(format!("{} must be one document", file.display()))),
        }
    }
}

fn append(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Failure> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| Failure::Usage(format!("{value:?} cannot be sent as a header")))?;
    headers.append(name, value);
    Ok(())
}

impl Walk {
    fn print(&self, wide: bool) -> Result<(), Failure> {
        output::lines([self.summary()])?;
        let mut table = Table::new(&["stage", "state", "ms", "what"]);
        if wide {
            table.headers.insert(3, "at ms".to_owned());
        }
        table.rows = self.stages.iter().map(|stage| stage.row(wide)).collect();
        output::lines(table.lines(None))?;
        if self.endpoints.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&["address", "state", "why"]);
        table.rows = self.endpoints.iter().map(Endpoint::row).collect();
        Ok(output::lines(std::iter::once(String::new()).chain(table.lines(None)))?)
    }

    fn summary(&self) -> String {
        let Self { method, path, whole_ms, bytes, .. } = self;
        let failed = self.stages.iter().rev().find(|stage| !stage.ok);
        match (self.ok, self.code, failed) {
            (true, _, _) if !self.sent => format!("{method} {path} could be sent, and was not"),
            (true, Some(code), _) => format!("{method} {path}: {code} after {whole_ms} ms, {bytes} bytes"),
            (_, Some(code), Some(stage)) => {
                format!("{method} {path} fails at {} with {code}: {}", stage.stage, self.message)
            }
            (_, code, _) => format!("{method} {path}: {} {}", code.unwrap_or_default(), self.message),
        }
    }
}

impl Stage {
    fn row(&self, wide: bool) -> Vec<Cell> {
        let mut row = vec![
            self.stage.clone().into(),
            state(if self.ok { "ok" } else { "FAILS" }, self.ok),
            self.took_ms.to_string().into(),
        ];
        if wide {
            row.push(self.at_ms.to_string().into());
        }
        row.push(self.message.clone().into());
        row
    }
}

impl Endpoint {
    fn row(&self) -> Vec<Cell> {
        let is_good = matches!(&*self.state, "chosen" | "another turn" | "last resort");
        vec![self.endpoint.clone().into(), state(&self.state, is_good), self.message.clone().into()]
    }
}
