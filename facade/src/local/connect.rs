//! Requests that lead elsewhere (`log`, `exec`, `proxy`, ...): the control service decides and says where to dial, the
//! proxy dials and streams.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use portico_machinery::Status;
use portico_machinery::connect::Dial;
use portico_proto::objects::connect_response::Decision;
use portico_proto::objects::{ConnectRequest, DoResponse};
use portico_proxy::Connecting;

use super::{Local, Refused, call_of, client, done};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// How long the decision may take; the connection itself has no deadline.
const DECISION: Duration = Duration::from_secs(30);

/// What has no content has no type either.
fn answered(x: &mut RequestContext, answer: DoResponse) -> Response<Body> {
    let mut response = done(x, answer);
    if response.status() == StatusCode::NO_CONTENT {
        response.headers_mut().remove(CONTENT_TYPE);
    }
    response
}

impl Local {
    pub(super) async fn connect(&self, x: &mut RequestContext) -> Response<Body> {
        let dial = match self.decided(x).await {
            Ok(Decision::Dial(dial)) => dial,
            Ok(Decision::Answered(answer)) => return answered(x, answer),
            Err(status) => return respond::status(x, &status),
        };
        let dial = match Dial::try_from(dial) {
            Ok(dial) => dial,
            Err(error) => return respond::status(x, &Status::internal(error)),
        };
        x.known_resource = true;
        // Kept for what may have to be said after the request is gone.
        let (headers, query) = (x.parts.headers.clone(), x.query().to_owned());
        let request = x.take_request().map(Body::into_proxy);
        let connecting = Connecting { dial: &dial, client: &x.connection.client, info: &x.info };
        match self.proxy.connect(connecting, request).await {
            Ok(response) => response.map(Body::from),
            Err(status) => respond::status_for(&headers, &query, &status),
        }
    }

    async fn decided(&self, x: &RequestContext) -> Result<Decision, Refused> {
        let mut request = self.request(x, ConnectRequest { call: Some(call_of(x, Bytes::new())) });
        request.set_timeout(DECISION);
        let response = self.answered(x, client(&self.transport.calls).connect(request)).await?;
        let nothing = || Box::new(Status::internal("the control service has not said where to connect"));
        response.into_inner().decision.ok_or_else(nothing)
    }
}
