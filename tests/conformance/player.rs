//! Replays steps against a server: sends requests, waits for conditions, and stores variables for later steps.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use portico_tests::WAIT_LIMIT;
use portico_tests::http::{Http, HttpError, collect};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::backend::Backend;
use crate::fixture::Fixture;
use crate::step::{Compare, Step, Stream, Upgrade, default_seconds};
use crate::{normalization, paths};

/// Interval at which a request is repeated until its response satisfies the step.
const PERIOD: Duration = Duration::from_millis(100);

/// User agent of the client, which managed fields contain.
const AGENT: &str = "replay/1";

/// A player of steps against one server.
pub struct Player<'a> {
    fixture: &'a Fixture,
    address: SocketAddr,
    ca: Vec<u8>,
    backend: Option<Backend>,
    variables: BTreeMap<String, Value>,
    names: Vec<(String, String)>,
}

/// A response.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

fn header(value: Option<&HeaderValue>) -> Value {
    normalization::header(value.and_then(|value| value.to_str().ok()))
}

/// Adds the compared headers to a response.
pub fn show(answer: &mut Value, step: &Step, headers: &HeaderMap) {
    for name in &step.show {
        answer["headers"][name] = match name.strip_suffix("[]") {
            Some(each) => headers.get_all(each).iter().map(|value| header(Some(value))).collect(),
            None => header(headers.get(name)),
        };
    }
}

impl<'a> Player<'a> {
    /// Creates a player for the server at this address with this CA (PEM).
    pub async fn new(fixture: &'a Fixture, address: SocketAddr, ca: &[u8], with_backend: bool) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut variables = BTreeMap::from([("run".to_owned(), (now % 100_000).to_string().into())]);
        let backend = if with_backend { Some(Backend::start(fixture).await) } else { None };
        if let Some(backend) = &backend {
            let ca = base64::engine::general_purpose::STANDARD.encode(fixture.authority("backend-ca"));
            variables.insert("backend_port".to_owned(), backend.address.port().into());
            variables.insert("backend_url".to_owned(), format!("https://{}", backend.address).into());
            variables.insert("backend_ca".to_owned(), ca.clone().into());
        }
        Self { fixture, address, ca: ca.to_vec(), backend, variables, names: fixture.placeholders() }
    }

    /// Plays a step; returns the response in the form that is compared and recorded.
    pub async fn play(&mut self, step: &Step) -> Value {
        let reply = match self.send_until(step).await {
            Ok(reply) => reply,
            // A broken connection is a result as well; its error text depends on the library.
            Err(_) => return json!({"error": "the connection broke"}),
        };
        self.store_variables(step, &reply.headers, &reply.body);
        let mut answer = json!({"status": reply.status.as_u16()});
        show(&mut answer, step, &reply.headers);
        if step.compare == Compare::Body {
            answer["body"] = normalization::body(reply.body, step, &self.names);
        }
        answer
    }

    /// Stores the variables that later steps need from a response.
    pub fn store_variables(&mut self, step: &Step, headers: &HeaderMap, body: &Value) {
        for (variable, path) in &step.save {
            let value = match path.strip_prefix("header:") {
                Some(name) => headers.get(name).and_then(|value| value.to_str().ok()).map(Value::from),
                None => paths::pick(body, path).cloned(),
            };
            self.variables.insert(variable.clone(), value.unwrap_or_default());
        }
    }

    /// Repeats a step until its condition holds; returns the last response after a timeout.
    async fn send_until(&self, step: &Step) -> Result<Reply, HttpError> {
        let seconds = step.until.as_ref().map_or_else(default_seconds, |until| until.seconds);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut ticks = tokio::time::interval(PERIOD);
        loop {
            ticks.tick().await;
            let reply = self.send(step).await?;
            let holds = step.until.as_ref().is_none_or(|until| {
                paths::pick(&reply.body, &until.path).is_some_and(|found| {
                    *found == until.equals || paths::text(found) == paths::text(&until.equals)
                })
            });
            let wanted = step.status_in.is_empty() || step.status_in.contains(&reply.status.as_u16());
            if (holds && wanted) || Instant::now() > deadline {
                return Ok(reply);
            }
        }
    }

    pub fn client(&self, step: &Step) -> Http {
        let pair = step.cert.as_deref().map(|name| self.fixture.pair(name));
        let client = match (&self.backend, step.on.as_deref()) {
            (Some(backend), Some("backend")) => {
                let ca = self.fixture.authority("backend-ca");
                Http::with_certificate(backend.address, ca.as_bytes(), pair.as_ref())
            }
            _ => Http::with_certificate(self.address, &self.ca, pair.as_ref()),
        };
        let user = step
            .user
            .clone()
            .unwrap_or_else(|| if pair.is_some() { "anonymous" } else { "admin" }.to_owned());
        if user == "anonymous" {
            return client;
        }
        let user = self.substitute(&user);
        client.with_token(Fixture::tokens().get(user.as_str()).copied().unwrap_or(&user))
    }

    async fn send(&self, step: &Step) -> Result<Reply, HttpError> {
        let client = self.client(step);
        let request = self.request(step)?;
        if let Some(upgrade) = &step.upgrade {
            return tokio::time::timeout(WAIT_LIMIT, send_upgrade(&client, request, upgrade)).await?;
        }
        if let Some(stream) = &step.stream {
            return read_stream(&client, request, stream).await;
        }
        let answer = client.fetch(request).await?;
        let body = match answer.header("content-encoding") {
            "gzip" => gunzip(&answer.body),
            _ => answer.body.to_vec(),
        };
        Ok(Reply { status: answer.status, headers: answer.headers, body: json_or_text(&body) })
    }

    pub fn request(&self, step: &Step) -> Result<Request<Full<Bytes>>, HttpError> {
        let mut request = Request::builder().method(step.method.as_str()).uri(self.substitute(&step.target));
        let accept = step.accept.as_deref().unwrap_or("application/json");
        let mut fields =
            vec![("accept".to_owned(), accept.to_owned()), ("user-agent".to_owned(), AGENT.to_owned())];
        let body = match (&step.bytes, &step.raw, &step.body) {
            (Some(bytes), ..) => Some(base64::engine::general_purpose::STANDARD.decode(bytes)?),
            (None, Some(raw), _) => Some(self.substitute(raw).into_bytes()),
            (None, None, Some(body)) => Some(self.substitute_in(body).to_string().into_bytes()),
            (None, None, None) => None,
        };
        if body.is_some() {
            let media_type = step.content_type.as_deref().unwrap_or("application/json");
            fields.push(("content-type".to_owned(), media_type.to_owned()));
        }
        if let Some(upgrade) = &step.upgrade {
            for (name, value) in [
                ("connection", "Upgrade"),
                ("upgrade", upgrade.protocol.as_str()),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ("sec-websocket-version", "13"),
            ] {
                fields.push((name.to_owned(), value.to_owned()));
            }
        }
        // Headers of a step replace default headers; a step may name a header twice, in different spellings.
        fields.retain(|(name, _)| !step.headers.keys().any(|own| own.eq_ignore_ascii_case(name)));
        fields.extend(
            step.headers.iter().map(|(name, value)| (name.clone(), self.substitute(&paths::text(value)))),
        );
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")) {
            fields.push(("accept-encoding".to_owned(), "identity".to_owned()));
        }
        for (name, value) in fields {
            request = request.header(name, value);
        }
        Ok(request.body(Full::from(body.unwrap_or_default()))?)
    }

    /// Returns the text with its variables replaced; `${fill:N}` is a text of N letters.
    fn substitute(&self, text: &str) -> String {
        let mut pieces = text.split("${");
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let Some((name, rest)) = piece.split_once('}') else {
                filled.push_str("${");
                filled.push_str(piece);
                continue;
            };
            match (name.strip_prefix("fill:"), self.variables.get(name)) {
                (Some(length), _) => filled.push_str(&"x".repeat(length.parse().unwrap())),
                (None, Some(value)) => filled.push_str(&paths::text(value)),
                (None, None) => panic!("no step has stored the variable {name}"),
            }
            filled.push_str(rest);
        }
        filled
    }

    /// Replaces the variables in all texts of a value; a text that is a single variable becomes its value.
    fn substitute_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let alone = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                alone
                    .and_then(|name| self.variables.get(name))
                    .cloned()
                    .unwrap_or_else(|| self.substitute(text).into())
            }
            Value::Array(items) => items.iter().map(|item| self.substitute_in(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (self.substitute(name), self.substitute_in(value)))
                .collect(),
            other => other.clone(),
        }
    }
}

pub fn json_or_text(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

fn gunzip(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(body), &mut plain).unwrap();
    plain
}

/// Reads lines until there are enough of them or the time has passed.
async fn read_stream(
    client: &Http,
    request: Request<Full<Bytes>>,
    stream: &Stream,
) -> Result<Reply, HttpError> {
    let (parts, mut body) = tokio::time::timeout(WAIT_LIMIT, client.send(request)).await??.into_parts();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(stream.seconds);
    let (mut rest, mut events) = (Vec::new(), Vec::new());
    while events.len() < stream.events {
        if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            events.push(serde_json::from_slice(&line)?);
            continue;
        }
        match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(Some(frame)) => rest.extend_from_slice(&frame?.into_data().unwrap_or_default()),
            Ok(None) if rest.is_empty() => break,
            Ok(None) => rest.push(b'\n'),
            Err(_) => break,
        }
    }
    Ok(Reply { status: parts.status, headers: parts.headers, body: Value::Array(events) })
}

/// Sends a text over the upgraded connection and reads the same length back.
async fn send_upgrade(
    client: &Http,
    request: Request<Full<Bytes>>,
    upgrade: &Upgrade,
) -> Result<Reply, HttpError> {
    let mut response = client.send(request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let answer = collect(response).await?;
        return Ok(Reply {
            status: answer.status,
            headers: answer.headers,
            body: json_or_text(&answer.body),
        });
    }
    let (status, headers) = (response.status(), response.headers().clone());
    let mut io = TokioIo::new(hyper::upgrade::on(&mut response).await?);
    io.write_all(upgrade.send.as_bytes()).await?;
    let mut echoed = vec![0; upgrade.send.len()];
    io.read_exact(&mut echoed).await?;
    let echoed = String::from_utf8_lossy(&echoed).into_owned();
    Ok(Reply { status, headers, body: json!({ "echoed": echoed }) })
}
