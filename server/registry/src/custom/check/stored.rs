//! Validation of stored objects by a proposed definition.

use std::sync::Arc;

use portico_machinery::Object;
use portico_machinery::field::Error;
use portico_schema::structural::NO_FIELD;
use portico_store::{Record, Resource};

use super::finding::{Checked, Finding, FindingKind, MAX_OBJECTS};
use super::proposed::Proposed;
use crate::Result;
use crate::custom::facts::Facts;
use crate::custom::validate::Validation;
use crate::failure;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored;
use crate::typed::Part;

/// Findings of one stored object that `crds check` reports.
///
/// Limit (Definitions and schemas): the rest is counted.
const MAX_FINDINGS: usize = 10;
/// Number of objects after which the task yields.
const TURN: usize = 64;

impl Objects {
    /// Validates all objects of the installed definition in the storage version of the proposed one.
    pub(super) async fn check_stored(
        &self,
        old: &Facts,
        new: &Proposed,
        checked: &mut Checked,
    ) -> Result<()> {
        let Some(served) = new.serving.storage().filter(|_| old.resource() == new.facts.resource()) else {
            return Ok(());
        };
        let resource = Resource::from(old.resource());
        let snapshot = self.store.snapshot(&resource).await.map_err(|e| failure::of_read(e, 0))?;
        for (at, record) in snapshot.iter().enumerate() {
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            let found = check(served, record);
            checked.objects += 1;
            checked.hit += u64::from(!found.is_empty());
            if checked.hit <= MAX_OBJECTS {
                checked.findings.extend(found);
            }
        }
        Ok(())
    }
}

fn check(served: &Arc<ServedResource>, record: &Record) -> Vec<Finding> {
    let mut object = stored::decode(record);
    object.set(&["apiVersion"], &served.api_version);
    let place = match object.namespace() {
        "" => object.name().to_owned(),
        namespace => format!("{namespace}/{}", object.name()),
    };
    let found = |kind, field: &str, text| Finding {
        object: place.clone(),
        version: served.info.gvk.version.clone(),
        ..Finding::of(kind, field, text)
    };
    let mut findings: Vec<Finding> =
        lost(served, &object).into_iter().map(|text| found(FindingKind::Lost, "", text)).collect();
    served.info.schema.settle(&mut object);
    let errors = Validation { served, part: Part::Main, old: None }.validate(&object).errors;
    // Unevaluated rules are not a finding.
    let causes = errors.iter().map(Error::cause).filter(|cause| cause.field != NO_FIELD);
    findings.extend(causes.map(|cause| found(FindingKind::Invalid, &cause.field, cause.message)));
    findings.truncate(MAX_FINDINGS);
    findings
}

/// Fields that the schema does not contain, as strict decoding reports them.
fn lost(served: &ServedResource, object: &Object) -> Vec<String> {
    served.info.schema.retype(object, &served.info.gvk).map(|decoded| decoded.strict).unwrap_or_default()
}
