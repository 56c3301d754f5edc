//! Steps of admission in upstream's order: mutating admission; after validation the checks of the kind, then validating
//! admission; quotas last.

use portico_machinery::Object;

use crate::Result;
use crate::admission::Attributes;
use crate::verbs::Verbs;
use crate::write::Write;

impl Verbs {
    /// Builds the description of a valid write for permission checks, admission and quotas.
    pub(crate) fn write<'a>(
        &'a self,
        attributes: Attributes<'a>,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> Write<'a> {
        Write { user: &attributes.context.user, verb: attributes.verb(), part: attributes.part, new, old }
    }

    /// Runs mutating admission, before a write is prepared and validated. Returns warnings for the caller. First waits until
    /// webhooks and policies written by other processes are visible; skipped for kinds that are not stored, which must not depend
    /// on the store.
    pub(crate) async fn admit_mutate(
        &self,
        attributes: Attributes<'_>,
        new: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<Vec<String>> {
        if attributes.context.internal {
            return Ok(Vec::new());
        }
        if attributes.served_resource.info.stored {
            self.objects.catch_up().await?;
        }
        match self.admission.mutate(&self.objects, attributes, new, old) {
            Some(mutating) => mutating.await,
            None => Ok(Vec::new()),
        }
    }

    /// Runs validating admission on a valid write. Returns warnings for the caller.
    pub(crate) async fn admit_validate(
        &self,
        attributes: Attributes<'_>,
        new: Option<&Object>,
        old: Option<&Object>,
    ) -> Result<Vec<String>> {
        if attributes.context.internal {
            return Ok(Vec::new());
        }
        match self.admission.validate(&self.objects, attributes, new, old) {
            Some(validating) => validating.await,
            None => Ok(Vec::new()),
        }
    }

    /// Runs mutating and validating admission for a delete of this object, which neither changes. Returns
    /// warnings for the caller.
    pub(crate) async fn admit_delete(&self, attributes: Attributes<'_>, old: &Object) -> Result<Vec<String>> {
        let mut warnings = self.admit_mutate(attributes, None, Some(old)).await?;
        match self.admit_validate(attributes, None, Some(old)).await {
            Ok(more_warnings) => warnings.extend(more_warnings),
            Err(status) => return Err(status.with_warnings(warnings)),
        }
        Ok(warnings)
    }

    /// Runs the checks of the kind and, unless `admitted`, validating admission on a valid write; returns the warnings. A name
    /// that was generated or set by a webhook becomes the name of the request (upstream's `AdmissionToValidateObjectFunc`).
    pub(crate) async fn admit(
        &self,
        attributes: Attributes<'_>,
        write: Write<'_>,
        admitted: bool,
    ) -> Result<Vec<String>> {
        let served_resource = attributes.served_resource;
        self.hooks.check_permissions(&self.objects, served_resource, write).await?;
        if admitted {
            return Ok(Vec::new());
        }
        let name = if attributes.name.is_empty() { write.new.name() } else { attributes.name };
        self.admit_validate(Attributes { name, ..attributes }, Some(write.new), write.old).await
    }

    /// Refuses a write that exceeds a quota; used for dry runs.
    pub(crate) async fn check_quota(&self, attributes: Attributes<'_>, write: Write<'_>) -> Result<()> {
        match self.admission.check_quota(&self.objects, attributes, write) {
            Some(check) => check.await,
            None => Ok(()),
        }
    }
}
