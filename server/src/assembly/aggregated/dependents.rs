//! Owners and dependents in aggregated API servers, for the garbage collector. Only metadata is requested.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use portico_controllers::garbage::decision::{FOREGROUND, OwnerState};
use portico_controllers::garbage::foreign_objects::{
    DependentAction, ForeignDependentList, ForeignObject, ForeignObjectClient, ForeignOwner, OwnerOutcomes,
};
use portico_machinery::GroupResource;
use portico_machinery::object::OwnerReference;
use portico_machinery::route::{Backend, Route};
use serde::{Deserialize, Serialize};

use super::{
    AggregatedServers, ControllerRequest, Item, PAGE, Resource, is_not_found_status, page_query, read,
};

const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// Subset of `DeleteOptions` that is used here.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions<'a> {
    kind: &'static str,
    api_version: &'static str,
    preconditions: Preconditions<'a>,
    propagation_policy: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    uid: &'a str,
    resource_version: &'a str,
}

/// Merge patch of the owner references.
#[derive(Serialize)]
struct Patch<'a> {
    metadata: PatchedMetadata<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchedMetadata<'a> {
    uid: &'a str,
    resource_version: &'a str,
    owner_references: &'a [OwnerReference],
}

/// Object with its metadata.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FoundObject {
    metadata: super::Metadata,
}

impl AggregatedServers {
    async fn find(&self, owner: &ForeignOwner) -> Result<OwnerState, String> {
        let gv = owner.kind.group_version();
        let routes = self.routes.published();
        let route = routes.iter().find(|route| route.group_version == gv);
        let Some(backend) = route.and_then(|route| route.backend.as_deref()) else {
            return Ok(OwnerState::Unknown);
        };
        let served = self.resources(backend, USER, &gv).await?;
        let is_kind = |r: &&Resource| r.kind == owner.kind.kind && !r.name.contains('/') && r.supports("get");
        let Some(resource) = served.iter().find(is_kind) else { return Ok(OwnerState::Unknown) };
        if resource.namespaced && owner.namespace.is_empty() {
            return Ok(OwnerState::Unknown);
        }
        let namespace = if resource.namespaced { owner.namespace.as_str() } else { "" };
        let path = path(&gv.to_string(), namespace, &resource.name, &owner.name);
        let answer = self.exchange(backend, &ControllerRequest::get(USER, &path)).await?;
        match answer.status.as_u16() {
            200..=299 => check_owner(&answer.body, &owner.uid),
            // Only an API server can report that an object does not exist.
            404 if is_not_found_status(&answer.body) => Ok(OwnerState::Absent),
            code => Err(format!("{path}: the backend returned {code}")),
        }
    }

    async fn search(&self, outcomes: &OwnerOutcomes) -> ForeignDependentList {
        let (mut dependents, mut seen) = (ForeignDependentList::default(), BTreeSet::new());
        let mut routes = self.routes.published();
        routes.sort_by_key(|route| std::cmp::Reverse(route.version_priority));
        for route in &routes {
            if let Some(backend) = &route.backend
                && let Err(reason) =
                    self.search_group(route, backend, outcomes, &mut seen, &mut dependents.objects).await
            {
                dependents.unreachable.push(format!("{}: {reason}", route.group_version));
            }
        }
        dependents
    }

    async fn search_group(
        &self,
        route: &Route,
        backend: &Backend,
        outcomes: &OwnerOutcomes,
        seen: &mut BTreeSet<GroupResource>,
        found: &mut Vec<ForeignObject>,
    ) -> Result<(), String> {
        let gv = &route.group_version;
        let served = self.resources(backend, USER, gv).await?;
        for resource in served.iter().filter(|resource| resource.is_deletable()) {
            if seen.insert(GroupResource::new(&gv.group, &resource.name)) {
                self.search_resource(route, backend, &resource.name, outcomes, found).await?;
            }
        }
        Ok(())
    }

    async fn search_resource(
        &self,
        route: &Route,
        backend: &Backend,
        resource: &str,
        outcomes: &OwnerOutcomes,
        found: &mut Vec<ForeignObject>,
    ) -> Result<(), String> {
        let (gv, mut continue_token) = (route.group_version.to_string(), String::new());
        loop {
            let page = format!("/apis/{gv}/{resource}?{}", page_query(PAGE, &continue_token));
            let page = self.objects(backend, USER, &page).await?;
            let is_dependent = |item: &Item| {
                item.metadata.owner_references.iter().any(|owner| outcomes.contains_key(&owner.uid))
            };
            let items = page.items.into_iter().filter(is_dependent);
            found.extend(items.map(|item| foreign_object(route, &gv, resource, item)));
            match page.metadata.r#continue {
                end if end.is_empty() => return Ok(()),
                token => continue_token = token,
            }
        }
    }

    async fn apply_action(&self, object: &ForeignObject, action: &DependentAction) -> Result<(), String> {
        let routes = self.routes.published();
        let route = routes.iter().find(|route| route.name == object.route);
        let backend = route.and_then(|route| route.backend.as_deref());
        let backend = backend.ok_or("the API is no longer served by another API server")?;
        let (uid, resource_version) = (object.uid.as_str(), object.resource_version.as_str());
        let (method, content_type, body) = match action {
            DependentAction::Delete(propagation_policy) => {
                let preconditions = Preconditions { uid, resource_version };
                let (kind, api_version) = ("DeleteOptions", "v1");
                let options = DeleteOptions { kind, api_version, preconditions, propagation_policy };
                (Method::DELETE, "application/json", serde_json::to_vec(&options))
            }
            DependentAction::SetOwners(owner_references) => {
                let metadata = PatchedMetadata { uid, resource_version, owner_references };
                (Method::PATCH, "application/merge-patch+json", serde_json::to_vec(&Patch { metadata }))
            }
        };
        let body = Bytes::from(body.map_err(|error| error.to_string())?);
        let request =
            ControllerRequest { method, body, content_type, ..ControllerRequest::get(USER, &object.path) };
        let answer = self.exchange(backend, &request).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(()),
            404 if is_not_found_status(&answer.body) => Ok(()),
            code => Err(format!("the backend returned {code}")),
        }
    }
}

/// Checks that the returned object is the owner.
fn check_owner(body: &[u8], uid: &str) -> Result<OwnerState, String> {
    let found: FoundObject = read(body)?;
    let metadata = found.metadata;
    if metadata.uid.is_empty() {
        return Err("the backend returned no object".to_owned());
    }
    Ok(if metadata.uid != uid {
        OwnerState::Absent
    } else if metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().any(|f| f == FOREGROUND) {
        OwnerState::Waiting
    } else {
        OwnerState::Solid
    })
}

fn foreign_object(route: &Route, gv: &str, resource: &str, item: Item) -> ForeignObject {
    let metadata = item.metadata;
    ForeignObject {
        route: route.name.clone(),
        path: path(gv, &metadata.namespace, resource, &metadata.name),
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        finalizers: metadata.finalizers,
        owners: metadata.owner_references,
    }
}

fn path(gv: &str, namespace: &str, resource: &str, name: &str) -> String {
    match namespace {
        "" => format!("/apis/{gv}/{resource}/{name}"),
        namespace => format!("/apis/{gv}/namespaces/{namespace}/{resource}/{name}"),
    }
}

impl ForeignObjectClient for AggregatedServers {
    fn owner<'a>(&'a self, owner: &'a ForeignOwner) -> BoxFuture<'a, OwnerState> {
        Box::pin(async move {
            self.find(owner).await.unwrap_or_else(|error| {
                let (kind, name) = (&owner.kind.kind, &owner.name);
                tracing::info!(kind, name, error, "cannot look up an owner on another API server");
                OwnerState::Unknown
            })
        })
    }

    fn dependents<'a>(&'a self, outcomes: &'a OwnerOutcomes) -> BoxFuture<'a, ForeignDependentList> {
        Box::pin(self.search(outcomes))
    }

    fn execute<'a>(
        &'a self,
        object: &'a ForeignObject,
        action: &'a DependentAction,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.apply_action(object, action))
    }
}
