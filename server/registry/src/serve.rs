//! Entry point of raw calls: from path, verb and body to an answer.
//!
//! Checks are in upstream's order: route, media types, name, options, body, then the verb.

mod act;
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
use crate::call::Call;
use crate::connection::{ConnectRequest, Connected, Registered};
use crate::failure;
use crate::handlers::HandlerTable;
use crate::long_work::{self, Placement};
use crate::objects::Objects;
use crate::options::Query;
use crate::recorded::Recorder;
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place};
use crate::verbs::Verbs;
use request::{Handling, Request};
use verb::{Route, Verb};

/// Audit annotation of a deprecated API.
const DEPRECATED: &str = "k8s.io/deprecated";
/// Audit annotation with the release that removes the API.
const REMOVED_RELEASE: &str = "k8s.io/removed-release";

/// Handler of calls.
pub(crate) struct CallHandler {
    handling: Handling,
}

impl CallHandler {
    pub(crate) fn new(verbs: Arc<Verbs>, handlers: HandlerTable, kinds: &Kinds) -> Self {
        Self { handling: Handling { verbs, handlers, delete_options: kinds.meta("DeleteOptions") } }
    }

    fn objects(&self) -> &Objects {
        &self.handling.verbs.objects
    }

    /// Answers a call; a failure is also an answer. Long work runs on other threads.
    pub(crate) async fn serve(self: &Arc<Self>, call: Call) -> Answer {
        portico_store::ask_once(self.dispatch(call)).await
    }

    async fn dispatch(self: &Arc<Self>, call: Call) -> Answer {
        let served = self.find(&call).await;
        let Some(offload) = self.objects().offload.get() else { return self.answer(&call, served).await };
        let placement = long_work::placement(self.objects(), served.as_deref(), &call);
        if placement == Placement::Inline {
            return self.answer(&call, served).await;
        }
        // Boxed: held by value, it would triple the size of the future of every request.
        let work = Box::pin({
            let handler = Arc::clone(self);
            let answered = async move { handler.answer(&call, served).await };
            // The work on another thread remains part of the request for tracing.
            spans::current().around(portico_store::ask_once(answered))
        });
        let ended = || Answer::status(*failure::unfinished());
        let answer = match placement {
            Placement::Heavy => offload.run("long-request", work).await,
            Placement::Inline | Placement::Light => offload.run_light("long-request", work).await,
        };
        answer.unwrap_or_else(ended)
    }

    /// Served resource of a call. If it is unknown, looks it up again after definitions written by other processes have become
    /// visible, if the store can be read.
    async fn find(&self, call: &Call) -> Option<Arc<ServedResource>> {
        let served = route::served(self.objects(), &call.target);
        if served.is_some() {
            return served;
        }
        if let Err(status) = self.objects().catch_up().await {
            tracing::debug!(
                error = %status,
                "cannot refresh CustomResourceDefinitions, using the cached ones"
            );
        }
        route::served(self.objects(), &call.target)
    }

    /// Answers a call; retries if its definition changed between validation and commit.
    async fn answer(&self, call: &Call, mut served: Option<Arc<ServedResource>>) -> Answer {
        let mut attempts = 1;
        loop {
            let unrouted = match &served {
                Some(served) => served.custom.is_some() && !custom_route::leads(served, call),
                None => !self.objects().builtin.has_group(&call.target.group),
            };
            if unrouted {
                return Answer::unrouted();
            }
            // A facade sends only cluster-scoped reviews for itself; admission sees all other calls.
            let is_review = served.as_ref().is_some_and(|s| !s.info.stored && !s.info.namespaced);
            let internal = call.own_account && is_review;
            let context = Context { internal, ..Context::new(call.user.clone(), call.user_agent.as_str()) };
            let recorder = Recorder::new(call.recorded);
            let mut answer = match self.try_serve(call, &context, &recorder, served.clone()).await {
                Ok(answer) => answer,
                Err(status) if is_definition_changed(&status) && attempts < MAX_DEFINITION_ATTEMPTS => {
                    attempts += 1;
                    served = route::served(self.objects(), &call.target);
                    continue;
                }
                Err(status) => negotiate::failure(*status, &call.accept),
            };
            answer.webhooks_took = context.annotations.take_webhooks();
            answer.audit.extend(context.annotations.take());
            answer.record = recorder.take();
            if let Some(served) = &served {
                let deprecation = &served.info.deprecation;
                if !deprecation.is_empty() {
                    answer.warnings.insert(0, deprecation.clone());
                    answer.audit.push((DEPRECATED.to_owned(), "true".to_owned()));
                    let removed = served.info.lifecycle.removed;
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
        served: Option<Arc<ServedResource>>,
    ) -> Result<Answer> {
        let served = served.ok_or_else(|| Box::new(Status::no_route()))?;
        let Route { served, action, part, namespace } = route::find(&self.handling.handlers, served, call)?;
        negotiate::check_route(action, &served, call)?;
        let name = checked_name(call)?;
        if matches!(action, Verb::Get | Verb::List | Verb::Watch) {
            check_key(&served, namespace, name)?;
        }
        let place = Place { part, namespace, name };
        let query = Query::parse(&call.query);
        let handler = &self.handling;
        let request = Request { handler, call, context, recorder, served, query, namespace, place };
        request.answer(action).await
    }

    /// Decides on a connection; passes every other call to [`Self::serve`].
    pub(crate) async fn connect(self: &Arc<Self>, call: Call, registered: &dyn Registered) -> Connected {
        let context = Context::new(call.user.clone(), call.user_agent.as_str());
        let decided = match portico_store::ask_once(self.try_connect(&call, &context, registered)).await {
            Ok(Some(decided)) => decided,
            Ok(None) => return Connected::Answered(self.serve(call).await),
            Err(status) => Connected::Answered(negotiate::failure(*status, &call.accept)),
        };
        decided.noting(context.annotations.take())
    }

    /// Decides on a connection; `None` if the call is not a connection.
    async fn try_connect(
        &self,
        call: &Call,
        context: &Context,
        registered: &dyn Registered,
    ) -> Result<Option<Connected>> {
        let target = &call.target;
        let Some(served) = route::served(self.objects(), target) else { return Ok(None) };
        let Some(connection) = self.handling.handlers.connection(&served, &target.subresource) else {
            return Ok(None);
        };
        let namespace = route::connection(&served, call)?;
        checked_name(call)?;
        if connection.is_text() {
            negotiate::check_log(&served, call)?;
        }
        let place = Place { part: Part::Subresource(&target.subresource), namespace, name: &target.name };
        let attributes = Attributes::new(context, &served, place, Options::Connect);
        let admitted = self.admit_connection(call, attributes).await?;
        let call = admitted.as_ref().unwrap_or(call);
        let query = Query::parse(&call.query);
        let objects = self.objects();
        let request = ConnectRequest { objects, call, query: &query, served: &served, namespace, registered };
        Ok(Some(match connection.decide(&request).await? {
            Some(dial) => Connected::Dial(dial, Vec::new()),
            None => Connected::Answered(Answer::json(204, Bytes::new(), 0)),
        }))
    }
}

impl CallHandler {
    /// Runs admission on a connection. Returns the call with changed options if admission changed them.
    async fn admit_connection(&self, call: &Call, attributes: Attributes<'_>) -> Result<Option<Call>> {
        let served = attributes.served;
        let Some(sent) = connect_options::of(served, call, &Query::parse(&call.query)) else {
            return Ok(None);
        };
        let (mut options, verbs) = (sent.clone(), &self.handling.verbs);
        // The caller of a connection reads no warnings.
        drop(verbs.admit_mutate(attributes, Some(&mut options), None).await?);
        drop(verbs.admit_validate(attributes, Some(&options), None).await?);
        Ok((options != sent).then(|| connect_options::changed(served, call, &options)))
    }
}

fn checked_name(call: &Call) -> Result<&str> {
    let name = call.target.name.as_str();
    match names::path_segment(name).first() {
        None => Ok(name),
        Some(diagnostic) => {
            Err(Box::new(Status::bad_request(format!("Name parameter invalid: {name:?}: {diagnostic}"))))
        }
    }
}

/// Status 500 for a namespace that would change the path of the key, with the message of upstream's storage (`PrepareKey`).
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
