//! An admission webhook over TLS and persistent connections that allows everything, or never responds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde::Deserialize;

use crate::Failure;
use crate::certificates::Certificates;
use crate::server::Server;

/// Path of reviews without a response.
const SILENT_PATH: &str = "/silent";

/// A running webhook; it ends when this is dropped.
pub(crate) struct Webhook {
    server: Server,
    reviews: Arc<AtomicUsize>,
}

#[derive(Deserialize)]
struct Review {
    request: Question,
}

#[derive(Deserialize)]
struct Question {
    uid: String,
}

impl Webhook {
    /// Listens on a free port.
    pub(crate) fn start(certificates: &Certificates) -> Result<Self, Failure> {
        let reviews = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&reviews);
        let server = Server::start(certificates.webhook_tls()?, move |request| {
            counter.fetch_add(1, Ordering::Relaxed);
            answer(request)
        })?;
        Ok(Self { server, reviews })
    }

    /// Returns the URL that allows everything.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the URL that never responds.
    pub(crate) fn silent_url(&self) -> String {
        format!("{}{SILENT_PATH}", self.server.url())
    }

    /// Returns the number of reviews received so far.
    pub(crate) fn review_count(&self) -> usize {
        self.reviews.load(Ordering::Relaxed)
    }
}

async fn answer(request: Request<Incoming>) -> Response<Full<Bytes>> {
    if request.uri().path() == SILENT_PATH {
        std::future::pending::<()>().await;
    }
    let question = request.into_body().collect().await.ok().map(|body| body.to_bytes());
    let review = question.and_then(|body| serde_json::from_slice::<Review>(&body).ok());
    let Some(Review { request }) = review else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let body = format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{{"uid":"{}","allowed":true}}}}"#,
        request.uid
    );
    let mut response = Response::new(Full::new(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
