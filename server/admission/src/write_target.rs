//! Write that is explained but not executed: the possible requests for its path, for the comparison with rules.

use portico_registry::{
    Attributes, Context, CreateOptions, DeleteOptions, ObjectPart, Operation, Options, ServedResource,
    UpdateOptions,
};

use crate::matching::MatchTarget;

/// Path of a write.
#[derive(Clone, Copy)]
pub(crate) struct WriteTarget<'a> {
    pub(crate) served: &'a ServedResource,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// Options and context of the explained requests, which are never executed.
pub(crate) struct ExplainedRequests {
    context: Context,
    create: CreateOptions,
    update: UpdateOptions,
    delete: DeleteOptions,
}

impl ExplainedRequests {
    pub(crate) fn new() -> Self {
        let (create, update, delete) = Default::default();
        Self { context: Context::system("explain"), create, update, delete }
    }

    /// Returns a request for each possible operation. Requests are compared only with rules; no expression is evaluated.
    pub(crate) fn targets<'a>(&'a self, write_target: WriteTarget<'a>) -> Vec<MatchTarget<'a>> {
        let WriteTarget { served: served_resource, subresource, namespace, name } = write_target;
        let attributes = |operation: Operation| Attributes {
            context: &self.context,
            operation,
            options: match operation {
                Operation::Create => Options::Create(&self.create),
                Operation::Update => Options::Update(&self.update),
                Operation::Delete => Options::Delete(&self.delete),
                Operation::Connect => Options::Connect,
            },
            served_resource,
            part: if subresource.is_empty() {
                ObjectPart::Main
            } else {
                ObjectPart::Subresource(subresource)
            },
            namespace,
            name,
        };
        let operations = write_target.operations().into_iter();
        operations.filter_map(|operation| MatchTarget::new(attributes(operation), 0)).collect()
    }
}

impl WriteTarget<'_> {
    /// Returns the operations that are possible on the path.
    fn operations(&self) -> Vec<Operation> {
        let info = &self.served.info;
        let described = info.subresource(self.subresource);
        if described.is_some_and(|subresource| subresource.is_connect) {
            return vec![Operation::Connect];
        }
        let verbs = described.map_or(&info.verbs, |subresource| &subresource.verbs);
        let has = |any: &[&str]| verbs.iter().any(|verb| any.contains(&verb.as_str()));
        let all = [
            (Operation::Create, &["create"][..]),
            (Operation::Update, &["update", "patch"]),
            (Operation::Delete, &["delete", "deletecollection"]),
        ];
        all.into_iter().filter(|(_, any)| has(any)).map(|(operation, _)| operation).collect()
    }
}
