//! `portico route try`: traces one request through a facade, and shows all stages with their durations.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Subcommand;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::facade::{Facade, ROUTE_TRY, TraceRequest};
use super::failure::Failure;
use super::outcome::Outcome;
use super::output::{self, Format};
use super::stages::state_cell;
use super::table::{Cell, Table};
use crate::documents;

/// Trace one request through a facade
#[derive(Debug, clap::Args)]
pub(crate) struct Route {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Try(Try),
}

/// Trace one request through a facade: show user, authorization, route, backend address, and the duration of each stage
///
/// GET, HEAD and OPTIONS requests are sent to the backend, except long-running requests such as watches. All other requests end once
/// the backend is connected; --send sends them, too, except long-running requests. Requires permission for the verb `get` on the path
/// /portico/route-try.
///
/// Exit codes: 0 the request succeeded, or could be sent; 1 the request failed; 2 not traced.
#[derive(Debug, clap::Args)]
struct Try {
    /// Path and query of the request
    path: String,
    /// HTTP method of the request
    #[arg(long, short = 'X', default_value = "GET")]
    method: Method,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", value_name = "UID")]
    uid: Option<String>,
    /// Send the request to the backend even if its method writes
    #[arg(long)]
    send: bool,
    /// File with the request body in YAML or JSON; - reads standard input
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    body: Option<PathBuf>,
    /// Media type of the body; by default, application/json or application/yaml as detected in the file
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Output format
    #[arg(long, short, value_parser = Format::without_names(), default_value = "table")]
    output: Format,
    #[command(flatten)]
    facade: Facade,
}

/// Trace in the response of the facade.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trace {
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

/// Runs `portico route try`.
pub(super) async fn run(route: &Route) -> Result<Outcome, Failure> {
    let Verb::Try(args) = &route.verb;
    args.run().await
}

impl Try {
    async fn run(&self) -> Result<Outcome, Failure> {
        if !self.path.starts_with('/') {
            return Err(Failure::Usage(format!("{:?} is not a path: it must begin with a slash", self.path)));
        }
        let client = self.facade.client()?;
        let is_read = matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if !is_read {
            // A server that ignores the trace header would execute the request.
            client.check_traces().await?;
        }
        let request = self.request()?;
        let json = client.trace(request).await?;
        let trace: Trace = serde_json::from_slice(&json)?;
        match self.output {
            Format::Json | Format::Yaml => output::document(&json, self.output)?,
            format => trace.print(format == Format::Wide)?,
        }
        Ok(if trace.ok { Outcome::Positive } else { Outcome::Negative })
    }

    fn request(&self) -> Result<TraceRequest, Failure> {
        let (body, media_type) = self.read_body()?;
        let mut headers = HeaderMap::new();
        let mode = if self.send { "send" } else { "walk" };
        headers.insert(ROUTE_TRY, HeaderValue::from_static(mode));
        if let Some(media_type) = self.content_type.as_deref().or(media_type) {
            append(&mut headers, CONTENT_TYPE, media_type)?;
        }
        if self.content_type.is_some() && self.body.is_none() {
            return Err(Failure::Usage("--content-type requires --filename".to_owned()));
        }
        let user = HeaderName::from_static("impersonate-user");
        let (group, uid) =
            (HeaderName::from_static("impersonate-group"), HeaderName::from_static("impersonate-uid"));
        if self.user.is_none() && (!self.groups.is_empty() || self.uid.is_some()) {
            return Err(Failure::Usage("--as-group and --as-uid require --as".to_owned()));
        }
        let users = self.user.iter().map(|value| (&user, value));
        let members = self.groups.iter().map(|value| (&group, value));
        for (name, value) in users.chain(members).chain(self.uid.iter().map(|value| (&uid, value))) {
            append(&mut headers, name.clone(), value)?;
        }
        Ok(TraceRequest { method: self.method.clone(), path: self.path.clone(), headers, body })
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

impl Trace {
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
            (true, _, _) if !self.sent => format!("{method} {path} could be sent (--send sends it)"),
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
            state_cell(if self.ok { "ok" } else { "FAILS" }, self.ok),
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
        vec![self.endpoint.clone().into(), state_cell(&self.state, is_good), self.message.clone().into()]
    }
}
