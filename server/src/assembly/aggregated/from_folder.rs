//! Objects of the manifests folder that aggregated API servers serve: requests without retries, with limits, as
//! the folder's user.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use portico_auditor::Auditor;
use portico_kit::fetch::{FetchRequest, Fetched};
use portico_kit::header_text;
use portico_machinery::object::cut_at;
use portico_machinery::route::Backend;
use portico_machinery::{GroupVersion, Reason, Status};
use portico_manifests::{OtherResource, OtherServers, Requests};
use portico_registry::{Answer, Call, Record, Recorded};

use super::{Aggregated, FOLDER, MAX_BODY, METADATA, TIMEOUT};
use crate::own_requests::OwnRequests;

/// Maximum length of a response that is shown in an error if it is not a Status, in bytes.
const SHOWN: usize = 200;

/// Aggregated API servers, as the manifests folder uses them.
pub(crate) struct FromFolder {
    servers: Arc<Aggregated>,
    requests: OwnRequests<Folder>,
}

/// Handler of the folder's requests.
struct Folder(Arc<Aggregated>);

impl FromFolder {
    pub(crate) fn new(servers: Arc<Aggregated>, auditor: Option<Arc<Auditor>>) -> Self {
        let requests = OwnRequests::new(Folder(Arc::clone(&servers)), auditor);
        Self { servers, requests }
    }
}

impl OtherServers for FromFolder {
    fn reachable(&self, group_version: &GroupVersion) -> Result<(), String> {
        self.servers.available(group_version).map(drop)
    }

    fn resources<'a>(
        &'a self,
        group_version: &'a GroupVersion,
    ) -> BoxFuture<'a, Result<Vec<OtherResource>, String>> {
        Box::pin(async move {
            let backend = self.servers.available(group_version)?;
            let served = self.servers.resources(&backend, FOLDER, group_version).await?;
            let objects = served.into_iter().filter(|resource| !resource.name.contains('/'));
            let named = objects.map(|resource| OtherResource {
                name: resource.name,
                kind: resource.kind,
                is_namespaced: resource.namespaced,
            });
            Ok(named.collect())
        })
    }
}

impl Requests for FromFolder {
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer> {
        self.requests.serve(call)
    }
}

impl Requests for Folder {
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let answer = match self.0.exchanged(&call).await {
                Ok(fetched) => read(&fetched),
                Err(why) => Answer::status(Status::unavailable(why)),
            };
            let request = if call.recorded >= Recorded::Sent { call.body } else { Bytes::new() };
            Answer { record: Record { request, ..Record::default() }, ..answer }
        })
    }
}

impl Aggregated {
    /// Returns the backend of a group version, if it is available.
    fn available(&self, group_version: &GroupVersion) -> Result<Arc<Backend>, String> {
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

    async fn exchanged(&self, call: &Call) -> Result<Fetched, String> {
        let backend = self.available(&call.target.group_version())?;
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
    Ok(FetchRequest { method, path, headers, timeout: TIMEOUT, body, max_body: MAX_BODY })
}

/// Converts the response of a backend. A Status gets the HTTP status code of the response.
fn read(fetched: &Fetched) -> Answer {
    let code = fetched.status.as_u16();
    if (200..=299).contains(&code) {
        return Answer {
            warnings: warnings(&fetched.headers),
            ..Answer::json(code, fetched.body.clone(), 0)
        };
    }
    let mut status = Status::from_json(&fetched.body).unwrap_or_else(|| {
        let said = cut_at(String::from_utf8_lossy(&fetched.body).trim().to_owned(), SHOWN);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        Status::failure(Reason::Unknown, format!("the backend returned {code}{said}"))
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

    fn fetched(code: u16, body: &'static str) -> Fetched {
        let mut headers = HeaderMap::new();
        headers.insert(header::WARNING, HeaderValue::from_static(r#"299 - "the \"size\" is old""#));
        let (status, body) = (StatusCode::from_u16(code).unwrap(), Bytes::from_static(body.as_bytes()));
        Fetched { status, headers, body, reused: false }
    }

    #[test]
    fn warnings_and_refusals_are_read_as_they_were_meant() {
        assert_eq!(read(&fetched(200, "{}")).warnings, [r#"the "size" is old"#]);
        let refused = read(&fetched(422, r#"{"kind":"Status","reason":"Invalid","message":"too large"}"#));
        let status = refused.status.unwrap();
        assert_eq!((refused.code, status.reason(), &*status.message), (422, Reason::Invalid, "too large"));
        let broken = read(&fetched(502, "no upstream\n"));
        let status = broken.status.unwrap();
        assert_eq!((broken.code, &*status.message), (502, "the backend returned 502: no upstream"));
    }
}
