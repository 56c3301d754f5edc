//! Writes of views: validates the view, then updates the parent as if the client had written the parent.

use portico_machinery::{GroupResource, Object, Status};

use crate::Result;
use crate::admission::Options;
use crate::attempts::{MAX_WRITE_ATTEMPTS, Newer, too_many_changes};
use crate::managed_fields::{self, Shared, Tracked, manager_name};
use crate::options::{PatchOptions, UpdateOptions};
use crate::replace::{Attempt, Terms, UidRule};
use crate::stored::Stored;
use crate::typed::{Context, Part, Patch, Place, Written};
use crate::update::forget_zero_version;
use crate::verbs::Verbs;
use crate::view::Gap;
use crate::views::{ViewTarget, misfit};
use crate::{apply, patch, system};
use portico_validation::{self as validation, MetaRules};

impl Verbs {
    pub(crate) async fn update_view(
        &self,
        context: &Context,
        target: ViewTarget<'_>,
        mut view: Object,
        options: &UpdateOptions,
    ) -> Result<Written> {
        let manager = manager_name(&options.field_manager, &context.user_agent);
        system::settle_namespace(&mut view, target.parent.info.namespaced, target.place.namespace)?;
        forget_zero_version(&mut view);
        let insists = !view.resource_version().is_empty();
        let terms = Terms {
            attributes: target.attributes(context, Options::Update(options)),
            admitted: true,
            insists,
            uid: UidRule::Precondition,
            tracked: Tracked::By(&manager),
            others: &[],
        };
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(target, newer).await?;
            newer = match self.write_view(target, &current, view.clone(), terms).await? {
                Attempt::Done(written) => return Ok(*written),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&target.parent.resource, target.place.name))
    }

    pub(crate) async fn patch_view(
        &self,
        context: &Context,
        target: ViewTarget<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Written> {
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let terms = patch_terms(context, target, options, Tracked::By(&manager));
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(target, newer).await?;
            let shown = shown_to_writer(target, current.object())?;
            let (scheme, served) = (&self.objects.scheme, &target.viewed.served);
            let has_internal = target.parent.custom.is_none();
            let (view, warnings) = patch::apply(scheme, served, &shown, patch, options, has_internal)?;
            let view = identified(target, without_wish(target, view, &shown), &shown);
            let view = view.map_err(|status| status.with_warnings(warnings.clone()))?;
            newer = match self.write_view(target, &current, view, terms).await? {
                Attempt::Done(written) => return Ok(written.with_first(warnings)),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&target.parent.resource, target.place.name))
    }

    /// Applies a configuration to the view; never creates a missing parent.
    pub(crate) async fn apply_view(
        &self,
        context: &Context,
        target: ViewTarget<'_>,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<Written> {
        let served = &target.viewed.served;
        let config = apply::read(served, body)?;
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let terms = patch_terms(context, target, options, Tracked::Already);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(target, newer).await?;
            let mut shown = shown_to_writer(target, current.object())?;
            Shared::of(target).show(current.object(), &mut shown);
            let (view, warnings) =
                self.merge_applied(served, target.place.part, &shown, &config, &manager, options).await?;
            let view =
                identified(target, view, &shown).map_err(|status| status.with_warnings(warnings.clone()))?;
            newer = match self.write_view(target, &current, view, terms).await? {
                Attempt::Done(written) => return Ok(written.with_first(warnings)),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&target.parent.resource, target.place.name))
    }

    /// Parent from which an attempt starts.
    async fn parent_from(&self, target: ViewTarget<'_>, newer: Newer) -> Result<Stored> {
        match newer {
            Some(record) => {
                Ok(self.objects.recent.stored(self.objects.incoming(target.parent, record).await?))
            }
            None => self.objects.parent(target).await,
        }
    }

    /// Makes one attempt to write a view.
    async fn write_view(
        &self,
        target: ViewTarget<'_>,
        current: &Stored,
        mut view: Object,
        terms: Terms<'_>,
    ) -> Result<Attempt> {
        let mut shown = shown_to_writer(target, current.object())?;
        let before = target.viewed.show(current.object());
        let mut advice = self.admit_mutate(terms.attributes, Some(&mut view), Some(&before)).await?;
        validate(target, &view)?;
        match self.admit_validate(terms.attributes, Some(&view), Some(&before)).await {
            Ok(warnings) => advice.extend(warnings),
            Err(status) => return Err(status.with_warnings(advice)),
        }
        if let Some(text) = target.viewed.view.still_open(&view) {
            return Err(Box::new(Status::bad_request(text)));
        }
        let shared = Shared::of(target);
        if let Tracked::By(manager) = terms.tracked {
            shared.show(current.object(), &mut shown);
            // An empty scale has no fields, hence no owners.
            for side in [&mut shown, &mut view] {
                target.viewed.served.info.schema.normalise(side);
            }
            let now = self.objects.moment().now;
            self.objects
                .across_versions(&target.viewed.served, target.place.part, |versions| {
                    managed_fields::track(versions, &shown, &mut view, manager, now);
                })
                .await;
        }
        let mut parent = current.object().clone();
        target.viewed.view.write(&view, &mut parent);
        shared.write(&view, &mut parent);
        // The write may create a missing part of the parent, whose other fields have defaults.
        target.parent.default_dropped(&mut parent);
        for field in ["resourceVersion", "uid"] {
            // Absent fields are no preconditions.
            if !view.at(&["metadata", field]).str().is_empty() {
                parent.copy_from(&view, &["metadata", field]);
            }
        }
        let place = Place { part: Part::Main, ..target.place };
        let terms = Terms { tracked: Tracked::Already, ..terms };
        match self.replace(target.parent, place, current, parent, terms).await? {
            Attempt::Again(newer) => Ok(Attempt::Again(newer)),
            Attempt::Done(written) => {
                let stored = target.viewed.of_stored(&written.stored)?;
                Ok(Attempt::Done(Box::new(Written { stored, ..written.with_first(advice) })))
            }
        }
    }
}

fn patch_terms<'a>(
    context: &'a Context,
    target: ViewTarget<'a>,
    options: &'a PatchOptions,
    tracked: Tracked<'a>,
) -> Terms<'a> {
    let attributes = target.attributes(context, Options::Patch(options));
    Terms { attributes, admitted: true, insists: false, uid: UidRule::Immutable, tracked, others: &[] }
}

/// View from which a change starts; status 500 if the parent has a field of a wrong type.
fn shown_to_writer(target: ViewTarget<'_>, parent: &Object) -> Result<Object> {
    let mut shown = target.viewed.show(parent);
    match target.viewed.view.gap(parent) {
        Some(Gap::TypeMismatch(text)) => return Err(Box::new(misfit(text))),
        Some(Gap::Absent(_)) => target.viewed.view.leave_open(&mut shown),
        None => {}
    }
    Ok(shown)
}

fn validate(target: ViewTarget<'_>, view: &Object) -> Result<()> {
    if !target.viewed.view.stands_alone() {
        return Ok(());
    }
    let info = &target.viewed.served.info;
    let mut errors = Vec::new();
    validation::validate_create(view, MetaRules::of(info), &mut errors);
    target.viewed.view.validate(view, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::invalid(&info.group_kind(), view.name(), &errors)))
}

/// Restores the UID of a custom resource in a patched view, as a patch of the view cannot be a precondition on the UID.
fn without_wish(target: ViewTarget<'_>, mut view: Object, shown: &Object) -> Object {
    if target.parent.custom.is_some() {
        view.copy_from(shown, &["metadata", "uid"]);
    }
    view
}

/// Checks that a patched view has the name of the path, its namespace (may be absent), and the UID of the original object.
fn identified(target: ViewTarget<'_>, mut view: Object, shown: &Object) -> Result<Object> {
    system::settle_namespace(&mut view, target.parent.info.namespaced, target.place.namespace)?;
    patch::check_identity(target.parent, &view, target.place)?;
    forget_zero_version(&mut view);
    if view.uid().is_empty() || view.uid() == shown.uid() {
        return Ok(view);
    }
    let resource = &target.parent.resource;
    let whole = format!("{}/{}", resource.resource, target.viewed.name);
    let (wanted, found) = (view.uid(), shown.uid());
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    Err(Box::new(Status::conflict(&GroupResource::new(&resource.group, whole), view.name(), &why)))
}
