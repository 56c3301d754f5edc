//! Asking about a write, in upstream's order: admission mutates; once the write is valid its kind decides, then admission
//! validates; quotas count what is left.

use portico_machinery::Object;

use crate::Result;
use crate::admission::Attributes;
use crate::verbs::Verbs;
use crate::write::Write;

impl Verbs {
    /// A valid write, for whoever is asked about it.
    pub(crate) fn write<'a>(
        &'a self,
        attributes: Attributes<'a>,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> Write<'a> {
        Write { user: &attributes.context.user, verb: attributes.verb(), part: attributes.part, new, old }
    }

    /// The first half of admission: before a write is prepared and validated. Gives warnings for the caller. Waits for webhooks and
    /// policies that other processes have written, except for kinds that are not stored, which are served without the store.
    pub(crate) async fn admit_mutate(
        &self,
        attributes: Attributes<'_>,
        new: Option<&mut Object>,
        old: Option<&Object>,
    ) -> Result<Vec<String>> {
        if attributes.context.internal {
            return Ok(Vec::new());
        }
        if attributes.served.info.stored {
            self.objects.catch_up().await?;
        }
        match self.admission.mutate(&self.objects, attributes, new, old) {
            Some(mutating) => mutating.await,
            None => Ok(Vec::new()),
        }
    }

    /// The second half: once a write is valid. Gives warnings for the caller.
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

    /// Both halves for a delete of this object, which nobody changes or validates between them. Gives warnings for the caller.
    pub(crate) async fn admit_delete(&self, attributes: Attributes<'_>, old: &Object) -> Result<Vec<String>> {
        let mut warnings = self.admit_mutate(attributes, None, Some(old)).await?;
        match self.admit_validate(attributes, None, Some(old)).await {
            Ok(further) => warnings.extend(further),
            Err(status) => return Err(status.with_warnings(warnings)),
        }
        Ok(warnings)
    }

    /// Asks about a valid write: the kind itself, then, unless that was done already, admission, whose warnings come back. A name that
    /// was generated, or set by a webhook, becomes that of the request (upstream's `AdmissionToValidateObjectFunc`).
    pub(crate) async fn admit(
        &self,
        attributes: Attributes<'_>,
        write: Write<'_>,
        admitted: bool,
    ) -> Result<Vec<String>> {
        let served = attributes.served;
        self.hooks.check_permissions(&self.objects, served, write).await?;
        if admitted {
            return Ok(Vec::new());
        }
        let name = if attributes.name.is_empty() { write.new.name() } else { attributes.name };
        self.admit_validate(Attributes { name, ..attributes }, Some(write.new), write.old).await
    }

    /// Refuses a write that does not fit into the quotas, for a dry run.
    pub(crate) async fn check_quota(&self, attributes: Attributes<'_>, write: Write<'_>) -> Result<()> {
        match self.admission.check_quota(&self.objects, attributes, write) {
            Some(counting) => counting.await,
            None => Ok(()),
        }
    }
}
