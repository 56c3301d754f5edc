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
use crate::served::ServedResource;

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

pub(super) use accept::Choice as Wanted;

/// Status 415 for patches and 406, as upstream's route table returns them before the handler runs.
pub(super) fn check_route(action: Verb, served: &ServedResource, call: &Call) -> Result<()> {
    if served.custom.is_some() {
        return check_custom(action, call);
    }
    if action == Verb::Patch && !body::route_takes_patch(&call.content_type) {
        let status = Status::failure(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
        return Err(Box::new(status.with_details(Details::default())));
    }
    let more: &[&str] = if matches!(action, Verb::List | Verb::Watch) { &WATCH_TYPES } else { &[] };
    check_accept(call, &MEDIA_TYPES, more)
}

/// Checks a custom resource, which has no route table: the handler reports unsupported media types.
fn check_custom(action: Verb, call: &Call) -> Result<()> {
    let taken = |text| body::is_patch(text) && !body::is_strategic(text);
    if action == Verb::Patch && !taken(&call.content_type) {
        return Err(Box::new(Status::unsupported_media_type(&CUSTOM_PATCHES)));
    }
    Ok(())
}

/// Checks a request for a log: the route accepts text, which the handler does not know.
pub(super) fn check_log(served: &ServedResource, call: &Call) -> Result<()> {
    check_accept(call, &LOG_TYPES, &[])?;
    object(served, call).map(drop)
}

/// Status 406 if the client accepts none of the known types; the message contains these types and `more`.
fn check_accept(call: &Call, known: &[&str], more: &[&str]) -> Result<()> {
    if call.accept.is_empty() || accept::route_takes(&call.accept, known) {
        return Ok(());
    }
    Err(Box::new(Status::no_representation(&[known, more].concat())))
}

fn choose(call: &Call, offer: Offer<'_>, listed: &[&str]) -> Result<Wanted> {
    accept::negotiate(&call.accept, offer).ok_or_else(|| Box::new(Status::not_acceptable(listed)))
}

/// Available encodings of a kind, with these forms in addition to the plain one.
fn offer<'a>(served: &ServedResource, forms: &'a [Form]) -> Offer<'a> {
    Offer { encodings: &Encoding::ALL, forms, sealed: served.sealed }
}

/// Negotiates the form of an object.
pub(super) fn object(served: &ServedResource, call: &Call) -> Result<Wanted> {
    let wanted = shape(served, call)?;
    check_object(wanted, served)?;
    Ok(wanted)
}

/// Negotiates the form of an object that may be absent: status 404 precedes the errors of [`check_object`].
pub(super) fn shape(served: &ServedResource, call: &Call) -> Result<Wanted> {
    choose(call, offer(served, &Form::SHAPES), &MEDIA_TYPES)
}

/// Refuses the form of a list.
pub(super) fn check_object(wanted: Wanted, served: &ServedResource) -> Result<()> {
    match wanted.form {
        Form::MetadataList(_) => {
            Err(unfit("PartialObjectMetadataList", "is not a list", &served.info.gvk.kind))
        }
        _ => Ok(()),
    }
}

/// Status 406. Upstream does not consider further clauses of the Accept header then.
fn unfit(form: &str, why: &str, kind: &str) -> Box<Status> {
    let message = format!("you requested {form}, but the requested object {why} ({kind})");
    Box::new(Status::failure(Reason::NotAcceptable, message))
}

/// Negotiates the form of the result of an action, which is not stored and has neither columns nor separate metadata.
pub(super) fn made(served: &ServedResource, call: &Call) -> Result<Wanted> {
    choose(call, offer(served, &[]), &MEDIA_TYPES)
}

/// Negotiates the form of a list.
pub(super) fn list(served: &ServedResource, call: &Call) -> Result<Wanted> {
    let wanted = choose(call, offer(served, &Form::SHAPES), &MEDIA_TYPES)?;
    match wanted.form {
        Form::Metadata(_) => Err(unfit("PartialObjectMetadata", "is a list", &served.info.list_kind)),
        _ => Ok(wanted),
    }
}

/// Negotiates the form of a watch.
pub(super) fn watch(served: &ServedResource, call: &Call) -> Result<Wanted> {
    let wanted = choose(call, offer(served, &Form::SHAPES), &WATCH_TYPES)?;
    // A preferred type without a stream format is refused, even if other accepted types have one.
    if wanted.encoding == Encoding::Yaml {
        return Err(Box::new(Status::not_acceptable(&WATCH_TYPES)));
    }
    Ok(wanted)
}

/// Failure in an encoding that the client accepts; indented JSON if it accepts none.
pub(super) fn failure(status: Status, header: &str) -> Answer {
    let offer = Offer { encodings: &Encoding::ALL, forms: &[], sealed: true };
    match accept::negotiate(header, offer) {
        Some(wanted) => Answer { pretty: wanted.pretty, ..Answer::status(status).encoded(wanted.encoding) },
        None => Answer { pretty: true, ..Answer::status(status) },
    }
}

/// Field selector for a path of a single object under the deprecated prefix `/watch/`.
///
/// # Errors
/// Status 400 for a selector that selects another name.
pub(super) fn only_name(name: &str, asked: FieldSelector) -> Result<FieldSelector> {
    if !asked.is_empty() {
        if asked.requires_exact_match("metadata.name") == Some(name) {
            return Ok(asked);
        }
        let why = "fieldSelector metadata.name doesn't match requested name";
        return Err(Box::new(Status::bad_request(why)));
    }
    let escaped = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    FieldSelector::parse(&format!("metadata.name={escaped}"))
        .map_err(|e| Box::new(Status::bad_request(e.to_string())))
}
