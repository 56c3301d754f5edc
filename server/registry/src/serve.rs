//! Serves raw calls: from a path, a verb and bytes to an answer.
//!
//! The order of checks is upstream's: route, media types, name, options, body, then the verb.

mod body;
mod negotiate;
mod route;

use std::sync::Arc;

use bytes::Bytes;
use portico_machinery::accept::{Encoding, Form};
use portico_machinery::status::{Details, Reason};
use portico_machinery::{Object, Status, names};
use portico_schema::{Format, Schema};

use crate::Result;
use crate::action::{Action, ActionRequest, Outcome};
use crate::admission::{Attributes, Options};
use crate::answer::{Answer, Body};
use crate::attempts::{MAX_DEFINITION_ATTEMPTS, is_definition_changed};
use crate::call::{BODY_LIMIT, Call};
use crate::connection::{ConnectRequest, Connected, Registered};
use crate::custom;
use crate::forms::{self, Include, Renderer};
use crate::long_work;
use crate::options::{CreateOptions, DeleteOptions, Query};
use crate::registry::{Context, Deleted, Part, Place, Verbs, Written};
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::unreadable;
use crate::views;
use negotiate::Wanted;
pub(crate) use route::{Route, Verb};

/// Answers a call; a failure is an answer, too. Work that takes long leaves this thread.
pub(crate) async fn serve(inner: &Arc<Verbs>, call: Call) -> Answer {
    let served = route::served(inner, &call.target);
    let offload = match inner.offload.get() {
        Some(offload) if long_work::is_long(inner, served.as_deref(), &call).await => offload,
        _ => return answer(inner, &call, served).await,
    };
    // In a box: held here by value it would make the future of every request three times as large.
    let work = Box::pin({
        let inner = Arc::clone(inner);
        async move { answer(&inner, &call, served).await }
    });
    let ended = || Answer::status(Status::internal("the request ended before it was answered"));
    offload.run("long-request", work).await.unwrap_or_else(ended)
}

/// Begins anew when the definition that the call was validated along has changed by the time of its write.
async fn answer(inner: &Arc<Verbs>, call: &Call, mut served: Option<Arc<ServedResource>>) -> Answer {
    let mut attempts = 1;
    loop {
        let unrouted = match &served {
            Some(served) => served.custom.is_some() && !custom::leads(served, call),
            None => !inner.catalogue.has_group(&call.target.group),
        };
        if unrouted {
            return Answer::unrouted();
        }
        let mut answer = match try_serve(inner, call, served.clone()).await {
            Ok(answer) => answer,
            Err(status) if is_definition_changed(&status) && attempts < MAX_DEFINITION_ATTEMPTS => {
                attempts += 1;
                served = route::served(inner, &call.target);
                continue;
            }
            Err(status) => negotiate::failure(*status, &call.accept),
        };
        if let Some(served) = &served {
            let deprecation = &served.info.deprecation;
            if !deprecation.is_empty() {
                answer.warnings.insert(0, deprecation.clone());
            }
        }
        return answer;
    }
}

/// A call whose route is known.
struct Request<'a> {
    inner: &'a Arc<Verbs>,
    call: &'a Call,
    served: Arc<ServedResource>,
    query: Query<'a>,
    namespace: &'a str,
    place: Place<'a>,
}

async fn try_serve(inner: &Arc<Verbs>, call: &Call, served: Option<Arc<ServedResource>>) -> Result<Answer> {
    let served = served.ok_or_else(|| Box::new(Status::no_route()))?;
    let Route { served, action, part, namespace } = route::find(served, call)?;
    negotiate::check_route(action, &served, call)?;
    let name = checked_name(call)?;
    if matches!(action, Verb::Get | Verb::List | Verb::Watch) {
        check_key(&served, namespace, name)?;
    }
    let place = Place { part, namespace, name };
    let query = Query::parse(&call.query);
    let request = Request { inner, call, served, query, namespace, place };
    match action {
        Verb::Get => request.get().await,
        Verb::List => request.list().await,
        Verb::Watch => request.watch().await,
        Verb::Create => request.create().await,
        Verb::Update => request.update().await,
        Verb::Patch => request.patch().await,
        Verb::Delete => request.delete().await,
        Verb::DeleteCollection => request.delete_collection().await,
    }
}

fn checked_name(call: &Call) -> Result<&str> {
    let name = call.target.name.as_str();
    match names::path_segment(name).first() {
        None => Ok(name),
        Some(complaint) => {
            Err(Box::new(Status::bad_request(format!("Name parameter invalid: {name:?}: {complaint}"))))
        }
    }
}

/// 500 for a namespace that would lead elsewhere in a tree of keys, in the words of upstream's storage (`PrepareKey`).
fn check_key(served: &ServedResource, namespace: &str, name: &str) -> Result<()> {
    if !matches!(namespace, "." | "..") {
        return Ok(());
    }
    let mut key = format!("/{}/{namespace}", served.resource.resource);
    if !name.is_empty() {
        key = format!("{key}/{name}");
    }
    Err(Box::new(Status::failure(Reason::Unknown, format!("invalid key: {key:?}"))))
}

/// Decides on a connection; what is none is answered.
pub(crate) async fn connect(inner: &Arc<Verbs>, call: Call, registered: &dyn Registered) -> Connected {
    match try_connect(inner, &call, registered).await {
        Ok(Some(decided)) => decided,
        Ok(None) => Connected::Answered(serve(inner, call).await),
        Err(status) => Connected::Answered(negotiate::failure(*status, &call.accept)),
    }
}

/// Nothing for what is no connection.
async fn try_connect(
    inner: &Arc<Verbs>,
    call: &Call,
    registered: &dyn Registered,
) -> Result<Option<Connected>> {
    let target = &call.target;
    let served = route::served(inner, target);
    let Some(connection) = served.and_then(|s| s.row.connection_of(&target.subresource).cloned()) else {
        return Ok(None);
    };
    let (served, namespace) = route::connection(inner, call)?;
    checked_name(call)?;
    if connection.is_text() {
        negotiate::check_log(&served, call)?;
    }
    let query = Query::parse(&call.query);
    let request =
        ConnectRequest { verbs: inner, call, query: &query, served: &served, namespace, registered };
    let context = Context { user: call.user.clone(), user_agent: call.user_agent.clone() };
    let place = Place { part: Part::Subresource(&target.subresource), namespace, name: &target.name };
    let attributes = Attributes::new(&context, &served, place, Options::Connect);
    inner.admit_mutate(attributes, None, None).await?;
    // The caller of a connection reads no warnings.
    drop(inner.admit_validate(attributes, None, None).await?);
    Ok(Some(match connection.decide(&request).await? {
        Some(dial) => Connected::Dial(dial),
        None => Connected::Answered(Answer::json(204, Bytes::new(), 0)),
    }))
}

impl Request<'_> {
    fn context(&self) -> Context {
        Context { user: self.call.user.clone(), user_agent: self.call.user_agent.clone() }
    }

    /// The view that the path names, if it is one.
    fn view(&self) -> Option<views::Of<'_>> {
        let viewed = self.served.view(self.place.part)?;
        Some(views::Of { parent: &self.served, viewed, place: self.place })
    }

    /// The kind that the path's answers are of.
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

    /// An object as an answer. States of a write may not be those of the revision they carry: they are not cached.
    fn object(&self, code: u16, stored: &Stored, wanted: Wanted, cached: bool) -> Result<Answer> {
        let renderer = Renderer {
            cache: cached.then_some(&self.inner.forms),
            served: self.answered(),
            form: wanted.form,
            encoding: wanted.encoding,
            include: self.include(wanted.form)?,
            now: self.inner.moment().now,
        };
        let body = renderer.document(stored.record()).into();
        Ok(Answer::json(code, body, stored.revision()).dressed(wanted))
    }

    /// Warns of what was wrong with the body also when the write was refused.
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
        let wanted = negotiate::object(self.answered(), self.call)?;
        if self.query.flag("export") == Some(true) {
            return Err(Box::new(Status::bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported",
            )));
        }
        let options = self.query.version_options()?;
        self.inner.reach(options.unwrap_or(0)).await?;
        if let Some(view) = self.view() {
            return self.object(200, &self.inner.get_view(view).await?, wanted, true);
        }
        let record = self.inner.get(&self.served, self.namespace, self.place.name).await?;
        self.object(200, &Stored::new(record), wanted, true)
    }

    async fn list(&self) -> Result<Answer> {
        let wanted = negotiate::list(&self.served, self.call)?;
        let options = self.query.list_options(false)?;
        let include = self.include(wanted.form)?;
        let page = self.inner.list(&self.served, self.namespace, &options).await?;
        let revision = page.revision;
        let warnings = unreadable::warning(&self.served.resource, &page.unreadable).into_iter().collect();
        let body = forms::stream(self.inner, &self.served, wanted, include, page);
        Ok(Answer { body, warnings, ..Answer::json(200, Bytes::new(), revision) }.dressed(wanted))
    }

    async fn watch(&self) -> Result<Answer> {
        let wanted = negotiate::watch(&self.served, self.call)?;
        let mut options = self.query.list_options(true)?;
        if !self.place.name.is_empty() {
            options.fields = negotiate::only_name(self.place.name, options.fields)?;
        }
        let include = self.include(wanted.form)?;
        let stream = self.inner.watch(&self.served, self.namespace, &options, wanted, include).await?;
        Ok(Answer { body: Body::Watch(stream), ..Answer::json(200, Bytes::new(), 0) }.dressed(wanted))
    }

    async fn create(&self) -> Result<Answer> {
        let target = &self.call.target;
        let action = self.served.row.action_of(&target.subresource);
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
        let decoded =
            body::decode(self.inner, self.call, format, &info.schema, &info.gvk, options.field_validation)?;
        let written =
            self.inner.create(&self.context(), &self.served, self.namespace, decoded.object, &options).await;
        self.written(written, wanted, decoded.strict)
    }

    /// A POST that keeps no object: its body is of the action's kind, and so is the answer.
    async fn act(
        &self,
        action: &Arc<dyn Action>,
        wanted: Wanted,
        format: Format,
        options: &CreateOptions,
    ) -> Result<Answer> {
        let (gvk, schema) = self.served.kind_of(self.place.part)?;
        let decoded = body::decode(self.inner, self.call, format, schema, gvk, options.field_validation)?;
        if self.served.info.namespaced && self.served.info.stored {
            self.inner.require_namespace(self.namespace).await?;
        }
        let context = self.context();
        let mut body = decoded.object;
        let attributes = Attributes::new(&context, &self.served, self.place, Options::Create(options));
        self.inner.admit_mutate(attributes, Some(&mut body), None).await?;
        let advice = self.inner.admit_validate(attributes, Some(&body), None).await?;
        let request = ActionRequest {
            verbs: self.inner,
            context: &context,
            served: &self.served,
            place: self.place,
            options,
            body,
        };
        let (mut object, warnings, audit) = match action.create(request).await? {
            Outcome::Status(status) => {
                let warnings = decoded.strict.into_iter().chain(advice).collect();
                let answer = Answer { warnings, ..Answer::status(status) };
                return Ok(answer.dressed(wanted));
            }
            Outcome::Created(object) => (object, Vec::new(), Vec::new()),
            Outcome::Annotated { object, warnings, audit } => (object, warnings, audit),
        };
        schema.normalise(&mut object);
        let document = document(schema, &object, wanted.encoding);
        let warnings = decoded.strict.into_iter().chain(advice).chain(warnings).collect();
        Ok(Answer { warnings, audit, ..Answer::json(201, document.into(), 0) }.dressed(wanted))
    }

    async fn update(&self) -> Result<Answer> {
        let wanted = negotiate::object(self.answered(), self.call)?;
        let format = body::format(self.answered(), self.call)?;
        self.check_size()?;
        let options = self.query.update_options()?;
        let view = self.view();
        let info = view.map_or(&self.served.info, |view| &view.viewed.served.info);
        let decoded =
            body::decode(self.inner, self.call, format, &info.schema, &info.gvk, options.field_validation)?;
        let context = self.context();
        let written = match (crate::patch::check_name(&decoded.object, self.place.name), view) {
            (Err(status), _) => Err(status),
            (Ok(()), Some(view)) => self.inner.update_view(&context, view, decoded.object, &options).await,
            (Ok(()), None) => {
                self.inner.update(&context, &self.served, self.place, decoded.object, &options).await
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
        let written = match self.view() {
            Some(view) => self.inner.patch_view(&self.context(), view, &patch, &options).await,
            None => self.inner.patch(&self.context(), &self.served, self.place, &patch, &options).await,
        };
        self.written(written, wanted, Vec::new())
    }

    async fn apply(&self, wanted: Wanted) -> Result<Answer> {
        let options = self.query.apply_options()?;
        let config = &self.call.body;
        let written = match self.view() {
            Some(view) => self.inner.apply_view(&self.context(), view, config, &options).await,
            None => self.inner.apply(&self.context(), &self.served, self.place, config, &options).await,
        };
        self.written(written, wanted, Vec::new())
    }

    async fn delete(&self) -> Result<Answer> {
        let wanted = negotiate::object(&self.served, self.call)?;
        self.check_size()?;
        let options = body::delete_options(self.inner, self.call, &self.query, &self.served)?;
        let options = self.inner.checked_delete(options, false)?;
        let (namespace, name, options) = (self.namespace, self.place.name, &options);
        let deleted = if options.ignore_read_error {
            self.inner.delete_unreadable(&self.context(), &self.served, namespace, name).await?
        } else {
            self.inner.delete(&self.context(), &self.served, namespace, name, options).await?
        };
        let mut answer = self.deleted(wanted, options, &deleted)?;
        answer.warnings.extend(deleted.warnings);
        answer.warnings.extend(self.served.strategy.delete_warnings(options));
        Ok(answer)
    }

    /// What is answered to a delete.
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
        let options = body::delete_options(self.inner, self.call, &self.query, &self.served)?;
        let options = self.inner.checked_delete(options, true)?;
        let include = self.include(wanted.form)?;
        let (page, last) = self
            .inner
            .delete_collection(&self.context(), &self.served, self.namespace, &select, &options)
            .await?;
        let revision = page.revision.max(last);
        let left_out = unreadable::warning(&self.served.resource, &page.unreadable);
        let body = forms::stream(self.inner, &self.served, wanted, include, page);
        let warnings = left_out.into_iter().chain(self.served.strategy.delete_warnings(&options)).collect();
        Ok(Answer { body, warnings, ..Answer::json(200, Bytes::new(), revision) }.dressed(wanted))
    }
}

impl Answer {
    /// Tells the door how the caller wants this answer encoded.
    fn dressed(self, wanted: Wanted) -> Self {
        let pretty = wanted.pretty && wanted.encoding == Encoding::Json;
        Self { pretty, ..self.encoded(wanted.encoding) }
    }
}

/// An object that is no stored one, as an answer.
fn document(schema: &Schema, object: &Object, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => schema.to_sealed_protobuf(object),
        Encoding::Json | Encoding::Yaml => {
            let mut json = object.to_json();
            json.push(b'\n');
            json
        }
    }
}
