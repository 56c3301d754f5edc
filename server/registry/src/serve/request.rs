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
use super::negotiate::{self, FormChoice};
use super::verb::Verb;
use crate::Result;
use crate::answer::{Answer, Body};
use crate::audit_record::{AuditDetail, Recorder};
use crate::call::{BODY_LIMIT, Call};
use crate::forms::{self, Include, Renderer};
use crate::handlers::HandlerTable;
use crate::latencies;
use crate::list::Page;
use crate::objects::Objects;
use crate::options::{DeleteOptions, Query};
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
use crate::unreadable;
use crate::verb_types::{Context, DeleteResult, ObjectPath, WriteResult};
use crate::verbs::Verbs;
use crate::views::ViewTarget;

/// Duration above which a request is logged (upstream's threshold).
const SLOW: Duration = Duration::from_millis(500);
/// Maximum length of a value in such a log line.
const MAX_SHOWN_BYTES: usize = 256;

/// Name of the verb's handler in upstream's traces.
fn trace_name(verb: Verb) -> Option<&'static str> {
    match verb {
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
pub(super) struct CallServices {
    pub(super) verbs: Arc<Verbs>,
    /// Actions and connections of subresources.
    pub(super) handlers: HandlerTable,
    /// Schema of delete options, for YAML bodies.
    pub(super) delete_options: Option<Schema>,
}

/// Call with a known route.
pub(super) struct Request<'a> {
    pub(super) services: &'a CallServices,
    pub(super) call: &'a Call,
    pub(super) context: &'a Context,
    pub(super) recorder: &'a Recorder,
    pub(super) served_resource: Arc<ServedResource>,
    pub(super) query: Query<'a>,
    pub(super) namespace: &'a str,
    pub(super) path: ObjectPath<'a>,
}

impl Request<'_> {
    /// Runs the verb of the call, with tracing and log of slow requests.
    pub(super) async fn answer(&self, verb: Verb) -> Result<Answer> {
        // A watch has none of these parts, and its duration is not limited.
        let Some(name) = trace_name(verb) else { return self.run_verb(verb).await };
        let span = spans::child(name);
        if span.is_recorded() {
            for (key, value) in self.trace_fields() {
                span.set_attribute(key, value.to_owned());
            }
        }
        // Line breaks in values sent by a client would look like separate log lines.
        let describe =
            || self.trace_fields().map(|(key, value)| format!("{key}:{}", escape_for_log(value))).join(",");
        let execution = async {
            let answer = self.run_verb(verb).await;
            latencies::record_durations(
                &self.context.annotations,
                self.call.audit_detail != AuditDetail::Nothing,
            );
            answer
        };
        slow_trace::watch(name, SLOW, describe, span.instrument(execution)).await
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

    async fn run_verb(&self, verb: Verb) -> Result<Answer> {
        match verb {
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
        &self.services.verbs
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.services.verbs.objects
    }

    /// View that the path addresses, if any.
    fn view(&self) -> Option<ViewTarget<'_>> {
        let served_view = self.served_resource.view(self.path.part)?;
        Some(ViewTarget { parent: &self.served_resource, served_view, path: self.path })
    }

    /// Kind of the responses of the path.
    fn response_kind(&self) -> &ServedResource {
        self.served_resource
            .view(self.path.part)
            .map_or(&self.served_resource, |served_view| &served_view.served_resource)
    }

    fn check_size(&self) -> Result<()> {
        if self.call.body.len() > BODY_LIMIT {
            return Err(Box::new(Status::too_large(BODY_LIMIT)));
        }
        Ok(())
    }

    fn row_content(&self, form: Form) -> Result<Include> {
        match form {
            Form::Table(_) => Include::parse(self.query.first("includeObject")),
            _ => Ok(Include::default()),
        }
    }

    /// Object as an answer. `cached` is false for results of writes, which may differ from the stored state of their revision.
    fn object(&self, code: u16, stored: &StoredObject, choice: FormChoice, cached: bool) -> Result<Answer> {
        let renderer = Renderer {
            cache: cached.then_some(&self.objects().forms),
            served_resource: self.response_kind(),
            form: choice.form,
            encoding: choice.encoding,
            include: self.row_content(choice.form)?,
            now: self.objects().request_time().now,
        };
        if self.recorder.wants_response() && choice.encoding == Encoding::Protobuf {
            let json = Renderer { encoding: Encoding::Json, ..renderer }.document(stored.record());
            self.recorder.response(json.into());
        }
        let body = renderer.document(stored.record()).into();
        Ok(Answer::json(code, body, stored.revision()).encode_as(choice))
    }

    /// Answer of a write. A refusal also returns the warnings about the body.
    fn write_answer(
        &self,
        outcome: Result<WriteResult>,
        choice: FormChoice,
        mut warnings: Vec<String>,
    ) -> Result<Answer> {
        let written = match outcome {
            Ok(written) => written,
            Err(status) => return Err(status.with_warnings(warnings)),
        };
        let code = if written.created { 201 } else { 200 };
        let mut answer = self.object(code, &written.stored, choice, false)?;
        warnings.extend(written.warnings);
        answer.warnings = warnings;
        Ok(answer)
    }

    async fn get(&self) -> Result<Answer> {
        let choice = negotiate::possible_object(self.response_kind(), self.call)?;
        if self.query.flag("export") == Some(true) {
            return Err(Box::new(Status::bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported",
            )));
        }
        let options = self.query.version_options()?;
        self.objects().wait_for_revision(&self.served_resource, options.unwrap_or(0)).await?;
        let stored = match self.view() {
            Some(view) => self.objects().get_view(view).await?,
            None => StoredObject::new(
                self.objects().get(&self.served_resource, self.namespace, self.path.name).await?,
            ),
        };
        negotiate::check_object(choice, self.response_kind())?;
        self.object(200, &stored, choice, true)
    }

    async fn list(&self) -> Result<Answer> {
        let choice = negotiate::list(&self.served_resource, self.call)?;
        let options = self.query.list_options(false)?;
        let include = self.row_content(choice.form)?;
        let page = self.objects().list(&self.served_resource, self.namespace, &options).await?;
        let revision = page.revision;
        let warnings =
            unreadable::warning(&self.served_resource.resource, &page.unreadable).into_iter().collect();
        let body = self.page(choice, include, page).await?;
        Ok(Answer { body, warnings, ..Answer::json(200, Bytes::new(), revision) }.encode_as(choice))
    }

    /// Page as the body of an answer.
    async fn page(&self, choice: FormChoice, include: Include, page: Page) -> Result<Body> {
        if self.recorder.wants_response() && choice.encoding == Encoding::Protobuf {
            let json = FormChoice { encoding: Encoding::Json, ..choice };
            let body =
                forms::stream(self.objects(), &self.served_resource, json, include, page.clone()).await?;
            self.recorder.response(collect_body(body).await?);
        }
        forms::stream(self.objects(), &self.served_resource, choice, include, page).await
    }

    async fn watch(&self) -> Result<Answer> {
        let choice = negotiate::watch(&self.served_resource, self.call)?;
        let mut options = self.query.list_options(true)?;
        if !self.path.name.is_empty() {
            options.fields = negotiate::select_name(self.path.name, options.fields)?;
        }
        let include = self.row_content(choice.form)?;
        let watch =
            self.objects().watch(&self.served_resource, self.namespace, &options, choice, include).await?;
        Ok(Answer { body: Body::Watch(watch), ..Answer::json(200, Bytes::new(), 0) }.encode_as(choice))
    }

    async fn create(&self) -> Result<Answer> {
        let target = &self.call.target;
        let action = self.services.handlers.action(&self.served_resource, &target.subresource);
        let choice = if action.is_some() {
            negotiate::action_result(&self.served_resource, self.call)
        } else {
            negotiate::object(&self.served_resource, self.call)
        }?;
        let format = body::format(&self.served_resource, self.call)?;
        self.check_size()?;
        let options = self.query.create_options()?;
        if let Some(action) = action {
            return self.run_action(action, choice, format, &options).await;
        }
        if !self.served_resource.info.stored {
            return Err(Box::new(Status::method_not_allowed()));
        }
        let info = &self.served_resource.info;
        let decoded = body::decode(
            &self.services.verbs.objects.scheme,
            self.call,
            format,
            &info.schema,
            &info.gvk,
            options.field_validation,
        )?;
        self.record(&decoded.object, &self.served_resource);
        let written = self
            .verbs()
            .create(self.context, &self.served_resource, self.namespace, decoded.object, &options)
            .await;
        self.write_answer(written, choice, decoded.strict)
    }

    async fn update(&self) -> Result<Answer> {
        let choice = negotiate::object(self.response_kind(), self.call)?;
        let format = body::format(self.response_kind(), self.call)?;
        self.check_size()?;
        let options = self.query.update_options()?;
        let view = self.view();
        let info = view.map_or(&self.served_resource.info, |view| &view.served_view.served_resource.info);
        let decoded = body::decode(
            &self.services.verbs.objects.scheme,
            self.call,
            format,
            &info.schema,
            &info.gvk,
            options.field_validation,
        )?;
        self.record(
            &decoded.object,
            view.map_or(&self.served_resource, |view| &view.served_view.served_resource),
        );
        let written = match (crate::patch::check_name(&decoded.object, self.path.name), view) {
            (Err(status), _) => Err(status),
            (Ok(()), Some(view)) => {
                self.verbs().update_view(self.context, view, decoded.object, &options).await
            }
            (Ok(()), None) => {
                self.verbs()
                    .update(self.context, &self.served_resource, self.path, decoded.object, &options)
                    .await
            }
        };
        self.write_answer(written, choice, decoded.strict)
    }

    async fn patch(&self) -> Result<Answer> {
        let choice = negotiate::object(self.response_kind(), self.call)?;
        self.check_size()?;
        if body::is_apply(&self.call.content_type) {
            return self.apply(choice).await;
        }
        let options = self.query.patch_options()?;
        let patch = body::patch(self.call)?;
        self.recorder.patch(&self.call.body);
        let written = match self.view() {
            Some(view) => self.verbs().patch_view(self.context, view, &patch, &options).await,
            None => {
                self.verbs().patch(self.context, &self.served_resource, self.path, &patch, &options).await
            }
        };
        self.write_answer(written, choice, Vec::new())
    }

    async fn apply(&self, choice: FormChoice) -> Result<Answer> {
        let options = self.query.apply_options()?;
        let config = &self.call.body;
        self.recorder.patch(config);
        let written = match self.view() {
            Some(view) => self.verbs().apply_view(self.context, view, config, &options).await,
            None => {
                self.verbs().apply(self.context, &self.served_resource, self.path, config, &options).await
            }
        };
        self.write_answer(written, choice, Vec::new())
    }

    async fn delete(&self) -> Result<Answer> {
        let choice = negotiate::object(&self.served_resource, self.call)?;
        self.check_size()?;
        let options = body::delete_options(
            self.services.delete_options.as_ref(),
            self.call,
            &self.query,
            &self.served_resource,
        )?;
        self.record_delete_options();
        let options = self.objects().check_delete_options(options, false)?;
        let (namespace, name, options) = (self.namespace, self.path.name, &options);
        let deleted = if options.ignore_read_error {
            self.verbs().delete_unreadable(self.context, &self.served_resource, namespace, name).await?
        } else {
            self.verbs().delete(self.context, &self.served_resource, namespace, name, options).await?
        };
        let mut answer = self.delete_answer(choice, options, &deleted)?;
        answer.warnings.extend(deleted.warnings);
        answer.warnings.extend(self.served_resource.strategies.delete.delete_warnings(options));
        Ok(answer)
    }

    /// Records the object of a request for the audit event.
    fn record(&self, object: &Object, served_resource: &ServedResource) {
        self.recorder.object(object, &served_resource.info.schema, |defaulted| {
            served_resource.apply_defaults(defaulted, self.objects().request_time());
            served_resource.to_version(defaulted);
        });
    }

    /// Records delete options in a body; those in the query are part of the request line.
    fn record_delete_options(&self) {
        let Some(schema) = &self.services.delete_options else { return };
        if self.recorder.wants_request()
            && let Some(options) = body::untagged_options(schema, self.call, &self.served_resource)
        {
            self.recorder.delete_options(options, schema);
        }
    }

    /// Answer of a delete.
    fn delete_answer(
        &self,
        choice: FormChoice,
        options: &DeleteOptions,
        deleted: &DeleteResult,
    ) -> Result<Answer> {
        let DeleteResult { stored, is_removed, .. } = deleted;
        if !is_removed {
            let accepted = options.orphan_dependents == Some(false);
            return self.object(if accepted { 202 } else { 200 }, stored, choice, false);
        }
        if self.served_resource.info.deletion.returns_object && !options.ignore_read_error {
            return self.object(200, stored, choice, false);
        }
        let status = Status::success(Some(Details {
            name: self.path.name.to_owned(),
            group: self.served_resource.resource.group.clone(),
            kind: self.served_resource.resource.resource.clone(),
            uid: stored.uid().to_owned(),
            ..Details::default()
        }));
        Ok(Answer { revision: stored.revision(), ..Answer::status(status) }.encode_as(choice))
    }

    async fn delete_collection(&self) -> Result<Answer> {
        let choice = negotiate::list(&self.served_resource, self.call)?;
        self.check_size()?;
        let select = self.query.list_options(false)?;
        let options = body::delete_options(
            self.services.delete_options.as_ref(),
            self.call,
            &self.query,
            &self.served_resource,
        )?;
        self.record_delete_options();
        let options = self.objects().check_delete_options(options, true)?;
        let include = self.row_content(choice.form)?;
        let page = self.verbs().select_collection(&self.served_resource, self.namespace, &select).await?;
        let (records, list_revision) = (page.records.clone(), page.revision);
        let unreadable_warning = unreadable::warning(&self.served_resource.resource, &page.unreadable);
        // Encode the first piece before the deletions: an unsupported form must not delete anything.
        let body = self.page(choice, include, page).await?;
        let deletion = self.verbs().delete_collection(
            self.context,
            &self.served_resource,
            self.namespace,
            &records,
            &options,
        );
        let last_deletion = deletion.await.inspect_err(|_| self.recorder.response(Bytes::new()))?;
        let revision = list_revision.max(last_deletion);
        let warnings = unreadable_warning
            .into_iter()
            .chain(self.served_resource.strategies.delete.delete_warnings(&options))
            .collect();
        Ok(Answer { body, warnings, ..Answer::json(200, Bytes::new(), revision) }.encode_as(choice))
    }
}

/// Collects a body into one piece.
async fn collect_body(body: Body) -> Result<Bytes> {
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
    pub(super) fn encode_as(self, choice: FormChoice) -> Self {
        let pretty = choice.pretty && choice.encoding == Encoding::Json;
        Self { pretty, ..self.with_encoding(choice.encoding) }
    }
}

/// Value with escapes and limited length, for log lines.
fn escape_for_log(value: &str) -> String {
    cut_at(value.escape_debug().to_string(), MAX_SHOWN_BYTES)
}
