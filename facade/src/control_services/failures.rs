//! What a failed call means for sending it again: whether its control service was lost, and whether that can have received it.

use std::error::Error;
use std::sync::Arc;

use tonic::{Code, ConnectError, Status, TimeoutExpired};

/// Source of the failures of calls that were given up here.
#[derive(Debug, thiserror::Error)]
#[error("canceled")]
pub(super) struct GivenUp;

/// Failure of a call whose control service was lost before it answered.
pub(crate) fn lost(message: impl Into<String>) -> Status {
    let mut status = Status::unavailable(message);
    status.set_source(Arc::new(GivenUp));
    status
}

/// Prefix of tonic's message of a failure that is inferred from an HTTP status.
const INFERRED: &str = "grpc-status header missing";

/// True if a control service has answered with this failure. A failure with a source was made here, by the transport or by [`lost`]; one
/// that is inferred from an HTTP status is the answer of a proxy in front of the control service.
pub(crate) fn is_answer(failure: &Status) -> bool {
    failure.source().is_none() && !failure.message().starts_with(INFERRED)
}

/// Whether the call was not answered because its control service, or the connection to it, was lost: what changes nothing
/// may be asked of another one.
pub(crate) fn was_lost(failure: &Status) -> bool {
    match failure.code() {
        Code::Unavailable => true,
        // A deadline is the caller's own.
        _ if !is_answer(failure) => !is_late(failure),
        _ => false,
    }
}

/// True if the deadline of the call has passed.
pub(super) fn is_late(failure: &Status) -> bool {
    any(failure, |cause| cause.is::<TimeoutExpired>())
}

/// Whether the call certainly never reached a control service: there was no connection, it had not been given to one, or the
/// other side has reported that it did not process it.
pub(crate) fn never_received(failure: &Status) -> bool {
    any(failure, |cause| {
        cause.is::<ConnectError>()
            || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
            || cause
                .downcast_ref::<h2::Error>()
                .is_some_and(|error| error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// Whether any cause of a failure is so.
fn any(failure: &Status, is: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
    let mut cause = failure.source();
    while let Some(error) = cause {
        if is(error) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use portico_proto::objects::DoRequest;
    use portico_proto::objects::objects_client::ObjectsClient;

    use super::*;
    use crate::control_services::CallReason;

    fn made_of(error: impl Error + Send + Sync + 'static) -> Status {
        Status::from_error(Box::new(error))
    }

    #[test]
    fn what_found_no_connection_or_was_refused_unread_was_never_received() {
        let refused = ConnectError(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)));
        assert!(never_received(&made_of(refused)));
        let unread = made_of(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(!never_received(&unread) && was_lost(&unread));
        assert!(!never_received(&Status::unavailable("said by the control service")));
    }

    #[tokio::test]
    async fn the_error_of_a_proxy_in_front_is_no_answer_of_a_control_service() {
        for code in [502, 503, 504] {
            let proxy = tower::service_fn(move |_: http::Request<tonic::body::Body>| async move {
                let mut response = http::Response::new(tonic::body::Body::empty());
                *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
                Ok::<_, std::convert::Infallible>(response)
            });
            let failure = ObjectsClient::new(proxy).r#do(DoRequest::default()).await.unwrap_err();
            assert!(!is_answer(&failure) && was_lost(&failure), "{code}: {failure}");
            let reason = format!("a proxy in front of the control service answered with HTTP status {code}");
            assert_eq!(CallReason(&failure).to_string(), reason);
        }
    }

    #[test]
    fn an_answer_and_a_deadline_are_no_loss() {
        assert!(!was_lost(&Status::invalid_argument("no")) && !was_lost(&Status::internal("no")));
        assert!(!was_lost(&made_of(TimeoutExpired(()))));
        assert!(was_lost(&Status::unavailable("not here")));
        assert!(is_answer(&Status::unavailable("not here")) && !is_answer(&lost("not here")));
        assert!(!is_answer(&made_of(TimeoutExpired(()))));
    }
}
