//! Reading and writing views: the view is judged, then the parent is updated as if its owner had written it.

use portico_machinery::status::Reason;
use portico_machinery::{GroupResource, Object, Status};

use super::{Gap, Viewed};
use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, Newer, too_many_changes};
use crate::managed_fields::{self, Shared, Tracked, manager_name};
use crate::options::{PatchOptions, UpdateOptions};
use crate::registry::{Context, Part, Patch, Place, Verbs, Written};
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::update::{Attempt, Terms, UidRule, forget_zero_version};
use crate::{apply, patch, system};
use portico_validation::{self as validation, MetaRules};

/// A parent in one version, and the view of it that is served.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) parent: &'a ServedResource,
    pub(crate) viewed: &'a Viewed,
    pub(crate) place: Place<'a>,
}

impl<'a> Of<'a> {
    /// What a write of the view is: admission sees the view, under the resource of its parent.
    fn attributes(self, context: &'a Context, options: Options<'a>) -> Attributes<'a> {
        Attributes::new(context, self.parent, self.place, options)
    }
}

impl Verbs {
    pub(crate) async fn get_view(&self, of: Of<'_>) -> Result<Stored> {
        let parent = self.parent(of).await?;
        match of.viewed.view.gap(parent.object()) {
            Some(Gap::TypeMismatch(text)) => Err(Box::new(misfit(text))),
            Some(Gap::Absent(text)) => Err(Box::new(Status::internal(text))),
            None => of.viewed.of_stored(&parent),
        }
    }

    pub(crate) async fn update_view(
        &self,
        context: &Context,
        of: Of<'_>,
        mut view: Object,
        options: &UpdateOptions,
    ) -> Result<Written> {
        let manager = manager_name(&options.field_manager, &context.user_agent);
        system::settle_namespace(&mut view, of.parent.info.namespaced, of.place.namespace)?;
        forget_zero_version(&mut view);
        let insists = !view.resource_version().is_empty();
        let terms = Terms {
            attributes: of.attributes(context, Options::Update(options)),
            admitted: true,
            insists,
            uid: UidRule::Precondition,
            tracked: Tracked::By(&manager),
        };
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(of, newer).await?;
            newer = match self.write_view(context, of, &current, view.clone(), terms).await? {
                Attempt::Done(written) => return Ok(*written),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&of.parent.resource, of.place.name))
    }

    pub(crate) async fn patch_view(
        &self,
        context: &Context,
        of: Of<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Written> {
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let terms = patch_terms(context, of, options, Tracked::By(&manager));
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(of, newer).await?;
            let shown = shown_to_writer(of, current.object())?;
            let (view, warnings) = patch::apply(&of.viewed.served, &shown, patch, options)?;
            let view = identified(of, without_wish(of, view, &shown), &shown)?;
            newer = match self.write_view(context, of, &current, view, terms).await? {
                Attempt::Done(written) => return Ok(written.with_first(warnings)),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&of.parent.resource, of.place.name))
    }

    /// Applies to the view; a parent that is not there is never made.
    pub(crate) async fn apply_view(
        &self,
        context: &Context,
        of: Of<'_>,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<Written> {
        let served = &of.viewed.served;
        let config = apply::read(served, body)?;
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let terms = patch_terms(context, of, options, Tracked::Already);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(of, newer).await?;
            let mut shown = shown_to_writer(of, current.object())?;
            Shared::of(of).show(current.object(), &mut shown);
            let (mut view, warnings) =
                self.merge_applied(served, of.place.part, &shown, &config, &manager, options).await?;
            system::settle_namespace(&mut view, of.parent.info.namespaced, of.place.namespace)?;
            let view = identified(of, view, &shown)?;
            newer = match self.write_view(context, of, &current, view, terms).await? {
                Attempt::Done(written) => return Ok(written.with_first(warnings)),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&of.parent.resource, of.place.name))
    }

    async fn parent(&self, of: Of<'_>) -> Result<Stored> {
        let record = self.get(of.parent, of.place.namespace, of.place.name).await?;
        Ok(self.recent.stored(record))
    }

    /// The parent that an attempt begins with.
    async fn parent_from(&self, of: Of<'_>, newer: Newer) -> Result<Stored> {
        match newer {
            Some(record) => Ok(self.recent.stored(self.incoming(of.parent, record).await?)),
            None => self.parent(of).await,
        }
    }

    /// One attempt.
    async fn write_view(
        &self,
        context: &Context,
        of: Of<'_>,
        current: &Stored,
        mut view: Object,
        terms: Terms<'_>,
    ) -> Result<Attempt> {
        let mut shown = shown_to_writer(of, current.object())?;
        self.admit_mutate(terms.attributes, Some(&mut view), Some(&shown)).await?;
        validate(of, &view)?;
        let advice = self.admit_validate(terms.attributes, Some(&view), Some(&shown)).await?;
        if let Some(text) = of.viewed.view.still_open(&view) {
            return Err(Box::new(Status::bad_request(text)));
        }
        let shared = Shared::of(of);
        if let Tracked::By(manager) = terms.tracked {
            shared.show(current.object(), &mut shown);
            // A scale of nothing says nothing, and is nobody's.
            for side in [&mut shown, &mut view] {
                of.viewed.served.info.schema.normalise(side);
            }
            let now = self.moment().now;
            self.across_versions(&of.viewed.served, of.place.part, |versions| {
                managed_fields::track(versions, &shown, &mut view, manager, now);
            })
            .await;
        }
        let mut parent = current.object().clone();
        of.viewed.view.write(&view, &mut parent);
        shared.write(&view, &mut parent);
        for field in ["resourceVersion", "uid"] {
            // Who says nothing of them has no wish about them.
            if !view.at(&["metadata", field]).str().is_empty() {
                parent.copy_from(&view, &["metadata", field]);
            }
        }
        let place = Place { part: Part::Main, ..of.place };
        let terms = Terms { tracked: Tracked::Already, ..terms };
        match self.replace(context, of.parent, place, current, parent, terms).await? {
            Attempt::Again(newer) => Ok(Attempt::Again(newer)),
            Attempt::Done(written) => {
                let stored = of.viewed.of_stored(&written.stored)?;
                Ok(Attempt::Done(Box::new(Written { stored, ..written.with_first(advice) })))
            }
        }
    }
}

fn patch_terms<'a>(
    context: &'a Context,
    of: Of<'a>,
    options: &'a PatchOptions,
    tracked: Tracked<'a>,
) -> Terms<'a> {
    let attributes = of.attributes(context, Options::Patch(options));
    Terms { attributes, admitted: true, insists: false, uid: UidRule::Immutable, tracked }
}

/// The view that a change begins with; 500 when the parent has something else in its place.
fn shown_to_writer(of: Of<'_>, parent: &Object) -> Result<Object> {
    let mut shown = of.viewed.show(parent);
    match of.viewed.view.gap(parent) {
        Some(Gap::TypeMismatch(text)) => return Err(Box::new(misfit(text))),
        Some(Gap::Absent(_)) => of.viewed.view.leave_open(&mut shown),
        None => {}
    }
    Ok(shown)
}

/// 500 in upstream's form: without a reason.
fn misfit(text: String) -> Status {
    Status::failure(Reason::Unknown, text)
}

fn validate(of: Of<'_>, view: &Object) -> Result<()> {
    if !of.viewed.view.stands_alone() {
        return Ok(());
    }
    let info = &of.viewed.served.info;
    let mut errors = Vec::new();
    validation::validate_create(view, MetaRules::of(info), &mut errors);
    of.viewed.view.validate(view, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::invalid(&info.group_kind(), view.name(), &errors)))
}

/// Which custom resource it must be, a patch of its view cannot say.
fn without_wish(of: Of<'_>, mut view: Object, shown: &Object) -> Object {
    if of.parent.custom.is_some() {
        view.copy_from(shown, &["metadata", "uid"]);
    }
    view
}

/// A patched view must still be that of the path, and of the object that was there.
fn identified(of: Of<'_>, mut view: Object, shown: &Object) -> Result<Object> {
    patch::check_identity(of.parent, &view, of.place)?;
    forget_zero_version(&mut view);
    if view.uid().is_empty() || view.uid() == shown.uid() {
        return Ok(view);
    }
    let resource = &of.parent.resource;
    let whole = format!("{}/{}", resource.resource, of.viewed.name);
    let (wanted, found) = (view.uid(), shown.uid());
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    Err(Box::new(Status::conflict(&GroupResource::new(&resource.group, whole), view.name(), &why)))
}
