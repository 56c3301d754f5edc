//! Check of a proposed definition: its effects on clients and on stored objects, without a write.
//!
//! The definition passes the write pipeline as a dry run. Its served resources are compared with those of the installed
//! definition, and the stored objects are validated by the proposed schemas.

mod finding;
mod proposed;
mod stored;
mod versions;

pub use finding::{Checked, Finding, FindingKind, MAX_OBJECTS};

use portico_machinery::{Object, Status};
use portico_schema::Format;
use portico_store::Record;

use proposed::Proposed;

use crate::Result;
use crate::definition;
use crate::options::{CreateOptions, UpdateOptions};
use crate::registry::Registry;
use crate::served::ServedResource;
use crate::typed::{Context, Place, Written};
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
    ) -> Result<Checked> {
        let format = Format::of_media_type(media_type).filter(|format| *format != Format::Protobuf);
        let format = format.ok_or_else(|| Box::new(Status::unsupported_media_type(&MEDIA_TYPES)))?;
        let objects = self.objects();
        let served = objects.served(&definition::resource())?;
        let info = &served.info;
        let decoded = info.schema.decode(body, format, &info.gvk).map_err(|e| e.status())?;
        let mut checked = Checked { name: decoded.object.name().to_owned(), ..Checked::default() };
        let warn = |text| Finding::of(FindingKind::Warning, "", text);
        checked.findings.extend(decoded.strict.into_iter().map(warn));
        let installed = objects.read(&served, "", &checked.name).await?;
        checked.installed = installed.is_some();
        let written =
            self.verbs().dry_run(context, &served, decoded.object.clone(), installed.as_deref()).await;
        checked.take(written);
        let Some(new) = Proposed::of(self, decoded.object) else { return Ok(checked) };
        if let Some(installed) = installed {
            let old = Proposed::of_record(self, installed)?;
            checked.findings.extend(versions::compare(&old, &new));
            objects.check_stored(&old.facts, &new, &mut checked).await?;
        }
        Ok(checked)
    }
}

impl Verbs {
    /// Runs the write as a dry run, as an update of the installed definition if there is one.
    async fn dry_run(
        &self,
        context: &Context,
        served: &ServedResource,
        mut object: Object,
        installed: Option<&Record>,
    ) -> Result<Written> {
        let Some(installed) = installed else {
            let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
            return self.create(context, served, "", object, &options).await;
        };
        object.set(&["metadata", "resourceVersion"], installed.revision.to_string());
        object.remove(&["metadata", "uid"]);
        let name = object.name().to_owned();
        let place = Place { name: &name, ..Place::default() };
        let options = UpdateOptions { dry_run: true, ..UpdateOptions::default() };
        self.update(context, served, place, object, &options).await
    }
}
