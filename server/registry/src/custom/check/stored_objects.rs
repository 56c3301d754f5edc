//! Validation of stored objects by a proposed definition.

use std::sync::Arc;

use portico_machinery::Object;
use portico_machinery::field::Error;
use portico_schema::structural::NO_FIELD;
use portico_store::{Record, Resource};

use super::finding::{CheckReport, Finding, FindingKind, MAX_OBJECTS};
use super::proposed_definition::ProposedDefinition;
use crate::Result;
use crate::custom::definition_facts::DefinitionFacts;
use crate::custom::validate::CustomValidation;
use crate::failure;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object;
use crate::verb_types::ObjectPart;

/// Findings of one stored object that `crds check` reports.
///
/// Limit (Definitions and schemas): the rest is counted.
const MAX_FINDINGS: usize = 10;
/// Number of objects after which the task yields.
const OBJECTS_PER_TURN: usize = 64;

impl Objects {
    /// Validates all objects of the installed definition in the storage version of the proposed one.
    pub(super) async fn check_stored(
        &self,
        old: &DefinitionFacts,
        new: &ProposedDefinition,
        report: &mut CheckReport,
    ) -> Result<()> {
        let Some(served_resource) = new.versions.storage().filter(|_| old.resource() == new.facts.resource())
        else {
            return Ok(());
        };
        let resource = Resource::from(old.resource());
        let snapshot = self.store.snapshot(&resource).await.map_err(|e| failure::from_store_error(e, 0))?;
        for (index, record) in snapshot.iter().enumerate() {
            if index % OBJECTS_PER_TURN == OBJECTS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
            let findings = check_object(served_resource, record);
            report.objects += 1;
            report.affected_objects += u64::from(!findings.is_empty());
            if report.affected_objects <= MAX_OBJECTS {
                report.findings.extend(findings);
            }
        }
        Ok(())
    }
}

fn check_object(served_resource: &Arc<ServedResource>, record: &Record) -> Vec<Finding> {
    let mut object = stored_object::decode(record);
    object.set(&["apiVersion"], &served_resource.api_version);
    let object_name = match object.namespace() {
        "" => object.name().to_owned(),
        namespace => format!("{namespace}/{}", object.name()),
    };
    let finding = |kind, field: &str, text| Finding {
        object: object_name.clone(),
        version: served_resource.info.gvk.version.clone(),
        ..Finding::new(kind, field, text)
    };
    let mut findings: Vec<Finding> = unknown_fields(served_resource, &object)
        .into_iter()
        .map(|text| finding(FindingKind::Lost, "", text))
        .collect();
    served_resource.info.schema.coerce_and_default(&mut object);
    let errors =
        CustomValidation { served_resource, part: ObjectPart::Main, old: None }.validate(&object).errors;
    // Unevaluated rules are not a finding.
    let causes = errors.iter().map(Error::cause).filter(|cause| cause.field != NO_FIELD);
    findings.extend(causes.map(|cause| finding(FindingKind::Invalid, &cause.field, cause.message)));
    findings.truncate(MAX_FINDINGS);
    findings
}

/// Fields that the schema does not contain, as strict decoding reports them.
fn unknown_fields(served_resource: &ServedResource, object: &Object) -> Vec<String> {
    served_resource
        .info
        .schema
        .retype(object, &served_resource.info.gvk)
        .map(|decoded| decoded.strict)
        .unwrap_or_default()
}
