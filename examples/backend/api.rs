//! The verbs of flunders over HTTP.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use crate::documents;
use crate::flunder::{API_VERSION, Flunder, GROUP, KIND, RESOURCE};
use crate::store::{Event, Refused, Store};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Bodies up to here; more is 413.
const MAX_BODY: usize = 3 << 20;
const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A refusal, as a Kubernetes Status.
pub struct Failure {
    code: StatusCode,
    reason: &'static str,
    message: String,
}

fn failure(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Failure {
    Failure { code, reason, message: message.into() }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let resource = format!("{RESOURCE}.{GROUP}");
        match refused {
            Refused::NotFound(name) => {
                failure(StatusCode::NOT_FOUND, "NotFound", format!("{resource} {name:?} not found"))
            }
            Refused::Exists(name) => {
                failure(StatusCode::CONFLICT, "AlreadyExists", format!("{resource} {name:?} already exists"))
            }
            Refused::Conflict => failure(
                StatusCode::CONFLICT,
                "Conflict",
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            Refused::Expired => failure(StatusCode::GONE, "Expired", "too old resource version"),
        }
    }
}

impl Failure {
    fn body(&self) -> Vec<u8> {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16()});
        serde_json::to_vec(&status).unwrap_or_default()
    }
}

/// What a request asks for.
struct Ask {
    namespace: String,
    name: String,
    query: Vec<(String, String)>,
    user: String,
    table: bool,
}

impl Ask {
    fn query(&self, key: &str) -> &str {
        self.query.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value)
    }

    /// Equality selectors; enough for `-l a=b` and for watching one object.
    fn selects(&self, flunder: &Flunder) -> bool {
        let labels = &flunder.metadata.labels;
        let by_label = self.query("labelSelector").split(',').filter(|term| !term.is_empty()).all(|term| {
            match term.split_once("!=") {
                Some((key, value)) => labels.get(key).is_none_or(|have| have != value),
                None => match term.split_once('=') {
                    Some((key, value)) => {
                        labels.get(key).is_some_and(|have| have == value.trim_start_matches('='))
                    }
                    None => labels.contains_key(term),
                },
            }
        });
        let by_name = self.query("fieldSelector").strip_prefix("metadata.name=");
        let here = self.namespace.is_empty() || flunder.metadata.namespace == self.namespace;
        here && by_label && by_name.is_none_or(|name| name == flunder.metadata.name)
    }
}

/// Answers one request and logs who asked for what.
pub async fn handle(store: &Store, request: Request<Incoming>) -> Answer {
    let user = header(request.headers(), "x-remote-user");
    let line = format!("{} {} by {user:?}", request.method(), request.uri());
    let answer =
        route(store, request, user).await.unwrap_or_else(|failure| raw(failure.code, JSON, failure.body()));
    crate::log(&format!("{line}: {}", answer.status().as_u16()));
    answer
}

async fn route(store: &Store, request: Request<Incoming>, user: String) -> Result<Answer, Failure> {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let accept = header(request.headers(), ACCEPT.as_str());
    let document = |body| Ok(raw(StatusCode::OK, JSON, body));
    match parts.as_slice() {
        ["healthz" | "readyz" | "livez"] => return Ok(raw(StatusCode::OK, "text/plain", "ok")),
        ["apis"] if accept.contains("APIGroupDiscoveryList") && accept.contains("v=v2") => {
            return Ok(raw(StatusCode::OK, AGGREGATED, documents::aggregated_discovery()));
        }
        ["apis"] => return document(documents::groups()),
        ["apis", group] if *group == GROUP => return document(documents::group()),
        ["apis", ..] if path == format!("/apis/{API_VERSION}") => return document(documents::resources()),
        ["openapi", "v2"] => return document(documents::openapi_v2()),
        ["openapi", "v3"] => return document(documents::openapi_v3_index()),
        ["openapi", "v3", ..] if path == format!("/openapi/v3/apis/{API_VERSION}") => {
            return document(documents::openapi_v3());
        }
        _ => {}
    }
    let (namespace, name) =
        match path.strip_prefix(&format!("/apis/{API_VERSION}/")).map(|p| p.split('/').collect()) {
            Some(parts) => resource(parts),
            None => None,
        }
        .ok_or_else(|| {
            failure(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
        })?;
    let query =
        form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect();
    let table = accept.contains("as=Table") && accept.contains("v=v1");
    verb(store, Ask { namespace, name, query, user, table }, request).await
}

fn resource(parts: Vec<&str>) -> Option<(String, String)> {
    match parts.as_slice() {
        [RESOURCE] => Some((String::new(), String::new())),
        ["namespaces", namespace, RESOURCE] => Some(((*namespace).to_owned(), String::new())),
        ["namespaces", namespace, RESOURCE, name] => Some(((*namespace).to_owned(), (*name).to_owned())),
        _ => None,
    }
}

async fn verb(store: &Store, ask: Ask, request: Request<Incoming>) -> Result<Answer, Failure> {
    let (method, one) = (request.method().clone(), !ask.name.is_empty());
    match (method, one) {
        (Method::GET | Method::HEAD, true) => {
            object(&ask, StatusCode::OK, &store.get(&ask.namespace, &ask.name)?)
        }
        (Method::GET | Method::HEAD, false) if matches!(ask.query("watch"), "true" | "1") => {
            watch(store, ask)
        }
        (Method::GET | Method::HEAD, false) => list(store, &ask),
        (Method::POST, false) if !ask.namespace.is_empty() => create(store, &ask, read(request).await?),
        (Method::PUT, true) => {
            let new: Flunder = decode(&read(request).await?)?;
            change(store, &ask, |_| Ok(new))
        }
        (Method::PATCH, true) => {
            let media = header(request.headers(), CONTENT_TYPE.as_str());
            if media != "application/merge-patch+json" {
                let message = "flunders take application/merge-patch+json";
                return Err(failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message));
            }
            let patch = read(request).await?;
            change(store, &ask, |old| merge(old, &patch))
        }
        (Method::DELETE, true) => object(&ask, StatusCode::OK, &store.delete(&ask.namespace, &ask.name)?),
        (Method::DELETE, false) => {
            let (_, found) = store.list(&ask.namespace);
            for flunder in found.iter().filter(|flunder| ask.selects(flunder)) {
                // One that somebody else has deleted meanwhile is as it should be.
                let _ = store.delete(&flunder.metadata.namespace, &flunder.metadata.name);
            }
            list(store, &ask)
        }
        _ => Err(failure(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "this method is not supported here",
        )),
    }
}

fn list(store: &Store, ask: &Ask) -> Result<Answer, Failure> {
    let (revision, mut found) = store.list(&ask.namespace);
    found.retain(|flunder| ask.selects(flunder));
    let revision = revision.to_string();
    if ask.table {
        return Ok(raw(
            StatusCode::OK,
            JSON,
            documents::table(&found, &revision, ask.query("includeObject"), true),
        ));
    }
    let list = json!({"kind": format!("{KIND}List"), "apiVersion": API_VERSION,
        "metadata": {"resourceVersion": revision}, "items": found});
    Ok(raw(StatusCode::OK, JSON, serde_json::to_vec(&list).unwrap_or_default()))
}

fn create(store: &Store, ask: &Ask, body: Bytes) -> Result<Answer, Failure> {
    let mut new: Flunder = decode(&body)?;
    if new.metadata.name.is_empty() && !new.metadata.generate_name.is_empty() {
        let suffix = uuid::Uuid::new_v4().simple().to_string();
        new.metadata.name = format!("{}{}", new.metadata.generate_name, &suffix[..5]);
    }
    check(&new)?;
    new.metadata.namespace = ask.namespace.clone();
    new.metadata.uid = uuid::Uuid::new_v4().to_string();
    new.metadata.generation = 1;
    new.metadata.creation_timestamp = Some(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    (new.status.created_by, new.status.changed_by) = (ask.user.clone(), ask.user.clone());
    object(ask, StatusCode::CREATED, &store.create(new)?)
}

/// Puts the new state in place of the old; what only the server writes is taken from the old one.
fn change(
    store: &Store,
    ask: &Ask,
    make: impl FnOnce(&Flunder) -> Result<Flunder, Failure>,
) -> Result<Answer, Failure> {
    let changed = store.update(&ask.namespace, &ask.name, |old| {
        let mut new = make(old)?;
        let (from, to) = (&old.metadata, &mut new.metadata);
        (to.name, to.namespace, to.uid) = (from.name.clone(), from.namespace.clone(), from.uid.clone());
        to.creation_timestamp = from.creation_timestamp.clone();
        to.generation = from.generation + i64::from(new.spec != old.spec);
        check(&new)?;
        new.status = old.status.clone();
        new.status.changed_by = ask.user.clone();
        Ok::<_, Failure>(new)
    })?;
    object(ask, StatusCode::OK, &changed)
}

/// RFC 7396. The revision counts only when the patch names one.
fn merge(old: &Flunder, patch: &[u8]) -> Result<Flunder, Failure> {
    let broken = |error: serde_json::Error| failure(StatusCode::BAD_REQUEST, "BadRequest", error.to_string());
    let mut document = serde_json::to_value(old).map_err(broken)?;
    json_patch::merge(&mut document, &serde_json::from_slice(patch).map_err(broken)?);
    serde_json::from_value(document).map_err(broken)
}

fn check(flunder: &Flunder) -> Result<(), Failure> {
    let Some((field, why)) = flunder.invalid() else { return Ok(()) };
    let message = format!("{KIND}.{GROUP} {:?} is invalid: {field}: {why}", flunder.metadata.name);
    Err(failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message))
}

fn decode(body: &[u8]) -> Result<Flunder, Failure> {
    let bad = |message: String| failure(StatusCode::BAD_REQUEST, "BadRequest", message);
    let mut flunder: Flunder = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    let right = |have: &str, want: &str| have.is_empty() || have == want;
    if !right(&flunder.api_version, API_VERSION) || !right(&flunder.kind, KIND) {
        return Err(bad(format!(
            "{}, Kind={} is not {API_VERSION}, Kind={KIND}",
            flunder.api_version, flunder.kind
        )));
    }
    (flunder.api_version, flunder.kind) = (API_VERSION.to_owned(), KIND.to_owned());
    Ok(flunder)
}

/// History first, then changes as they come. It ends after `timeoutSeconds`, or when this watcher is too slow.
fn watch(store: &Store, ask: Ask) -> Result<Answer, Failure> {
    let after = match ask.query("resourceVersion") {
        "" => 0,
        text => text.parse().map_err(|_| {
            failure(StatusCode::BAD_REQUEST, "BadRequest", format!("invalid resource version {text:?}"))
        })?,
    };
    let (past, receiver) = store.watch(after)?;
    let coming = stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(event) => Some((event, receiver)),
            Err(RecvError::Lagged(_) | RecvError::Closed) => None,
        }
    });
    let seconds = ask.query("timeoutSeconds").parse().unwrap_or(1800);
    let end = tokio::time::sleep(std::time::Duration::from_secs(seconds));
    let events = stream::iter(past).chain(coming).take_until(end);
    Ok(streamed(frames(events, ask)))
}

/// One line of JSON for each event that the request selects; the first row of a Table watch carries the columns.
fn frames(
    events: impl Stream<Item = Event> + Send + 'static,
    ask: Ask,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let mut with_columns = true;
    events.filter_map(move |event| {
        let line = ask.selects(&event.flunder).then(|| {
            let object = if ask.table {
                let revision = event.revision.to_string();
                let rows = std::slice::from_ref(&event.flunder);
                documents::table(
                    rows,
                    &revision,
                    ask.query("includeObject"),
                    std::mem::take(&mut with_columns),
                )
            } else {
                serde_json::to_vec(&event.flunder).unwrap_or_default()
            };
            let mut line = format!("{{\"type\":\"{}\",\"object\":", event.kind).into_bytes();
            line.extend_from_slice(&object);
            line.extend_from_slice(b"}\n");
            Bytes::from(line)
        });
        std::future::ready(line)
    })
}

fn streamed(lines: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    let body = StreamBody::new(lines.map(|line| Ok(Frame::data(line))));
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(JSON));
    response
}

fn object(ask: &Ask, code: StatusCode, flunder: &Flunder) -> Result<Answer, Failure> {
    let body = if ask.table {
        let revision = &flunder.metadata.resource_version;
        documents::table(std::slice::from_ref(flunder), revision, ask.query("includeObject"), true)
    } else {
        serde_json::to_vec(flunder).unwrap_or_default()
    };
    Ok(raw(code, JSON, body))
}

async fn read(request: Request<Incoming>) -> Result<Bytes, Failure> {
    let collected = Limited::new(request.into_body(), MAX_BODY).collect().await;
    let too_large =
        |_| failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", "the body is too large");
    collected.map(http_body_util::Collected::to_bytes).map_err(too_large)
}

fn raw(code: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(media));
    response
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
