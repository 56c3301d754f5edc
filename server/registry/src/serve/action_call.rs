//! Calls of actions: the body and the response are of the action's kind.

use std::sync::Arc;

use portico_machinery::Object;
use portico_machinery::accept::Encoding;
use portico_schema::{Format, Schema};

use super::body;
use super::negotiate::FormChoice;
use super::request::Request;
use crate::Result;
use crate::action::{Action, ActionOutcome, ActionRequest};
use crate::admission::{Attributes, Options};
use crate::answer::Answer;
use crate::managed_fields::{self, manager_name};
use crate::options::CreateOptions;
use crate::verb_types::{ObjectPart, ObjectPath};

impl Request<'_> {
    /// Runs admission on the body, then the action.
    pub(super) async fn run_action(
        &self,
        action: &Arc<dyn Action>,
        wanted: FormChoice,
        format: Format,
        options: &CreateOptions,
    ) -> Result<Answer> {
        let (gvk, schema) = self.served_resource.kind_of(self.path.part)?;
        let decoded = body::decode(
            &self.services.verbs.objects.scheme,
            self.call,
            format,
            schema,
            gvk,
            options.field_validation,
        )?;
        self.recorder.object(&decoded.object, schema, |whole| schema.default(whole));
        let body = self.prepare_body(schema, decoded.object, options);
        // Without a name in the path, the name of the object is used, as in upstream's `createHandler`.
        let body_name = body.name().to_owned();
        let name = if self.path.name.is_empty() { &body_name } else { self.path.name };
        let named_path = ObjectPath { name, ..self.path };
        if self.served_resource.info.namespaced && !action.ignores_namespace() {
            self.verbs()
                .admit_action_into_namespace(&self.served_resource, named_path, options.dry_run)
                .await?;
        }
        let attributes =
            Attributes::new(self.context, &self.served_resource, named_path, Options::Create(options));
        let mut request = ActionRequest {
            verbs: self.verbs(),
            context: self.context,
            served_resource: &self.served_resource,
            path: self.path,
            options,
            body,
        };
        let advice = self.admit(action, schema, attributes, &mut request).await?;
        let (mut object, warnings, audit) = match action.create(request).await? {
            ActionOutcome::Status(status) => {
                let warnings = decoded.strict.into_iter().chain(advice).collect();
                let answer = Answer { warnings, ..Answer::status(*status) };
                return Ok(answer.encode_as(wanted));
            }
            ActionOutcome::Created(object) => (object, Vec::new(), Vec::new()),
            ActionOutcome::Annotated { object, warnings, audit } => (object, warnings, audit),
        };
        schema.normalize(&mut object);
        if self.recorder.wants_response() && wanted.encoding == Encoding::Protobuf {
            self.recorder.response(object.to_json().into());
        }
        let document = document(schema, &object, wanted.encoding);
        let warnings = decoded.strict.into_iter().chain(advice).chain(warnings).collect();
        Ok(Answer { warnings, audit, ..Answer::json(201, document.into(), 0) }.encode_as(wanted))
    }

    /// Sets namespace, defaults and managed fields of a body and normalizes it, as upstream does before admission.
    fn prepare_body(&self, schema: &Schema, mut body: Object, options: &CreateOptions) -> Object {
        if self.served_resource.info.namespaced && body.namespace().is_empty() {
            body.set(&["metadata", "namespace"], self.namespace);
        }
        schema.default(&mut body);
        // Kinds of subresources have a single version here.
        if self.path.part == ObjectPart::Main {
            let objects = &self.verbs().objects;
            let versions = objects.versions(&self.served_resource, ObjectPart::Main);
            let manager = manager_name(&options.field_manager, &self.context.user_agent);
            let now = objects.request_time().now;
            managed_fields::track(&versions, &Object::default(), &mut body, &manager, now);
        }
        schema.normalize(&mut body);
        body
    }

    /// Runs mutating admission, the preparation of the action, and validating admission. Returns warnings for the caller.
    async fn admit(
        &self,
        action: &Arc<dyn Action>,
        schema: &Schema,
        attributes: Attributes<'_>,
        request: &mut ActionRequest<'_>,
    ) -> Result<Vec<String>> {
        let mut advice = self.verbs().admit_mutate(attributes, Some(&mut request.body), None).await?;
        let admitted = async {
            action.prepare(request).await?;
            schema.normalize(&mut request.body);
            self.verbs().admit_validate(attributes, Some(&request.body), None).await
        };
        match admitted.await {
            Ok(warnings) => advice.extend(warnings),
            Err(status) => return Err(status.with_warnings(advice)),
        }
        Ok(advice)
    }
}

/// Encodes an object that is not stored as a response.
fn document(schema: &Schema, object: &Object, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => schema.to_enveloped_protobuf(object),
        Encoding::Json | Encoding::Yaml => {
            let mut json = object.to_json();
            json.push(b'\n');
            json
        }
    }
}
