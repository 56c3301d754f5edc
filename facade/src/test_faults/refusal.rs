//! The Status of a refusal: upstream's code, reason and message for the request that gets it.

use portico_machinery::status::{Details, Reason};
use portico_machinery::{GroupResource, RequestInfo, Status};

use super::fault::Fault;
use super::reasons::find;

/// Returns the Status that the fault causes for a request; `None` if the fault is not a refusal.
pub fn refusal(fault: &Fault, info: &RequestInfo) -> Option<Status> {
    let Fault::Status { code, reason, message, retry_after_seconds } = fault else { return None };
    let mut status = default_status(find(*code, reason.as_deref())?, info);
    if let Some(message) = message {
        status.message.clone_from(message);
    }
    if let Some(seconds) = retry_after_seconds {
        status = status.with_retry_after(*seconds);
    }
    Some(status)
}

/// Returns a Status with upstream's message for the reason, if it has one.
fn default_status(reason: Reason, info: &RequestInfo) -> Status {
    let resource = GroupResource::new(info.api_group.clone(), info.resource.clone());
    let name = info.name.as_str();
    let details = || Details {
        name: name.to_owned(),
        group: info.api_group.clone(),
        kind: info.resource.clone(),
        ..Details::default()
    };
    match reason {
        Reason::Unauthorized => Status::unauthorized(),
        Reason::Forbidden => Status::forbidden(&resource, name, "requested test fault"),
        Reason::NotFound => Status::not_found(&resource, name),
        Reason::AlreadyExists => Status::already_exists(&resource, name),
        Reason::Conflict => {
            let message =
                "the object has been modified; please apply your changes to the latest version and try again";
            Status::conflict(&resource, name, message)
        }
        Reason::Expired => Status::expired("The provided resource version is too old"),
        Reason::TooManyRequests => Status::too_many_requests("Too many requests, please try again later.", 1),
        Reason::InternalError => Status::internal("requested test fault"),
        Reason::ServiceUnavailable => {
            Status::unavailable("the server is currently unable to handle the request")
        }
        Reason::Timeout => Status::timeout("request did not complete within the allotted timeout"),
        Reason::ServerTimeout => {
            let message = format!(
                "The {} operation against {resource} could not be completed at this time, please try again.",
                info.verb
            );
            Status::failure(reason, message).with_details(details())
        }
        _ => Status::failure(reason, "requested test fault").with_details(details()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(fault: &str) -> Option<Status> {
        let info = RequestInfo::parse("PUT", "/apis/apps/v1/namespaces/a/deployments/web", "").unwrap();
        refusal(&serde_json::from_str(fault).unwrap(), &info)
    }

    #[test]
    fn a_code_or_a_reason_gives_a_complete_status() {
        for (fault, code, reason) in [
            (r#"{"status": {"code": 409}}"#, 409, "Conflict"),
            (r#"{"status": {"reason": "AlreadyExists"}}"#, 409, "AlreadyExists"),
            (r#"{"status": {"code": 410}}"#, 410, "Expired"),
            (r#"{"status": {"code": 410, "reason": "Gone"}}"#, 410, "Gone"),
            (r#"{"status": {"code": 429}}"#, 429, "TooManyRequests"),
            (r#"{"status": {"code": 500}}"#, 500, "InternalError"),
            (r#"{"status": {"code": 503}}"#, 503, "ServiceUnavailable"),
            (r#"{"status": {"code": 504}}"#, 504, "Timeout"),
        ] {
            let status = get(fault).unwrap();
            assert_eq!((status.code, status.reason.as_str()), (code, reason), "{fault}");
            assert!(!status.message.is_empty(), "{fault}");
        }
        let conflict = get(r#"{"status": {"code": 409}}"#).unwrap();
        assert!(
            conflict
                .message
                .starts_with("Operation cannot be fulfilled on deployments.apps \"web\": the object")
        );
        let custom = get(r#"{"status": {"code": 503, "message": "no", "retryAfterSeconds": 7}}"#).unwrap();
        assert_eq!((custom.message.as_str(), custom.retry_after_seconds()), ("no", 7));
        assert_eq!(get(r#"{"dropRequest": {}}"#), None);
    }
}
