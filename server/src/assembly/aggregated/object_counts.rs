//! Counts of objects in aggregated API servers, for quotas.

use std::cmp::Reverse;

use futures::future::BoxFuture;
use portico_controllers::resource_quota::foreign_counts::{COUNTABLE_VERBS, ForeignCountClient};
use portico_machinery::GroupResource;
use portico_machinery::route::Backend;

use super::{AggregatedServers, PAGE, Resource, page_query};

const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";

/// True if objects of the resource are namespaced and can be counted (upstream's `GetQuotableResources`).
fn is_countable(resource: &Resource) -> bool {
    resource.namespaced && COUNTABLE_VERBS.iter().all(|verb| resource.supports(verb))
}

impl AggregatedServers {
    /// Counts the objects of a collection. If the backend reports the number of remaining items, one page with
    /// one object suffices.
    async fn count_collection(&self, backend: &Backend, collection: &str) -> Result<u64, String> {
        let (mut count, mut continue_token, mut limit) = (0, String::new(), 1);
        loop {
            let list = self
                .objects(backend, USER, &format!("{collection}?{}", page_query(limit, &continue_token)))
                .await?;
            count += list.items.len() as u64;
            match (list.metadata.r#continue, list.metadata.remaining_item_count) {
                (end, _) if end.is_empty() => return Ok(count),
                (_, Some(remaining)) => return Ok(count + remaining),
                (token, None) => (continue_token, limit) = (token, PAGE),
            }
        }
    }

    /// Counts the objects of a resource in a namespace, in the first version of the group that serves the resource.
    async fn count(&self, resource: &GroupResource, namespace: &str) -> Result<Option<u64>, String> {
        let mut routes = self.routes.published();
        routes.retain(|route| route.group_version.group == resource.group);
        routes.sort_by_key(|route| Reverse(route.version_priority));
        for route in &routes {
            let Some(backend) = &route.backend else { continue };
            let gv = &route.group_version;
            let served = self.resources(backend, USER, gv).await?;
            if served.iter().any(|info| info.name == resource.resource && is_countable(info)) {
                let collection = format!("/apis/{gv}/namespaces/{namespace}/{}", resource.resource);
                return self.count_collection(backend, &collection).await.map(Some);
            }
        }
        Ok(None)
    }
}

impl ForeignCountClient for AggregatedServers {
    fn has_group(&self, group: &str) -> bool {
        let routes = self.routes.published();
        routes.iter().any(|route| route.backend.is_some() && route.group_version.group == group)
    }

    fn count<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Option<u64>, String>> {
        Box::pin(AggregatedServers::count(self, resource, namespace))
    }
}
