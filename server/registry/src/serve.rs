//! Entry point of raw calls: from path, verb and body to an answer.
//!
//! Checks are in upstream's order: route, media types, name, options, body, then the verb.

mod action_call;
mod body;
mod connect_options;
mod custom_route;
mod negotiate;
mod request;
mod route;
mod verb;

use std::sync::Arc;

use bytes::Bytes;
use portico_kinds::Kinds;
use portico_kit::spans;
use portico_machinery::status::Reason;
use portico_machinery::{Status, names};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::answer::Answer;
use crate::attempts::{MAX_DEFINITION_ATTEMPTS, is_definition_changed};
use crate::audit_record::Recorder;
use crate::call::Call;
use crate::connection::{BackendAddresses, ConnectOutcome, ConnectRequest};
use crate::failure;
use crate::handlers::HandlerTable;
use crate::long_work::{self, Placement};
use crate::objects::Objects;
use crate::options::Query;
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPart, ObjectPath};
use crate::verbs::Verbs;
use request::{CallServices, Request};
use verb::{Route, Verb};

/// Audit annotation of a deprecated API.
const DEPRECATED: &str = "k8s.io/deprecated";
/// Audit annotation with the release that removes the API.
const REMOVED_RELEASE: &str = "k8s.io/removed-release";

/// Handler of calls.
pub(crate) struct CallHandler {
    services: CallServices,
}

impl CallHandler {
    pub(crate) fn new(verbs: Arc<Verbs>, handlers: HandlerTable, kinds: &Kinds) -> Self {
        Self {
            services: CallServices { verbs, handlers, delete_options: kinds.meta_schema("DeleteOptions") },
        }
    }

    fn objects(&self) -> &Objects {
        &self.services.verbs.objects
    }

    /// Answers a call; a failure is also an answer. Long work runs on other threads.
    pub(crate) async fn serve(self: &Arc<Self>, call: Call) -> Answer {
        portico_store::with_single_revision_check(self.dispatch(call)).await
    }

    async fn dispatch(self: &Arc<Self>, call: Call) -> Answer {
        let served_resource = self.find_resource(&call).await;
        let Some(offload) = self.objects().offload.get() else {
            return self.answer(&call, served_resource).await;
        };
        let placement = long_work::select_placement(self.objects(), served_resource.as_deref(), &call);
        if placement == Placement::Inline {
            return self.answer(&call, served_resource).await;
        }
        // Boxed: held by value, it would triple the size of the future of every request.
        let work = Box::pin({
            let handler = Arc::clone(self);
            let answering = async move { handler.answer(&call, served_resource).await };
            // The work on another thread remains part of the request for tracing.
            spans::current().instrument_part(portico_store::with_single_revision_check(answering))
        });
        let unfinished = || Answer::status(*failure::unfinished());
        let answer = match placement {
            Placement::Heavy => offload.run("long-request", work).await,
            Placement::Inline | Placement::Light => offload.run_light("long-request", work).await,
        };
        answer.unwrap_or_else(unfinished)
    }

    /// Served resource of a call. If it is unknown, looks it up again after definitions written by other processes have become
    /// visible, if the store can be read.
    async fn find_resource(&self, call: &Call) -> Option<Arc<ServedResource>> {
        let served_resource = route::find_served_resource(self.objects(), &call.target);
        if served_resource.is_some() {
            return served_resource;
        }
        if let Err(status) = self.objects().catch_up().await {
            tracing::debug!(
                error = %status,
                "cannot refresh CustomResourceDefinitions, using the cached ones"
            );
        }
        route::find_served_resource(self.objects(), &call.target)
    }

    /// Answers a call; retries if its definition changed between validation and commit.
    async fn answer(&self, call: &Call, mut served_resource: Option<Arc<ServedResource>>) -> Answer {
        let mut attempts = 1;
        loop {
            let unrouted = match &served_resource {
                Some(served_resource) => {
                    served_resource.custom.is_some() && !custom_route::is_resource_path(served_resource, call)
                }
                None => !self.objects().builtin.has_group(&call.target.group),
            };
            if unrouted {
                return Answer::no_route();
            }
            // A facade sends only cluster-scoped reviews for itself; admission sees all other calls.
            let is_review = served_resource.as_ref().is_some_and(|s| !s.info.stored && !s.info.namespaced);
            let internal = call.own_account && is_review;
            let context = Context { internal, ..Context::new(call.user.clone(), call.user_agent.as_str()) };
            let recorder = Recorder::new(call.audit_detail);
            let mut answer = match self.try_serve(call, &context, &recorder, served_resource.clone()).await {
                Ok(answer) => answer,
                Err(status) if is_definition_changed(&status) && attempts < MAX_DEFINITION_ATTEMPTS => {
                    attempts += 1;
                    served_resource = route::find_served_resource(self.objects(), &call.target);
                    continue;
                }
                Err(status) => negotiate::failure(*status, &call.accept),
            };
            answer.webhook_duration = context.annotations.take_webhook_duration();
            answer.audit.extend(context.annotations.take());
            answer.record = recorder.take();
            if let Some(served_resource) = &served_resource {
                let deprecation = &served_resource.info.deprecation_warning;
                if !deprecation.is_empty() {
                    answer.warnings.insert(0, deprecation.clone());
                    answer.audit.push((DEPRECATED.to_owned(), "true".to_owned()));
                    let removed = served_resource.info.lifecycle.removed;
                    answer.audit.extend(removed.map(|at| (REMOVED_RELEASE.to_owned(), at.to_string())));
                }
            }
            return answer;
        }
    }

    async fn try_serve(
        &self,
        call: &Call,
        context: &Context,
        recorder: &Recorder,
        served_resource: Option<Arc<ServedResource>>,
    ) -> Result<Answer> {
        let served_resource = served_resource.ok_or_else(|| Box::new(Status::route_not_found()))?;
        let Route { served_resource: served, verb, part, namespace } =
            route::find(&self.services.handlers, served_resource, call)?;
        negotiate::check_route(verb, &served, call)?;
        let name = required_name(call)?;
        if matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
            check_key(&served, namespace, name)?;
        }
        let path = ObjectPath { part, namespace, name };
        let query = Query::parse(&call.query);
        let services = &self.services;
        let request =
            Request { services, call, context, recorder, served_resource: served, query, namespace, path };
        request.answer(verb).await
    }

    /// Decides on a connection; passes every other call to [`Self::serve`].
    pub(crate) async fn connect(
        self: &Arc<Self>,
        call: Call,
        backends: &dyn BackendAddresses,
    ) -> ConnectOutcome {
        let context = Context::new(call.user.clone(), call.user_agent.as_str());
        let outcome = match portico_store::with_single_revision_check(
            self.try_connect(&call, &context, backends),
        )
        .await
        {
            Ok(Some(outcome)) => outcome,
            Ok(None) => return ConnectOutcome::Answer(self.serve(call).await),
            Err(status) => ConnectOutcome::Answer(negotiate::failure(*status, &call.accept)),
        };
        outcome.with_audit(context.annotations.take())
    }

    /// Decides on a connection; `None` if the call is not a connection.
    async fn try_connect(
        &self,
        call: &Call,
        context: &Context,
        backends: &dyn BackendAddresses,
    ) -> Result<Option<ConnectOutcome>> {
        let target = &call.target;
        let Some(served_resource) = route::find_served_resource(self.objects(), target) else {
            return Ok(None);
        };
        let Some(connection) = self.services.handlers.connection(&served_resource, &target.subresource)
        else {
            return Ok(None);
        };
        let namespace = route::connection(&served_resource, call)?;
        required_name(call)?;
        if connection.is_text() {
            negotiate::check_log(&served_resource, call)?;
        }
        let path =
            ObjectPath { part: ObjectPart::Subresource(&target.subresource), namespace, name: &target.name };
        let attributes = Attributes::new(context, &served_resource, path, Options::Connect);
        let admitted = self.admit_connection(call, attributes).await?;
        let call = admitted.as_ref().unwrap_or(call);
        let query = Query::parse(&call.query);
        let objects = self.objects();
        let request = ConnectRequest {
            objects,
            call,
            query: &query,
            served_resource: &served_resource,
            namespace,
            backends,
        };
        Ok(Some(match connection.decide(&request).await? {
            Some(dial) => ConnectOutcome::Dial(dial, Vec::new()),
            None => ConnectOutcome::Answer(Answer::json(204, Bytes::new(), 0)),
        }))
    }
}

impl CallHandler {
    /// Runs admission on a connection. Returns the call with changed options if admission changed them.
    async fn admit_connection(&self, call: &Call, attributes: Attributes<'_>) -> Result<Option<Call>> {
        let served_resource = attributes.served_resource;
        let Some(sent_options) =
            connect_options::options_of(served_resource, call, &Query::parse(&call.query))
        else {
            return Ok(None);
        };
        let (mut options, verbs) = (sent_options.clone(), &self.services.verbs);
        // The caller of a connection reads no warnings.
        drop(verbs.admit_mutate(attributes, Some(&mut options), None).await?);
        drop(verbs.admit_validate(attributes, Some(&options), None).await?);
        Ok((options != sent_options).then(|| connect_options::with_options(served_resource, call, &options)))
    }
}

fn required_name(call: &Call) -> Result<&str> {
    let name = call.target.name.as_str();
    match names::path_segment(name).first() {
        None => Ok(name),
        Some(diagnostic) => {
            Err(Box::new(Status::bad_request(format!("Name parameter invalid: {name:?}: {diagnostic}"))))
        }
    }
}

/// Status 500 for a namespace that would change the path of the key, with the message of upstream's storage (`PrepareKey`).
fn check_key(served_resource: &ServedResource, namespace: &str, name: &str) -> Result<()> {
    if !matches!(namespace, "." | "..") {
        return Ok(());
    }
    let mut key = format!("/{}/{namespace}", served_resource.resource.resource);
    if !name.is_empty() {
        key = format!("{key}/{name}");
    }
    Err(Box::new(Status::failure(Reason::Unknown, format!("invalid key: {key:?}"))))
}
