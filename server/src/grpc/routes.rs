//! `portico.routes.v1`: routes and their availability; also the Explain method of APIServices.

use std::sync::Arc;

use portico_machinery::Status;
use portico_machinery::route::Route;
use portico_proto::apiregistration as typed;
use portico_proto::routes as pb;
use portico_proto::routes::routes_server;
use portico_routes::{CompiledRoute, ExplainSource, Routes, Stage, parse_group_version};
use tonic::{Request, Response};

use super::admission::{self, AdmissionExplainer};
use super::{RpcResult, to_grpc_status};

/// Explainer of routes with the facts of all modules.
#[derive(Clone)]
pub(crate) struct Explainer {
    routes: Routes,
    sources: Arc<dyn ExplainSource + Send + Sync>,
}

impl Explainer {
    pub(crate) fn new(routes: Routes, sources: Arc<dyn ExplainSource + Send + Sync>) -> Self {
        Self { routes, sources }
    }

    fn stages(&self, subject: &str) -> Vec<Stage> {
        self.routes.explain(subject, &*self.sources)
    }

    /// Returns the typed response about one APIService.
    pub(crate) fn api_service(&self, name: &str) -> typed::ExplainResponse {
        let stages = self.stages(name);
        let failing = stages.iter().find(|s| !s.ok);
        let summary = match failing {
            None => format!("{name} is reachable"),
            Some(s) => format!("{name} fails at {}: {}", s.stage, stage_text(s)),
        };
        let stage = |s: &Stage| typed::Stage {
            stage: s.stage.to_owned(),
            ok: s.ok,
            reason: s.reason.clone(),
            message: s.message.clone(),
            since: s.since.clone(),
            seen_by: s.observers.clone(),
        };
        typed::ExplainResponse {
            available: failing.is_none(),
            summary,
            stages: stages.iter().map(stage).collect(),
        }
    }
}

fn stage_text(stage: &Stage) -> &str {
    if stage.message.is_empty() { &stage.reason } else { &stage.message }
}

/// Implementation of the service. The chain has authorized each method as a path.
pub(crate) struct RoutesService {
    pub(crate) explainer: Explainer,
    pub(crate) admission: AdmissionExplainer,
}

#[tonic::async_trait]
impl routes_server::Routes for RoutesService {
    async fn explain(
        &self,
        request: Request<pb::ExplainRequest>,
    ) -> RpcResult<Response<pb::ExplainResponse>> {
        let subject = request.into_inner().subject;
        let Some(group_version) = parse_group_version(&subject) else {
            let message = format!(
                "{subject:?} is not a path below /api or /apis, a group/version or an APIService: \
                 `portico routes` lists APIServices"
            );
            return Err(to_grpc_status(Status::bad_request(message)));
        };
        let stages = self.explainer.stages(&subject);
        let explanation = self.admission.explain(&subject).await?;
        let name = group_version.api_service_name();
        let exists = self.explainer.routes.get(&name).is_some();
        let stage = |s: &Stage| pb::Stage {
            stage: s.stage.to_owned(),
            ok: s.ok,
            reason: s.reason.clone(),
            message: s.message.clone(),
            since: s.since.clone(),
            seen_by: s.observers.clone(),
        };
        Ok(Response::new(pb::ExplainResponse {
            api_service: if exists { name } else { String::new() },
            ok: stages.iter().all(|s| s.ok),
            stages: stages.iter().map(stage).collect(),
            webhooks: explanation.webhooks.into_iter().map(admission::webhook).collect(),
            policies: explanation.policies.into_iter().map(admission::policy).collect(),
        }))
    }

    async fn list(&self, request: Request<pb::ListRequest>) -> RpcResult<Response<pb::ListResponse>> {
        let group = request.into_inner().group;
        let in_group = |c: &CompiledRoute| group.is_empty() || c.route.group_version.group == group;
        let routes = &self.explainer.routes;
        let revision = routes.publisher().revision();
        let summaries = routes.list().iter().filter(|c| in_group(c)).map(summary).collect();
        Ok(Response::new(pb::ListResponse { routes: summaries, revision }))
    }
}

fn summary(compiled: &CompiledRoute) -> pb::RouteSummary {
    let route = &compiled.route;
    let backend = route.backend.as_ref();
    let service = backend.map(|b| &b.service);
    pb::RouteSummary {
        name: route.name.clone(),
        group: route.group_version.group.clone(),
        version: route.group_version.version.clone(),
        paths: paths(route),
        service: service
            .map_or_else(|| "Local".to_owned(), |s| format!("{}/{}:{}", s.namespace, s.name, s.port)),
        targets: backend.iter().flat_map(|b| &b.targets).map(ToString::to_string).collect(),
        available: route.available.ok,
        reason: route.available.reason.clone(),
        message: route.available.message.clone(),
        shadows: compiled.shadow.iter().map(|s| s.message().to_owned()).collect(),
    }
}

/// Returns the paths of a group version, as upstream registers them.
fn paths(route: &Route) -> Vec<String> {
    let root = route.group_version.root();
    if route.group_version.is_core() && !route.is_local() {
        return vec!["/api".to_owned(), "/api/".to_owned()];
    }
    vec![format!("{root}/"), root]
}
