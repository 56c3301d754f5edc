//! Content negotiation: encoding and form of a response (upstream's `negotiation` package and `transformResponseObject`).

use portico_machinery::Status;
use portico_machinery::accept::{self, Encoding, Form, Offer};
use portico_machinery::selector::FieldSelector;
use portico_machinery::status::{Details, Reason};

use super::body;
use super::verb::Verb;
use crate::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::served_resource::ServedResource;

/// Media types in upstream's order.
const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const WATCH_TYPES: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// Patch types of custom resources: strategic merge patches require types.
const CUSTOM_PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

const LOG_TYPES: [&str; 4] =
    ["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

pub(super) use accept::Choice as FormChoice;

/// Status 415 for patches and 406, as upstream's route table returns them before the handler runs.
pub(super) fn check_route(verb: Verb, served_resource: &ServedResource, call: &Call) -> Result<()> {
    if served_resource.custom.is_some() {
        return check_custom(verb, call);
    }
    if verb == Verb::Patch && !body::route_accepts_patch(&call.content_type) {
        let status = Status::failure(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
        return Err(Box::new(status.with_details(Details::default())));
    }
    let extra_types: &[&str] = if matches!(verb, Verb::List | Verb::Watch) { &WATCH_TYPES } else { &[] };
    check_accept(call, &MEDIA_TYPES, extra_types)
}

/// Checks a custom resource, which has no route table: the handler reports unsupported media types.
fn check_custom(verb: Verb, call: &Call) -> Result<()> {
    let is_supported = |text| body::is_patch(text) && !body::is_strategic(text);
    if verb == Verb::Patch && !is_supported(&call.content_type) {
        return Err(Box::new(Status::unsupported_media_type(&CUSTOM_PATCHES)));
    }
    Ok(())
}

/// Checks a request for a log: the route accepts text, which the handler does not know.
pub(super) fn check_log(served_resource: &ServedResource, call: &Call) -> Result<()> {
    check_accept(call, &LOG_TYPES, &[])?;
    object(served_resource, call).map(drop)
}

/// Status 406 if the client accepts none of `media_types`; the message contains them and `extra_types`.
fn check_accept(call: &Call, media_types: &[&str], extra_types: &[&str]) -> Result<()> {
    if call.accept.is_empty() || accept::route_accepts(&call.accept, media_types) {
        return Ok(());
    }
    Err(Box::new(Status::no_acceptable_representation(&[media_types, extra_types].concat())))
}

fn choose(call: &Call, offer: Offer<'_>, media_types: &[&str]) -> Result<FormChoice> {
    accept::negotiate(&call.accept, offer).ok_or_else(|| Box::new(Status::not_acceptable(media_types)))
}

/// Available encodings of a kind, with these forms in addition to the plain one.
fn offer<'a>(served_resource: &ServedResource, forms: &'a [Form]) -> Offer<'a> {
    Offer { encodings: &Encoding::ALL, forms, object_as_protobuf: served_resource.has_protobuf }
}

/// Negotiates the form of an object.
pub(super) fn object(served_resource: &ServedResource, call: &Call) -> Result<FormChoice> {
    let choice = possible_object(served_resource, call)?;
    check_object(choice, served_resource)?;
    Ok(choice)
}

/// Negotiates the form of an object that may be absent: status 404 precedes the errors of [`check_object`].
pub(super) fn possible_object(served_resource: &ServedResource, call: &Call) -> Result<FormChoice> {
    choose(call, offer(served_resource, &Form::SHAPES), &MEDIA_TYPES)
}

/// Refuses the form of a list.
pub(super) fn check_object(choice: FormChoice, served_resource: &ServedResource) -> Result<()> {
    match choice.form {
        Form::MetadataList(_) => Err(form_not_acceptable(
            "PartialObjectMetadataList",
            "is not a list",
            &served_resource.info.gvk.kind,
        )),
        _ => Ok(()),
    }
}

/// Status 406. Upstream does not consider further clauses of the Accept header then.
fn form_not_acceptable(form: &str, reason: &str, kind: &str) -> Box<Status> {
    let message = format!("you requested {form}, but the requested object {reason} ({kind})");
    Box::new(Status::failure(Reason::NotAcceptable, message))
}

/// Negotiates the form of the result of an action, which is not stored and has neither columns nor separate metadata.
pub(super) fn action_result(served_resource: &ServedResource, call: &Call) -> Result<FormChoice> {
    choose(call, offer(served_resource, &[]), &MEDIA_TYPES)
}

/// Negotiates the form of a list.
pub(super) fn list(served_resource: &ServedResource, call: &Call) -> Result<FormChoice> {
    let choice = choose(call, offer(served_resource, &Form::SHAPES), &MEDIA_TYPES)?;
    match choice.form {
        Form::Metadata(_) => {
            Err(form_not_acceptable("PartialObjectMetadata", "is a list", &served_resource.info.list_kind))
        }
        _ => Ok(choice),
    }
}

/// Negotiates the form of a watch.
pub(super) fn watch(served_resource: &ServedResource, call: &Call) -> Result<FormChoice> {
    let choice = choose(call, offer(served_resource, &Form::SHAPES), &WATCH_TYPES)?;
    // A preferred type without a stream format is refused, even if other accepted types have one.
    if choice.encoding == Encoding::Yaml {
        return Err(Box::new(Status::not_acceptable(&WATCH_TYPES)));
    }
    Ok(choice)
}

/// Failure in an encoding that the client accepts; indented JSON if it accepts none.
pub(super) fn failure(status: Status, header: &str) -> Answer {
    let offer = Offer { encodings: &Encoding::ALL, forms: &[], object_as_protobuf: true };
    match accept::negotiate(header, offer) {
        Some(choice) => {
            Answer { pretty: choice.pretty, ..Answer::status(status).with_encoding(choice.encoding) }
        }
        None => Answer { pretty: true, ..Answer::status(status) },
    }
}

/// Field selector for a path of a single object under the deprecated prefix `/watch/`.
///
/// # Errors
/// Status 400 for a selector that selects another name.
pub(super) fn select_name(name: &str, selector: FieldSelector) -> Result<FieldSelector> {
    if !selector.is_empty() {
        if selector.requires_exact_match("metadata.name") == Some(name) {
            return Ok(selector);
        }
        let message = "fieldSelector metadata.name doesn't match requested name";
        return Err(Box::new(Status::bad_request(message)));
    }
    let escaped = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    FieldSelector::parse(&format!("metadata.name={escaped}"))
        .map_err(|e| Box::new(Status::bad_request(e.to_string())))
}
