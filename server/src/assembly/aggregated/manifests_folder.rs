//! Objects of the manifests folder that aggregated API servers serve: requests without retries, with limits, as
//! the folder's user.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use portico_auditor::Auditor;
use portico_kit::fetch::{FetchRequest, FetchResponse};
use portico_kit::header_text;
use portico_machinery::object::cut_at;
use portico_machinery::route::Backend;
use portico_machinery::{GroupVersion, Reason, Status};
use portico_manifests::{ForeignApiClient, ForeignResource, Requests};
use portico_registry::{Answer, AuditDetail, AuditRecord, Call};

use super::{AggregatedServers, FOLDER_USER, MAX_BODY, METADATA, TIMEOUT};
use crate::audited_requests::AuditedRequests;

/// Maximum length of a response that is shown in an error if it is not a Status, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// Aggregated API servers, as the manifests folder uses them.
pub(crate) struct ManifestsFolderServers {
    servers: Arc<AggregatedServers>,
    requests: AuditedRequests<FolderHandler>,
}

/// Handler of the folder's requests.
struct FolderHandler(Arc<AggregatedServers>);

impl ManifestsFolderServers {
    pub(crate) fn new(servers: Arc<AggregatedServers>, auditor: Option<Arc<Auditor>>) -> Self {
        let requests = AuditedRequests::new(FolderHandler(Arc::clone(&servers)), auditor);
        Self { servers, requests }
    }
}

impl ForeignApiClient for ManifestsFolderServers {
    fn check_reachable(&self, group_version: &GroupVersion) -> Result<(), String> {
        self.servers.available_backend(group_version).map(drop)
    }

    fn resources<'a>(
        &'a self,
        group_version: &'a GroupVersion,
    ) -> BoxFuture<'a, Result<Vec<ForeignResource>, String>> {
        Box::pin(async move {
            let backend = self.servers.available_backend(group_version)?;
            let served = self.servers.resources(&backend, FOLDER_USER, group_version).await?;
            let objects = served.into_iter().filter(|resource| !resource.name.contains('/'));
            let resources = objects.map(|resource| ForeignResource {
                name: resource.name,
                kind: resource.kind,
                is_namespaced: resource.namespaced,
            });
            Ok(resources.collect())
        })
    }
}

impl Requests for ManifestsFolderServers {
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer> {
        self.requests.serve(call)
    }
}

impl Requests for FolderHandler {
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let answer = match self.0.send_call(&call).await {
                Ok(fetched) => read(&fetched),
                Err(error) => Answer::status(Status::unavailable(error)),
            };
            let request = if call.audit_detail >= AuditDetail::Request { call.body } else { Bytes::new() };
            Answer { record: AuditRecord { request, ..AuditRecord::default() }, ..answer }
        })
    }
}

impl AggregatedServers {
    /// Returns the backend of a group version, if it is available.
    fn available_backend(&self, group_version: &GroupVersion) -> Result<Arc<Backend>, String> {
        let name = group_version.api_service_name();
        let route = self.routes.get(&name).filter(|compiled| compiled.is_published());
        let Some(route) = route.map(|compiled| compiled.route) else {
            return Err(format!("APIService {name} does not exist yet"));
        };
        let Some(backend) = route.backend.clone() else {
            return Err(format!("APIService {name} has no backend yet"));
        };
        let (reason, message) = (&route.available.reason, &route.available.message);
        match (route.available.ok, reason.is_empty()) {
            (true, _) => Ok(backend),
            (false, true) => Err(format!("APIService {name} has not been checked yet")),
            (false, false) => Err(format!("APIService {name} is not available: {reason}: {message}")),
        }
    }

    async fn send_call(&self, call: &Call) -> Result<FetchResponse, String> {
        let backend = self.available_backend(&call.target.group_version())?;
        self.backends.send(&backend, &request(call)?).await.map_err(|error| error.to_string())
    }
}

fn request(call: &Call) -> Result<FetchRequest, String> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-user", value(&call.user.name)?);
    for group in &call.user.groups {
        headers.append("x-remote-group", value(group)?);
    }
    headers.insert(header::USER_AGENT, value(&call.user_agent)?);
    // For a list, metadata suffices.
    let accept = if call.verb == "list" { METADATA } else { &call.accept };
    headers.insert(header::ACCEPT, value(accept)?);
    if !call.body.is_empty() {
        headers.insert(header::CONTENT_TYPE, value(&call.content_type)?);
    }
    let method = match call.verb.as_str() {
        "patch" => Method::PATCH,
        "delete" => Method::DELETE,
        _ => Method::GET,
    };
    let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
    let (path, body) = (format!("{}{query}", call.target.path()), call.body.clone());
    Ok(FetchRequest { method, path, headers, timeout: TIMEOUT, body, max_body_bytes: MAX_BODY })
}

/// Converts the response of a backend. A Status gets the HTTP status code of the response.
fn read(fetched: &FetchResponse) -> Answer {
    let code = fetched.status.as_u16();
    if (200..=299).contains(&code) {
        return Answer {
            warnings: warnings(&fetched.headers),
            ..Answer::json(code, fetched.body.clone(), 0)
        };
    }
    let mut status = Status::from_json(&fetched.body).unwrap_or_else(|| {
        let text = cut_at(String::from_utf8_lossy(&fetched.body).trim().to_owned(), MAX_SHOWN_BYTES);
        let suffix = if text.is_empty() { text } else { format!(": {text}") };
        Status::failure(Reason::Unknown, format!("the backend returned {code}{suffix}"))
    });
    status.code = code;
    Answer::status(status)
}

/// Returns the texts of warning headers of the form `299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(header::WARNING).iter().map(header_text::text);
    let quoted = texts.filter_map(|text| text.split_once('"')?.1.rsplit_once('"'));
    quoted.map(|(text, _)| text.replace("\\\"", "\"").replace("\\\\", "\\")).collect()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn fetched(code: u16, body: &'static str) -> FetchResponse {
        let mut headers = HeaderMap::new();
        headers.insert(header::WARNING, HeaderValue::from_static(r#"299 - "the \"size\" is old""#));
        let (status, body) = (StatusCode::from_u16(code).unwrap(), Bytes::from_static(body.as_bytes()));
        FetchResponse { status, headers, body, reused: false }
    }

    #[test]
    fn warnings_and_errors_are_decoded() {
        assert_eq!(read(&fetched(200, "{}")).warnings, [r#"the "size" is old"#]);
        let refused = read(&fetched(422, r#"{"kind":"Status","reason":"Invalid","message":"too large"}"#));
        let status = refused.status.unwrap();
        assert_eq!((refused.code, status.reason(), &*status.message), (422, Reason::Invalid, "too large"));
        let broken = read(&fetched(502, "no upstream\n"));
        let status = broken.status.unwrap();
        assert_eq!((broken.code, &*status.message), (502, "the backend returned 502: no upstream"));
    }
}
