//! The HTTP API of flunders.

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
use crate::store::{Event, Store, StoreError};

type HttpResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Maximum size of a request body; larger ones get 413.
const MAX_BODY: usize = 3 << 20;
const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// An error response, sent as a Kubernetes Status.
pub struct ApiError {
    code: StatusCode,
    reason: &'static str,
    message: String,
}

fn api_error(code: StatusCode, reason: &'static str, message: impl Into<String>) -> ApiError {
    ApiError { code, reason, message: message.into() }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let resource = format!("{RESOURCE}.{GROUP}");
        match error {
            StoreError::NotFound(name) => {
                api_error(StatusCode::NOT_FOUND, "NotFound", format!("{resource} {name:?} not found"))
            }
            StoreError::Exists(name) => api_error(
                StatusCode::CONFLICT,
                "AlreadyExists",
                format!("{resource} {name:?} already exists"),
            ),
            StoreError::Conflict => api_error(
                StatusCode::CONFLICT,
                "Conflict",
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            StoreError::Expired => api_error(StatusCode::GONE, "Expired", "too old resource version"),
        }
    }
}

impl ApiError {
    fn body(&self) -> Vec<u8> {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16()});
        serde_json::to_vec(&status).unwrap_or_default()
    }
}

/// Parsed parts of a request for flunders.
struct RequestInfo {
    namespace: String,
    name: String,
    query: Vec<(String, String)>,
    user: String,
    table: bool,
}

impl RequestInfo {
    fn query(&self, key: &str) -> &str {
        self.query.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value)
    }

    /// True if the flunder is in the requested namespace and matches the selectors. Supports equality selectors of
    /// labels and the field `metadata.name`.
    fn matches(&self, flunder: &Flunder) -> bool {
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
        let in_namespace = self.namespace.is_empty() || flunder.metadata.namespace == self.namespace;
        in_namespace && by_label && by_name.is_none_or(|name| name == flunder.metadata.name)
    }
}

/// Handles one request and logs it with its user.
pub async fn handle(store: &Store, request: Request<Incoming>) -> HttpResponse {
    let user = header(request.headers(), "x-remote-user");
    let line = format!("{} {} by {user:?}", request.method(), request.uri());
    let response =
        route(store, request, user).await.unwrap_or_else(|error| respond(error.code, JSON, error.body()));
    crate::log(&format!("{line}: {}", response.status().as_u16()));
    response
}

async fn route(store: &Store, request: Request<Incoming>, user: String) -> Result<HttpResponse, ApiError> {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let accept = header(request.headers(), ACCEPT.as_str());
    let document = |body| Ok(respond(StatusCode::OK, JSON, body));
    match parts.as_slice() {
        ["healthz" | "readyz" | "livez"] => return Ok(respond(StatusCode::OK, "text/plain", "ok")),
        ["apis"] if accept.contains("APIGroupDiscoveryList") && accept.contains("v=v2") => {
            return Ok(respond(StatusCode::OK, AGGREGATED, documents::aggregated_discovery()));
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
            Some(parts) => parse_resource(parts),
            None => None,
        }
        .ok_or_else(|| {
            api_error(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
        })?;
    let query =
        form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect();
    let table = accept.contains("as=Table") && accept.contains("v=v1");
    dispatch(store, RequestInfo { namespace, name, query, user, table }, request).await
}

fn parse_resource(parts: Vec<&str>) -> Option<(String, String)> {
    match parts.as_slice() {
        [RESOURCE] => Some((String::new(), String::new())),
        ["namespaces", namespace, RESOURCE] => Some(((*namespace).to_owned(), String::new())),
        ["namespaces", namespace, RESOURCE, name] => Some(((*namespace).to_owned(), (*name).to_owned())),
        _ => None,
    }
}

async fn dispatch(
    store: &Store,
    info: RequestInfo,
    request: Request<Incoming>,
) -> Result<HttpResponse, ApiError> {
    let (method, has_name) = (request.method().clone(), !info.name.is_empty());
    match (method, has_name) {
        (Method::GET | Method::HEAD, true) => {
            object_response(&info, StatusCode::OK, &store.get(&info.namespace, &info.name)?)
        }
        (Method::GET | Method::HEAD, false) if matches!(info.query("watch"), "true" | "1") => {
            watch(store, info)
        }
        (Method::GET | Method::HEAD, false) => list(store, &info),
        (Method::POST, false) if !info.namespace.is_empty() => {
            create(store, &info, read_body(request).await?)
        }
        (Method::PUT, true) => {
            let new: Flunder = decode(&read_body(request).await?)?;
            update(store, &info, |_| Ok(new))
        }
        (Method::PATCH, true) => {
            let media = header(request.headers(), CONTENT_TYPE.as_str());
            if media != "application/merge-patch+json" {
                let message = "flunders take application/merge-patch+json";
                return Err(api_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message));
            }
            let patch = read_body(request).await?;
            update(store, &info, |old| merge(old, &patch))
        }
        (Method::DELETE, true) => {
            object_response(&info, StatusCode::OK, &store.delete(&info.namespace, &info.name)?)
        }
        (Method::DELETE, false) => {
            let (_, found) = store.list(&info.namespace);
            for flunder in found.iter().filter(|flunder| info.matches(flunder)) {
                // Another request may have deleted it first.
                let _ = store.delete(&flunder.metadata.namespace, &flunder.metadata.name);
            }
            list(store, &info)
        }
        _ => Err(api_error(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "this method is not supported here",
        )),
    }
}

fn list(store: &Store, info: &RequestInfo) -> Result<HttpResponse, ApiError> {
    let (revision, mut found) = store.list(&info.namespace);
    found.retain(|flunder| info.matches(flunder));
    let revision = revision.to_string();
    if info.table {
        return Ok(respond(
            StatusCode::OK,
            JSON,
            documents::table(&found, &revision, info.query("includeObject"), true),
        ));
    }
    let list = json!({"kind": format!("{KIND}List"), "apiVersion": API_VERSION,
        "metadata": {"resourceVersion": revision}, "items": found});
    Ok(respond(StatusCode::OK, JSON, serde_json::to_vec(&list).unwrap_or_default()))
}

fn create(store: &Store, info: &RequestInfo, body: Bytes) -> Result<HttpResponse, ApiError> {
    let mut new: Flunder = decode(&body)?;
    if new.metadata.name.is_empty() && !new.metadata.generate_name.is_empty() {
        let suffix = uuid::Uuid::new_v4().simple().to_string();
        new.metadata.name = format!("{}{}", new.metadata.generate_name, &suffix[..5]);
    }
    validate(&new)?;
    new.metadata.namespace = info.namespace.clone();
    new.metadata.uid = uuid::Uuid::new_v4().to_string();
    new.metadata.generation = 1;
    new.metadata.creation_timestamp = Some(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    (new.status.created_by, new.status.changed_by) = (info.user.clone(), info.user.clone());
    object_response(info, StatusCode::CREATED, &store.create(new)?)
}

/// Replaces an object by the result of `make`. Fields that only the server sets keep their values.
fn update(
    store: &Store,
    info: &RequestInfo,
    make: impl FnOnce(&Flunder) -> Result<Flunder, ApiError>,
) -> Result<HttpResponse, ApiError> {
    let changed = store.update(&info.namespace, &info.name, |old| {
        let mut new = make(old)?;
        let (from, to) = (&old.metadata, &mut new.metadata);
        (to.name, to.namespace, to.uid) = (from.name.clone(), from.namespace.clone(), from.uid.clone());
        to.creation_timestamp = from.creation_timestamp.clone();
        to.generation = from.generation + i64::from(new.spec != old.spec);
        validate(&new)?;
        new.status = old.status.clone();
        new.status.changed_by = info.user.clone();
        Ok::<_, ApiError>(new)
    })?;
    object_response(info, StatusCode::OK, &changed)
}

/// Applies a JSON merge patch (RFC 7396).
fn merge(old: &Flunder, patch: &[u8]) -> Result<Flunder, ApiError> {
    let bad_request =
        |error: serde_json::Error| api_error(StatusCode::BAD_REQUEST, "BadRequest", error.to_string());
    let mut document = serde_json::to_value(old).map_err(bad_request)?;
    json_patch::merge(&mut document, &serde_json::from_slice(patch).map_err(bad_request)?);
    serde_json::from_value(document).map_err(bad_request)
}

fn validate(flunder: &Flunder) -> Result<(), ApiError> {
    let Some((field, why)) = flunder.validation_error() else { return Ok(()) };
    let message = format!("{KIND}.{GROUP} {:?} is invalid: {field}: {why}", flunder.metadata.name);
    Err(api_error(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message))
}

fn decode(body: &[u8]) -> Result<Flunder, ApiError> {
    let bad_request = |message: String| api_error(StatusCode::BAD_REQUEST, "BadRequest", message);
    let mut flunder: Flunder =
        serde_json::from_slice(body).map_err(|error| bad_request(error.to_string()))?;
    let is_or_empty = |value: &str, expected: &str| value.is_empty() || value == expected;
    if !is_or_empty(&flunder.api_version, API_VERSION) || !is_or_empty(&flunder.kind, KIND) {
        return Err(bad_request(format!(
            "{}, Kind={} is not {API_VERSION}, Kind={KIND}",
            flunder.api_version, flunder.kind
        )));
    }
    (flunder.api_version, flunder.kind) = (API_VERSION.to_owned(), KIND.to_owned());
    Ok(flunder)
}

/// Streams past events after `resourceVersion`, then new ones. Ends after `timeoutSeconds`, or if the client falls
/// behind by more events than the channel holds.
fn watch(store: &Store, info: RequestInfo) -> Result<HttpResponse, ApiError> {
    let after = match info.query("resourceVersion") {
        "" => 0,
        text => text.parse().map_err(|_| {
            api_error(StatusCode::BAD_REQUEST, "BadRequest", format!("invalid resource version {text:?}"))
        })?,
    };
    let (past, receiver) = store.watch(after)?;
    let new = stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(event) => Some((event, receiver)),
            Err(RecvError::Lagged(_) | RecvError::Closed) => None,
        }
    });
    let seconds = info.query("timeoutSeconds").parse().unwrap_or(1800);
    let end = tokio::time::sleep(std::time::Duration::from_secs(seconds));
    let events = stream::iter(past).chain(new).take_until(end);
    Ok(stream_lines(event_lines(events, info)))
}

/// Encodes matching events as lines of JSON. In a watch of Tables, only the first event has the columns.
fn event_lines(
    events: impl Stream<Item = Event> + Send + 'static,
    info: RequestInfo,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let mut with_columns = true;
    events.filter_map(move |event| {
        let line = info.matches(&event.flunder).then(|| {
            let object = if info.table {
                let revision = event.revision.to_string();
                let rows = std::slice::from_ref(&event.flunder);
                documents::table(
                    rows,
                    &revision,
                    info.query("includeObject"),
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

fn stream_lines(lines: impl Stream<Item = Bytes> + Send + 'static) -> HttpResponse {
    let body = StreamBody::new(lines.map(|line| Ok(Frame::data(line))));
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(JSON));
    response
}

fn object_response(
    info: &RequestInfo,
    code: StatusCode,
    flunder: &Flunder,
) -> Result<HttpResponse, ApiError> {
    let body = if info.table {
        let revision = &flunder.metadata.resource_version;
        documents::table(std::slice::from_ref(flunder), revision, info.query("includeObject"), true)
    } else {
        serde_json::to_vec(flunder).unwrap_or_default()
    };
    Ok(respond(code, JSON, body))
}

async fn read_body(request: Request<Incoming>) -> Result<Bytes, ApiError> {
    let collected = Limited::new(request.into_body(), MAX_BODY).collect().await;
    let too_large =
        |_| api_error(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", "the body is too large");
    collected.map(http_body_util::Collected::to_bytes).map_err(too_large)
}

fn respond(code: StatusCode, media: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(media));
    response
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
