//! MaxInFlight: two limits, for reads and for all other requests; long-running requests are exempt (1.8).
//!
//! Used if priority and fairness is off.

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use portico_flow::RequestKind;
use portico_machinery::user::MASTERS;
use tower_http::validate_request::ValidateRequest;

use crate::body::Body;
use crate::in_flight::InFlight;
use crate::metrics::Terminated;
use crate::request::{Request, RequestView, Response};
use crate::respond;

/// Layer that limits requests in flight.
#[derive(Clone)]
pub struct MaxInFlight {
    /// Counts the requests.
    pub in_flight: InFlight,
}

impl ValidateRequest<Body> for MaxInFlight {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        if request.target().long_running {
            return Ok(());
        }
        let kind = RequestKind::from_request(request.info());
        let master = request.user().in_group(MASTERS);
        let permit = self.in_flight.admit(kind, master).ok_or_else(too_many)?;
        let _ = request.record().permit.set(permit);
        Ok(())
    }
}

fn too_many() -> Response {
    let message = "Too many requests, please try again later.";
    let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response.extensions_mut().insert(Terminated);
    response
}
