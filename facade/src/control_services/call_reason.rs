//! Reasons of failed calls to a control service, in plain words.

use std::error::Error;
use std::fmt;

use portico_kit::dial::source_reason;
use tonic::Status;

use super::failures::{CallCanceled, is_from_control_service, is_late};

/// Reason of a failed call: the message of the control service, or the failure of the connection.
pub(crate) struct CallReason<'a>(pub(crate) &'a Status);

impl fmt::Display for CallReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.0;
        match status.source() {
            None if is_from_control_service(status) => f.write_str(status.message()),
            // The message of tonic ends with the HTTP status.
            None => {
                let code = status.message().rsplit(' ').next().unwrap_or_default();
                write!(f, "a proxy in front of the control service answered with HTTP status {code}")
            }
            Some(source) if source.is::<CallCanceled>() => f.write_str(status.message()),
            Some(_) if is_late(status) => f.write_str("the control service did not answer in time"),
            // The messages of the transport are not meant for users.
            Some(source) => f.write_str(source_reason(source).as_deref().unwrap_or("the call was canceled")),
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_proto::config::PingRequest;
    use portico_proto::config::config_client::ConfigClient;
    use tokio::net::TcpListener;
    use tonic::transport::Endpoint;

    use super::*;
    use crate::control_services::failures::lost_status;

    async fn reason(endpoint: &Endpoint) -> String {
        let mut client = ConfigClient::new(endpoint.connect_lazy());
        CallReason(&client.ping(PingRequest::default()).await.unwrap_err()).to_string()
    }

    #[tokio::test]
    async fn a_broken_connection_is_reported_in_plain_words() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Endpoint::from_shared(format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let closing = async { drop(listener.accept().await.unwrap()) };
        let (closed, ()) = tokio::join!(reason(&server), closing);
        assert!(closed.contains("connection"), "{closed}");
        drop(listener);
        assert_eq!(reason(&server).await, "connection refused");
        for mark in ["://", "::", "Error", "{", "os error"] {
            assert!(!closed.contains(mark), "{closed}");
        }
    }

    #[test]
    fn messages_of_the_control_service_and_of_the_facade_are_passed_on() {
        let refused = Status::permission_denied("a facade of another store");
        assert_eq!(CallReason(&refused).to_string(), "a facade of another store");
        let lost = lost_status("the control service was lost");
        assert_eq!(CallReason(&lost).to_string(), "the control service was lost");
        let timed_out = Status::from_error(Box::new(tonic::TimeoutExpired(())));
        assert_eq!(CallReason(&timed_out).to_string(), "the control service did not answer in time");
    }
}
