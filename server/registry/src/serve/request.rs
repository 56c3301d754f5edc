//! Call with a known route: decodes the request, runs the verb, and encodes the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use portico_kit::{slow_trace, spans};
use portico_machinery::accept::{Encoding, Form};
use portico_machinery::object::cut_at;
use portico_machinery::status::Details;
use portico_machinery::{Object, Status};
use portico_schema::Schema;

use super::body;
use super::negotiate::{self, Wanted};
use super::verb::Verb;
use crate::Result;
use crate::answer::{Answer, Body};
use crate::call::{BODY_LIMIT, Call};
use crate::forms::{self, Include, Renderer};
use crate::handlers::HandlerTable;
use crate::latencies;
use crate::list::Page;
use crate::objects::Objects;
use crate::options::{DeleteOptions, Query};
use crate::recorded::{Recorded, Recorder};
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::typed::{Context, Deleted, Place, Written};
use crate::unreadable;
use crate::verbs::Verbs;
use crate::views::ViewTarget;

/// Duration above which a request is logged (upstream's threshold).
const SLOW: Duration = Duration::from_millis(500);
/// Maximum length of a value in such a log line.
const MAX_SHOWN_BYTES: usize = 256;

/// Name of the verb's handler in upstream's traces.
fn trace_name(action: Verb) -> Option<&'static str> {
    match action {
        Verb::Get => Some("Get"),
        Verb::List => Some("List"),
        Verb::Watch => None,
        Verb::Create => Some("Create"),
        Verb::Update => Some("Update"),
        Verb::Patch => Some("Patch"),
        Verb::Delete | Verb::DeleteCollection => Some("Delete"),
    }
}

/// Components that answer calls.
pub(super) struct Handling {
    pub(super) verbs: Arc<Verbs>,
    /// Actions and connections of subresources.
    pub(super) handlers: HandlerTable,
    /// Schema of delete options, for YAML bodies.
    pub(super) delete_options: Option<Schema>,
}

/// Call with a known route.
pub(super) struct Request<'a> {
    pub(super) handler: &'a Handling,
    pub(super) call: &'a Call,
    pub(super) context: &'a Context,
    pub(super) recorder: &'a Recorder,
    pub(super) served: Arc<ServedResource>,
    pub(super) query: Query<'a>,
    pub(super) namespace: &'a str,
    pub(super) place: Place<'a>,
}

impl Request<'_> {
    /// Runs the verb of the call, with tracing and log of slow requests.
    pub(super) async fn answer(&self, action: Verb) -> Result<Answer> {
        // A watch has none of these parts, and its duration is not limited.
        let Some(name) = trace_name(action) else { return self.carry_out(action).await };
        let span = spans::child(name);
        if span.is_recorded() {
            for (key, value) in self.trace_fields() {
                span.set(key, value.to_owned());
            }
        }
        // Line breaks in values sent by a client would look like separate log lines.
        let describe = || self.trace_fields().map(|(key, value)| format!("{key}:{}", shown(value))).join(",");
        let carried_out = async {
            let answer = self.carry_out(action).await;
            latencies::note(&self.context.annotations, self.call.recorded != Recorded::Nothing);
            answer
        };
        slow_trace::watch(name, SLOW, describe, span.within(carried_out)).await
    }

    /// Fields of a request in upstream's traces (`traceFields`), as far as they are available.
    fn trace_fields(&self) -> [(&'static str, &str); 9] {
        let target = &self.call.target;
        [
            ("accept", &self.call.accept),
            ("api-group", &target.group),
            ("api-version", &target.version),
            ("name", &target.name),
            ("subresource", &target.subresource),
            ("namespace", &target.namespace),
            ("resource", &target.resource),
            ("user-agent", &self.call.user_agent),
            ("verb", &self.call.verb),
        ]
    }

    async fn carry_out(&self, action: Verb) -> Result<Answer> {
        match action {
            Verb::Get => self.get().await,
            Verb::List => self.list().await,
            Verb::Watch => self.watch().await,
            Verb::Create => self.create().await,
            Verb::Update => self.update().await,
            Verb::Patch => self.patch().await,
            Verb::Delete => self.delete().await,
            Verb::DeleteCollection => self.delete_collection().await,
        }
    }

    pub(super) fn verbs(&self) -> &Arc<Verbs> {
        &self.handler.verbs
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.handler.verbs.objects
    }

    /// View that the path addresses, if any.
    fn view(&self) -> Option<ViewTarget<'_>> {
        let viewed = self.served.view(self.place.part)?;
        Some(ViewTarget { parent: &self.served, viewed, place: self.place })
    }

    /// Kind of the responses of the path.
    fn answered(&self) -> &ServedResource {
        self.served.view(self.place.part).map_or(&self.served, |viewed| &viewed.served)
    }

    fn check_size(&self) -> Result<()> {
        if self.call.body.len() > BODY_LIMIT {
            return Err(Box::new(Status::too_large(BODY_LIMIT)));
        }
        Ok(())
    }

    fn include(&self, form: Form) -> Result<Include> {
        match form {
            Form::Table(_) => Include::parse(self.query.first("includeObject")),
            _ => Ok(Include::default()),
        }
    }

    /// Object as an answer. `cached` is false for results of writes, which may differ from the stored state of their revision.
    fn object(&self, code: u16, stored: &Stored, wanted: Wanted, cached: bool) -> Result<Answer> {
        let renderer = Renderer {
            cache: cached.then_some(&self.objects().forms),
            served: self.answered(),
            form: wanted.form,
            encoding: wanted.encoding,
            include: self.include(wanted.form)?,
            now: self.objects().moment().now,
        };
        if self.recorder.wants_response() && wanted.encoding == Encoding::Protobuf {
            let json = Renderer { encoding: Encoding::Json, ..renderer }.document(stored.record());
            self.recorder.response(json.into());
        }
        let body = renderer.document(stored.record()).into();
        Ok(Answer::json(code, body, stored.revision()).dressed(wanted))
    }

    /// Answer of a write. A refusal also returns the warnings about the body.
    fn written(&self, written: Result<Written>, wanted: Wanted, mut warnings: Vec<String>) -> Result<Answer> {
        let written = match written {
            Ok(written) => written,
            Err(status) => return Err(status.with_warnings(warnings)),
        };
        let code = if written.created { 201 } else { 200 };
        let mut answer = self.object(code, &written.stored, wanted, false)?;
        warnings.extend(written.warnings);
        answer.warnings = warnings;
        Ok(answer)
    }

    async fn get(&self) -> Result<Answer> {
        let wanted = negotiate::shape(self.answered(), self.call)?;
        if self.query.flag("export") == Some(true) {
            return Err(Box::new(Status::bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported",
            )));
        }
        let options = self.query.version_options()?;
        self.objects().reach(&self.served, options.unwrap_or(0)).await?;
        let stored = match self.view() {
            Some(view) => self.objects().get_view(view).await?,
            None => Stored::new(self.objects().get(&self.served, self.namespace, self.place.name).await?),
        };
        negotiate::check_object(wanted, self.answered())?;
        self.object(200, &stored, wanted, true)
    }

    async fn list(&self) -> Result<Answer> {
        let wanted = negotiate::list(&self.served, self.call)?;
        let options = self.query.list_options(false)?;
        let include = self.include(wanted.form)?;
        let page = self.objects().list(&self.served, self.namespace, &options).await?;
        let revision = page.revision;
        let warnings = unreadable::warning(&self.served.resource, &page.unreadable).into_iter().collect();
        let body = self.page(wanted, include, page).await?;
        Ok(Answer { body, warnings, ..Answer::json(200, Bytes::new(), revision) }.dressed(wanted))
    }

    /// Page as the body of an answer.
    async fn page(&self, wanted: Wanted, include: Include, page: Page) -> Result<Body> {
        if self.recorder.wants_response() && wanted.encoding == Encoding::Protobuf {
            let json = Wanted { encoding: Encoding::Json, ..wanted };
            let body = forms::stream(self.objects(), &self.served, json, include, page.clone()).await?;
            self.recorder.response(gathered(body).await?);
        }
        forms::stream(self.objects(), &self.served, wanted, include, page).await
    }

    async fn watch(&self) -> Result<Answer> {
        let wanted = negotiate::watch(&self.served, self.call)?;
        let mut options = self.query.list_options(true)?;
        if !self.place.name.is_empty() {
            options.fields = negotiate::only_name(self.place.name, options.fields)?;
        }
        let include = self.include(wanted.form)?;
        let watch = self.objects().watch(&self.served, self.namespace, &options, wanted, include).await?;
        Ok(Answer { body: Body::Watch(watch), ..Answer::json(200, Bytes::new(), 0) }.dressed(wanted))
    }

    async fn create(&self) -> Result<Answer> {
        let target = &self.call.target;
        let action = self.handler.handlers.action(&self.served, &target.subresource);
        let wanted = if action.is_some() {
            negotiate::made(&self.served, self.call)
        } else {
            negotiate::object(&self.served, self.call)
        }?;
        let format = body::format(&self.served, self.call)?;
        self.check_size()?;
        let options = self.query.create_options()?;
        if let Some(action) = action {
            return self.act(action, wanted, format, &options).await;
        }
        if !self.served.info.stored {
            return Err(Box::new(Status::no_method()));
        }
        let info = &self.served.info;
        let decoded = body::decode(
            &self.handler.verbs.objects.scheme,
            self.call,
            format,
            &info.schema,
            &info.gvk,
            options.field_validation,
        )?;
        self.record(&decoded.object, &self.served);
        let written =
            self.verbs().create(self.context, &self.served, self.namespace, decoded.object, &options).await;
        self.written(written, wanted, decoded.strict)
    }

    async fn update(&self) -> Result<Answer> {
        let wanted = negotiate::object(self.answered(), self.call)?;
        let format = body::format(self.answered(), self.call)?;
        self.check_size()?;
        let options = self.query.update_options()?;
        let view = self.view();
        let info = view.map_or(&self.served.info, |view| &view.viewed.served.info);
        let decoded = body::decode(
            &self.handler.verbs.objects.scheme,
            self.call,
            format,
            &info.schema,
            &info.gvk,
            options.field_validation,
        )?;
        self.record(&decoded.object, view.map_or(&self.served, |view| &view.viewed.served));
        let written = match (crate::patch::check_name(&decoded.object, self.place.name), view) {
            (Err(status), _) => Err(status),
            (Ok(()), Some(view)) => {
                self.verbs().update_view(self.context, view, decoded.object, &options).await
            }
            (Ok(()), None) => {
                self.verbs().update(self.context, &self.served, self.place, decoded.object, &options).await
            }
        };
        self.written(written, wanted, decoded.strict)
    }

    async fn patch(&self) -> Result<Answer> {
        let wanted = negotiate::object(self.answered(), self.call)?;
        self.check_size()?;
        if body::is_apply(&self.call.content_type) {
            return self.apply(wanted).await;
        }
        let options = self.query.patch_options()?;
        let patch = body::patch(self.call)?;
        self.recorder.patch(&self.call.body);
        let written = match self.view() {
            Some(view) => self.verbs().patch_view(self.context, view, &patch, &options).await,
            None => self.verbs().patch(self.context, &self.served, self.place, &patch, &options).await,
        };
        self.written(written, wanted, Vec::new())
    }

    async fn apply(&self, wanted: Wanted) -> Result<Answer> {
        let options = self.query.apply_options()?;
        let config = &self.call.body;
        self.recorder.patch(config);
        let written = match self.view() {
            Some(view) => self.verbs().apply_view(self.context, view, config, &options).await,
            None => self.verbs().apply(self.context, &self.served, self.place, config, &options).await,
        };
        self.written(written, wanted, Vec::new())
    }

    async fn delete(&self) -> Result<Answer> {
        let wanted = negotiate::object(&self.served, self.call)?;
        self.check_size()?;
        let options =
            body::delete_options(self.handler.delete_options.as_ref(), self.call, &self.query, &self.served)?;
        self.record_delete_options();
        let options = self.objects().checked_delete(options, false)?;
        let (namespace, name, options) = (self.namespace, self.place.name, &options);
        let deleted = if options.ignore_read_error {
            self.verbs().delete_unreadable(self.context, &self.served, namespace, name).await?
        } else {
            self.verbs().delete(self.context, &self.served, namespace, name, options).await?
        };
        let mut answer = self.deleted(wanted, options, &deleted)?;
        answer.warnings.extend(deleted.warnings);
        answer.warnings.extend(self.served.strategies.delete.delete_warnings(options));
        Ok(answer)
    }

    /// Records the object of a request for the audit event.
    fn record(&self, object: &Object, served: &ServedResource) {
        self.recorder.object(object, &served.info.schema, |whole| {
            served.complete(whole, self.objects().moment());
            served.to_version(whole);
        });
    }

    /// Records delete options in a body; those in the query are part of the request line.
    fn record_delete_options(&self) {
        let Some(schema) = &self.handler.delete_options else { return };
        if self.recorder.wants_request()
            && let Some(options) = body::untagged_options(schema, self.call, &self.served)
        {
            self.recorder.delete_options(options, schema);
        }
    }

    /// Answer of a delete.
    fn deleted(&self, wanted: Wanted, options: &DeleteOptions, deleted: &Deleted) -> Result<Answer> {
        let Deleted { stored, removed, .. } = deleted;
        if !removed {
            let accepted = options.orphan_dependents == Some(false);
            return self.object(if accepted { 202 } else { 200 }, stored, wanted, false);
        }
        if self.served.info.deletion.answers_object && !options.ignore_read_error {
            return self.object(200, stored, wanted, false);
        }
        let status = Status::success(Some(Details {
            name: self.place.name.to_owned(),
            group: self.served.resource.group.clone(),
            kind: self.served.resource.resource.clone(),
            uid: stored.uid().to_owned(),
            ..Details::default()
        }));
        Ok(Answer { revision: stored.revision(), ..Answer::status(status) }.dressed(wanted))
    }

    async fn delete_collection(&self) -> Result<Answer> {
        let wanted = negotiate::list(&self.served, self.call)?;
        self.check_size()?;
        let select = self.query.list_options(false)?;
        let options =
            body::delete_options(self.handler.delete_options.as_ref(), self.call, &self.query, &self.served)?;
        self.record_delete_options();
        let options = self.objects().checked_delete(options, true)?;
        let include = self.include(wanted.form)?;
        let page = self.verbs().select_collection(&self.served, self.namespace, &select).await?;
        let (records, listed) = (page.records.clone(), page.revision);
        let left_out = unreadable::warning(&self.served.resource, &page.unreadable);
        // Encode the first piece before the deletions: an unsupported form must not delete anything.
        let body = self.page(wanted, include, page).await?;
        let deletion =
            self.verbs().delete_collection(self.context, &self.served, self.namespace, &records, &options);
        let last = deletion.await.inspect_err(|_| self.recorder.response(Bytes::new()))?;
        let revision = listed.max(last);
        let warnings =
            left_out.into_iter().chain(self.served.strategies.delete.delete_warnings(&options)).collect();
        Ok(Answer { body, warnings, ..Answer::json(200, Bytes::new(), revision) }.dressed(wanted))
    }
}

/// Collects a body into one piece.
async fn gathered(body: Body) -> Result<Bytes> {
    Ok(match body {
        Body::Bytes(bytes) => bytes,
        Body::List(parts) => {
            let whole = parts.try_fold(BytesMut::new(), |mut whole, part| {
                // Data beyond the limit is not recorded, so it need not be collected.
                if whole.len() <= BODY_LIMIT {
                    whole.extend_from_slice(&part);
                }
                std::future::ready(Ok(whole))
            });
            whole.await?.freeze()
        }
        Body::Watch(_) => Bytes::new(),
    })
}

impl Answer {
    /// Sets the negotiated encoding and indentation.
    pub(super) fn dressed(self, wanted: Wanted) -> Self {
        let pretty = wanted.pretty && wanted.encoding == Encoding::Json;
        Self { pretty, ..self.encoded(wanted.encoding) }
    }
}

/// Value with escapes and limited length, for log lines.
fn shown(value: &str) -> String {
    cut_at(value.escape_debug().to_string(), MAX_SHOWN_BYTES)
}
