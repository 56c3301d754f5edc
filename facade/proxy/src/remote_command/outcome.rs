//! Outcome of a command, which the client receives on its error channel: always a Status.

use portico_machinery::status::{Cause, Details};
use portico_machinery::{Reason, Status};
use tokio_tungstenite::tungstenite::Message;

use super::channel::{ERROR, message};
use super::version::Version;

/// Reason and cause of a command that exits with a code other than 0, in upstream's spelling.
const NON_ZERO: &str = "NonZeroExitCode";
const EXIT_CODE: &str = "ExitCode";

/// Outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// Exit code 0.
    Success,
    /// Another exit code.
    Exit(u8),
    /// The session failed, with this message.
    Failed(String),
    /// The client disconnected before the end.
    Disconnected,
}

impl CommandOutcome {
    /// Decodes the kubelet's error stream. `complete`: the stream ended normally, and was not reset or lost with its connection.
    pub(super) fn from_error_stream(version: Version, message: &[u8], complete: bool) -> Self {
        if message.is_empty() {
            // Upstream treats an empty stream as success; kubelets that support v4 always send a status.
            return match version.sends_status {
                true if !complete => Self::Failed("the kubelet did not say how the command ended".to_owned()),
                _ => Self::Success,
            };
        }
        let text = String::from_utf8_lossy(message);
        if !version.sends_status {
            return Self::Failed(format!("error executing remote command: {text}"));
        }
        let Some(status) = Status::from_json(message) else {
            return Self::Failed(format!("error stream protocol error: no Status in {text:?}"));
        };
        match (&*status.status, &*status.reason) {
            ("Success", _) => Self::Success,
            ("Failure", NON_ZERO) => exit(&status),
            ("Failure", _) => Self::Failed(status.message),
            _ => Self::Failed("error stream protocol error: unknown error".to_owned()),
        }
    }

    /// Encodes the outcome as a message to the client.
    pub(crate) fn message(&self) -> Message {
        message(ERROR, &self.status().to_untyped_json())
    }

    fn status(&self) -> Status {
        match self {
            Self::Success | Self::Disconnected => Status::success(None),
            Self::Exit(code) => {
                let message = format!(
                    "command terminated with non-zero exit code: command terminated with exit code {code}"
                );
                let mut status = Status::failure(Reason::Unknown, message);
                (status.reason, status.code) = (NON_ZERO.to_owned(), 0);
                let cause =
                    Cause { reason: EXIT_CODE.to_owned(), message: code.to_string(), ..Cause::default() };
                status.with_details(Details { causes: vec![cause], ..Details::default() })
            }
            Self::Failed(message) => Status::internal(message),
        }
    }

    /// Returns the code under which the translation is counted; the exit code of a command is not an error of the translation.
    pub(crate) fn code(&self) -> u16 {
        if matches!(self, Self::Failed(_)) { 500 } else { 200 }
    }
}

fn exit(status: &Status) -> CommandOutcome {
    let Some(details) = &status.details else {
        return CommandOutcome::Failed("error stream protocol error: details must be set".to_owned());
    };
    let Some(cause) = details.causes.iter().find(|cause| cause.reason == EXIT_CODE) else {
        return CommandOutcome::Failed(format!("error stream protocol error: no {EXIT_CODE} cause given"));
    };
    match cause.message.parse() {
        Ok(code) => CommandOutcome::Exit(code),
        Err(_) => CommandOutcome::Failed(format!(
            "error stream protocol error: invalid exit code value {:?}",
            cause.message
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_stream_is_read_as_upstreams_error_decoder_reads_it() {
        let v4 = Version::from_name("v4.channel.k8s.io").unwrap();
        let broken = |message: &str| CommandOutcome::Failed(message.to_owned());
        for (reported, want) in [
            (r#"{"metadata":{},"status":"Success"}"#, CommandOutcome::Success),
            (
                r#"{"metadata":{},"status":"Failure","message":"x","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#,
                CommandOutcome::Exit(7),
            ),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode"}"#,
                broken("error stream protocol error: details must be set"),
            ),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode","details":{}}"#,
                broken("error stream protocol error: no ExitCode cause given"),
            ),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"999"}]}}"#,
                broken("error stream protocol error: invalid exit code value \"999\""),
            ),
            (r#"{"status":"Failure","message":"no such container"}"#, broken("no such container")),
            (r#"{"status":"?"}"#, broken("error stream protocol error: unknown error")),
            ("nonsense", broken("error stream protocol error: no Status in \"nonsense\"")),
        ] {
            assert_eq!(CommandOutcome::from_error_stream(v4, reported.as_bytes(), true), want, "{reported}");
        }
        assert_eq!(CommandOutcome::from_error_stream(v4, b"", true), CommandOutcome::Success);
        assert_eq!(
            CommandOutcome::from_error_stream(v4, b"", false).code(),
            500,
            "a connection that breaks is no success"
        );
        let v3 = Version::from_name("v3.channel.k8s.io").unwrap();
        assert_eq!(CommandOutcome::from_error_stream(v3, b"", false), CommandOutcome::Success);
        assert_eq!(
            CommandOutcome::from_error_stream(v3, b"why", true),
            broken("error executing remote command: why")
        );
    }

    #[test]
    fn the_client_receives_upstreams_text() {
        for (ending, code, want) in [
            (CommandOutcome::Success, 200, r#"{"metadata":{},"status":"Success"}"#),
            (
                CommandOutcome::Exit(7),
                200,
                r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#,
            ),
            (
                CommandOutcome::Failed("why".to_owned()),
                500,
                r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: why","reason":"InternalError","details":{"causes":[{"message":"why"}]},"code":500}"#,
            ),
        ] {
            let status = String::from_utf8(ending.status().to_untyped_json()).unwrap();
            assert_eq!((ending.code(), status.as_str()), (code, want));
        }
    }
}
