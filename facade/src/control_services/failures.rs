//! Classification of failed calls: whether the control service was lost, and whether it can have received the call.

use std::error::Error;
use std::sync::Arc;

use tonic::{Code, ConnectError, Status, TimeoutExpired};

/// Source of failures of calls that the facade canceled.
#[derive(Debug, thiserror::Error)]
#[error("canceled")]
pub(super) struct CallCanceled;

/// Creates the failure of a call whose control service was lost before it responded.
pub(crate) fn lost_status(message: impl Into<String>) -> Status {
    let mut status = Status::unavailable(message);
    status.set_source(Arc::new(CallCanceled));
    status
}

/// Prefix of tonic's message for a failure that is inferred from an HTTP status.
const INFERRED_PREFIX: &str = "grpc-status header missing";

/// True if a control service returned this failure. A failure with a source was created in this process, by the transport or by
/// [`lost_status`]; one that is inferred from an HTTP status was returned by a proxy in front of the control service.
pub(crate) fn is_from_control_service(failure: &Status) -> bool {
    failure.source().is_none() && !failure.message().starts_with(INFERRED_PREFIX)
}

/// True if the call has no response because its control service, or the connection to it, was lost. A call that changes nothing
/// may then be repeated at another one.
pub(crate) fn is_service_lost(failure: &Status) -> bool {
    match failure.code() {
        Code::Unavailable => true,
        // Deadlines are set by the caller.
        _ if !is_from_control_service(failure) => !is_late(failure),
        _ => false,
    }
}

/// True if the deadline of the call has passed.
pub(super) fn is_late(failure: &Status) -> bool {
    any_cause(failure, |cause| cause.is::<TimeoutExpired>())
}

/// True if the call certainly never reached a control service: there was no connection, the call was not passed to it, or the
/// other side reported that it did not process the call.
pub(crate) fn was_never_received(failure: &Status) -> bool {
    any_cause(failure, |cause| {
        cause.is::<ConnectError>()
            || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
            || cause
                .downcast_ref::<h2::Error>()
                .is_some_and(|error| error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// True if any cause of a failure satisfies `matches`.
fn any_cause(failure: &Status, matches: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
    let mut cause = failure.source();
    while let Some(error) = cause {
        if matches(error) {
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

    fn status_with_source(error: impl Error + Send + Sync + 'static) -> Status {
        Status::from_error(Box::new(error))
    }

    #[test]
    fn calls_without_a_connection_or_refused_unprocessed_were_never_received() {
        let refused = ConnectError(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)));
        assert!(was_never_received(&status_with_source(refused)));
        let unread = status_with_source(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(!was_never_received(&unread) && is_service_lost(&unread));
        assert!(!was_never_received(&Status::unavailable("said by the control service")));
    }

    #[tokio::test]
    async fn an_error_of_a_proxy_is_not_from_a_control_service() {
        for code in [502, 503, 504] {
            let proxy = tower::service_fn(move |_: http::Request<tonic::body::Body>| async move {
                let mut response = http::Response::new(tonic::body::Body::empty());
                *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
                Ok::<_, std::convert::Infallible>(response)
            });
            let failure = ObjectsClient::new(proxy).r#do(DoRequest::default()).await.unwrap_err();
            assert!(!is_from_control_service(&failure) && is_service_lost(&failure), "{code}: {failure}");
            let reason = format!("a proxy in front of the control service answered with HTTP status {code}");
            assert_eq!(CallReason(&failure).to_string(), reason);
        }
    }

    #[test]
    fn a_response_and_a_deadline_are_no_loss() {
        assert!(
            !is_service_lost(&Status::invalid_argument("no")) && !is_service_lost(&Status::internal("no"))
        );
        assert!(!is_service_lost(&status_with_source(TimeoutExpired(()))));
        assert!(is_service_lost(&Status::unavailable("not here")));
        assert!(
            is_from_control_service(&Status::unavailable("not here"))
                && !is_from_control_service(&lost_status("not here"))
        );
        assert!(!is_from_control_service(&status_with_source(TimeoutExpired(()))));
    }
}
