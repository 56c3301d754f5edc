//! Check of a proposed definition: its effects on clients and on stored objects, without a write.
//!
//! The definition passes the write pipeline as a dry run. Its served resources are compared with those of the installed
//! definition, and the stored objects are validated by the proposed schemas.

mod finding;
mod proposed_definition;
mod stored_objects;
mod versions;

pub use finding::{CheckReport, Finding, FindingKind, MAX_OBJECTS};

use portico_machinery::{Object, Status};
use portico_schema::Format;
use portico_store::Record;

use proposed_definition::ProposedDefinition;

use crate::Result;
use crate::definition;
use crate::options::{CreateOptions, UpdateOptions};
use crate::registry::Registry;
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPath, WriteResult};
use crate::verbs::Verbs;

const MEDIA_TYPES: [&str; 2] = ["application/json", "application/yaml"];

impl Registry {
    /// Checks the definition in this body, JSON or YAML.
    ///
    /// # Errors
    /// Status 415 for another media type, 400 for a body that is not a definition; failures of the store.
    pub async fn check_definition(
        &self,
        context: &Context,
        body: &[u8],
        media_type: &str,
    ) -> Result<CheckReport> {
        let format = Format::of_media_type(media_type).filter(|format| *format != Format::Protobuf);
        let format = format.ok_or_else(|| Box::new(Status::unsupported_media_type(&MEDIA_TYPES)))?;
        let objects = self.objects();
        let served_resource = objects.served_resource(&definition::resource())?;
        let info = &served_resource.info;
        let decoded = info.schema.decode(body, format, &info.gvk).map_err(|e| e.status())?;
        let mut report = CheckReport { name: decoded.object.name().to_owned(), ..CheckReport::default() };
        let warning = |text| Finding::new(FindingKind::Warning, "", text);
        report.findings.extend(decoded.strict.into_iter().map(warning));
        let installed = objects.read(&served_resource, "", &report.name).await?;
        report.installed = installed.is_some();
        let dry_run_result = self
            .verbs()
            .dry_run(context, &served_resource, decoded.object.clone(), installed.as_deref())
            .await;
        report.add_dry_run(dry_run_result);
        let Some(new) = ProposedDefinition::from_object(self, decoded.object) else { return Ok(report) };
        if let Some(installed) = installed {
            let old = ProposedDefinition::from_record(self, installed)?;
            report.findings.extend(versions::compare(&old, &new));
            objects.check_stored(&old.facts, &new, &mut report).await?;
        }
        Ok(report)
    }
}

impl Verbs {
    /// Runs the write as a dry run, as an update of the installed definition if there is one.
    async fn dry_run(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        mut object: Object,
        installed: Option<&Record>,
    ) -> Result<WriteResult> {
        let Some(installed) = installed else {
            let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
            return self.create(context, served_resource, "", object, &options).await;
        };
        object.set(&["metadata", "resourceVersion"], installed.revision.to_string());
        object.remove(&["metadata", "uid"]);
        let name = object.name().to_owned();
        let path = ObjectPath { name: &name, ..ObjectPath::default() };
        let options = UpdateOptions { dry_run: true, ..UpdateOptions::default() };
        self.update(context, served_resource, path, object, &options).await
    }
}
