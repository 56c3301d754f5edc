//! `portico.apiextensions.v1`: checks of custom resource definitions before they are written.

use portico_proto::apiextensions as pb;
use portico_proto::apiextensions::definitions_server::Definitions;
use portico_proto::apiextensions::finding::Kind;
use portico_registry::{CheckReport, Context, Finding, FindingKind, Registry};
use tonic::{Request, Response};

use super::{RpcResult, caller, to_grpc_status};

/// Implementation of the service. The chain has authorized each method as a path.
pub(crate) struct DefinitionsService {
    pub(crate) registry: Registry,
}

#[tonic::async_trait]
impl Definitions for DefinitionsService {
    async fn check(&self, request: Request<pb::CheckRequest>) -> RpcResult<Response<pb::CheckResponse>> {
        let context = Context::new(caller(&request)?.user().clone(), "");
        let pb::CheckRequest { definition, media_type } = request.into_inner();
        let checked = self.registry.check_definition(&context, &definition, &media_type).await;
        Ok(Response::new(response(checked.map_err(|status| to_grpc_status(*status))?)))
    }
}

fn response(checked: CheckReport) -> pb::CheckResponse {
    let CheckReport { name, installed, findings, objects, affected_objects } = checked;
    let findings = findings.into_iter().map(finding_to_proto).collect();
    pb::CheckResponse { name, installed, findings, objects, hit: affected_objects }
}

fn finding_to_proto(finding: Finding) -> pb::Finding {
    let kind = match finding.kind {
        FindingKind::Error => Kind::Error,
        FindingKind::Warning => Kind::Warning,
        FindingKind::Breaking => Kind::Breaking,
        FindingKind::Invalid => Kind::Invalid,
        FindingKind::Lost => Kind::Lost,
    };
    let Finding { version, object, field, text, .. } = finding;
    pb::Finding { kind: kind.into(), version, object, field, text }
}
