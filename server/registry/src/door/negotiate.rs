//! Content negotiation: which encoding and which form a caller gets (rules 3.3, 8.1 to 8.3).

use portico_machinery::Status;
use portico_machinery::accept::{self, Encoding, Form, Offer};
use portico_machinery::selector::FieldSelector;
use portico_machinery::status::{Details, Reason};

use super::route::Action;
use crate::Result;
use crate::answer::Answer;
use crate::call::Call;

/// Media types as upstream lists them.
const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const WATCH_TYPES: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

const LOG_TYPES: [&str; 4] =
    ["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

const OBJECT_FORMS: [Form; 3] = [Form::Table, Form::TableV1Beta1, Form::Metadata];
const LIST_FORMS: [Form; 3] = [Form::Table, Form::TableV1Beta1, Form::MetadataList];

pub(super) use accept::Choice as Wanted;

/// What the route table refuses before the handler is asked: 415 of a patch, 406.
pub(super) fn check_route(action: Action, call: &Call) -> Result<()> {
    let is_patch = |text| super::body::is_apply(text) || super::body::patch_type(text).is_some();
    if action == Action::Patch && !is_patch(&call.content_type) {
        let status = Status::failure(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
        return Err(Box::new(status.with_details(Details::default())));
    }
    let more: &[&str] = if matches!(action, Action::List | Action::Watch) { &WATCH_TYPES } else { &[] };
    check_accept(call, &MEDIA_TYPES, more)
}

/// What a log's route and its handler refuse: the route has text, which the handler does not know.
pub(super) fn check_log(call: &Call) -> Result<()> {
    check_accept(call, &LOG_TYPES, &[])?;
    object(call).map(drop)
}

/// 406 for who reads none of the known types, with all of them and what else is told.
fn check_accept(call: &Call, known: &[&str], more: &[&str]) -> Result<()> {
    let clauses = accept::parse_accept(&call.accept);
    let reads = |clause: &accept::MediaType| {
        let essence = clause.essence();
        essence == "*/*" || known.contains(&essence.as_str())
    };
    if call.accept.trim().is_empty() || clauses.iter().any(reads) {
        return Ok(());
    }
    let listed = [known, more].concat().join(", ");
    let message = format!("406: Not Acceptable\n\nAvailable representations: {listed}");
    Err(Box::new(Status::failure(Reason::NotAcceptable, message).with_details(Details::default())))
}

fn choose(call: &Call, encodings: &[Encoding], forms: &[Form], listed: &[&str]) -> Result<Wanted> {
    accept::negotiate(&call.accept, Offer { encodings, forms })
        .ok_or_else(|| Box::new(Status::not_acceptable(listed)))
}

/// For one object.
pub(super) fn object(call: &Call) -> Result<Wanted> {
    choose(call, &Encoding::ALL, &OBJECT_FORMS, &MEDIA_TYPES)
}

/// For what an action makes: it is kept nowhere, and has no columns and no metadata to show alone.
pub(super) fn made(call: &Call) -> Result<Wanted> {
    choose(call, &Encoding::ALL, &[], &MEDIA_TYPES)
}

/// For a list.
pub(super) fn list(call: &Call) -> Result<Wanted> {
    choose(call, &Encoding::ALL, &LIST_FORMS, &MEDIA_TYPES)
}

/// For a watch.
pub(super) fn watch(call: &Call) -> Result<Wanted> {
    choose(call, &[Encoding::Json, Encoding::Protobuf], &OBJECT_FORMS, &WATCH_TYPES)
}

/// A failure in the encoding that the caller reads; indented JSON when it reads none of ours.
pub(super) fn failure(status: Status, header: &str) -> Answer {
    let offer = Offer { encodings: &Encoding::ALL, forms: &[] };
    match accept::negotiate(header, offer) {
        Some(wanted) => Answer { pretty: wanted.pretty, ..Answer::status(status).encoded(wanted.encoding) },
        None => Answer { pretty: true, ..Answer::status(status) },
    }
}

/// The selector that a single-object path of the deprecated watch prefix stands for.
pub(super) fn only_name(name: &str) -> Result<FieldSelector> {
    let escaped = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    FieldSelector::parse(&format!("metadata.name={escaped}"))
        .map_err(|e| Box::new(Status::bad_request(e.to_string())))
}
