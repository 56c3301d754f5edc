//! Writes of views: validates the view, then updates the parent as if the client had written the parent.

use portico_machinery::{GroupResource, Object, Status};

use crate::Result;
use crate::admission::Options;
use crate::attempts::{MAX_WRITE_ATTEMPTS, NewerRecord, too_many_changes};
use crate::managed_fields::{self, FieldTracking, SharedField, manager_name};
use crate::options::{PatchOptions, UpdateOptions};
use crate::replace::{AttemptOutcome, ReplaceOptions, UidRule};
use crate::stored_object::StoredObject;
use crate::update::clear_zero_version;
use crate::verb_types::{Context, ObjectPart, ObjectPath, Patch, WriteResult};
use crate::verbs::Verbs;
use crate::view::ViewProblem;
use crate::views::{ViewTarget, type_mismatch};
use crate::{apply, patch, system};
use portico_validation::{self as validation, MetaRules};

impl Verbs {
    pub(crate) async fn update_view(
        &self,
        context: &Context,
        target: ViewTarget<'_>,
        mut view: Object,
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        let manager = manager_name(&options.field_manager, &context.user_agent);
        system::default_namespace(&mut view, target.parent.info.namespaced, target.path.namespace)?;
        clear_zero_version(&mut view);
        let has_resource_version = !view.resource_version().is_empty();
        let replace_options = ReplaceOptions {
            attributes: target.attributes(context, Options::Update(options)),
            already_admitted: true,
            has_resource_version,
            uid_rule: UidRule::Precondition,
            tracking: FieldTracking::Manager(&manager),
            extra_ops: &[],
        };
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(target, newer).await?;
            newer = match self.write_view(target, &current, view.clone(), replace_options).await? {
                AttemptOutcome::Done(written) => return Ok(*written),
                AttemptOutcome::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&target.parent.resource, target.path.name))
    }

    pub(crate) async fn patch_view(
        &self,
        context: &Context,
        target: ViewTarget<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<WriteResult> {
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let replace_options =
            patch_replace_options(context, target, options, FieldTracking::Manager(&manager));
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(target, newer).await?;
            let old_view = view_to_change(target, current.object())?;
            let (scheme, served_resource) = (&self.objects.scheme, &target.served_view.served_resource);
            let has_internal = target.parent.custom.is_none();
            let (view, warnings) =
                patch::apply(scheme, served_resource, &old_view, patch, options, has_internal)?;
            let view = check_patched_view(target, with_parent_uid(target, view, &old_view), &old_view);
            let view = view.map_err(|status| status.with_warnings(warnings.clone()))?;
            newer = match self.write_view(target, &current, view, replace_options).await? {
                AttemptOutcome::Done(written) => return Ok(written.prepend_warnings(warnings)),
                AttemptOutcome::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&target.parent.resource, target.path.name))
    }

    /// Applies a configuration to the view; never creates a missing parent.
    pub(crate) async fn apply_view(
        &self,
        context: &Context,
        target: ViewTarget<'_>,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<WriteResult> {
        let served_resource = &target.served_view.served_resource;
        let config = apply::read_config(served_resource, body)?;
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let replace_options = patch_replace_options(context, target, options, FieldTracking::Done);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.parent_from(target, newer).await?;
            let mut old_view = view_to_change(target, current.object())?;
            SharedField::for_target(target).copy_to_view(current.object(), &mut old_view);
            let (view, warnings) = self
                .merge_applied(served_resource, target.path.part, &old_view, &config, &manager, options)
                .await?;
            let view = check_patched_view(target, view, &old_view)
                .map_err(|status| status.with_warnings(warnings.clone()))?;
            newer = match self.write_view(target, &current, view, replace_options).await? {
                AttemptOutcome::Done(written) => return Ok(written.prepend_warnings(warnings)),
                AttemptOutcome::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&target.parent.resource, target.path.name))
    }

    /// Parent from which an attempt starts.
    async fn parent_from(&self, target: ViewTarget<'_>, newer: NewerRecord) -> Result<StoredObject> {
        match newer {
            Some(record) => Ok(self
                .objects
                .recent
                .get_or_insert(self.objects.convert_for_request(target.parent, record).await?)),
            None => self.objects.parent(target).await,
        }
    }

    /// Makes one attempt to write a view.
    async fn write_view(
        &self,
        target: ViewTarget<'_>,
        current: &StoredObject,
        mut view: Object,
        options: ReplaceOptions<'_>,
    ) -> Result<AttemptOutcome> {
        let mut stored_view = view_to_change(target, current.object())?;
        let old_view = target.served_view.view_of(current.object());
        let mut first_warnings =
            self.admit_mutate(options.attributes, Some(&mut view), Some(&old_view)).await?;
        validate(target, &view)?;
        match self.admit_validate(options.attributes, Some(&view), Some(&old_view)).await {
            Ok(warnings) => first_warnings.extend(warnings),
            Err(status) => return Err(status.with_warnings(first_warnings)),
        }
        if let Some(text) = target.served_view.view.placeholder_error(&view) {
            return Err(Box::new(Status::bad_request(text)));
        }
        let shared_field = SharedField::for_target(target);
        if let FieldTracking::Manager(manager) = options.tracking {
            shared_field.copy_to_view(current.object(), &mut stored_view);
            // An empty scale has no fields, hence no owners.
            for object in [&mut stored_view, &mut view] {
                target.served_view.served_resource.info.schema.normalize(object);
            }
            let now = self.objects.request_time().now;
            self.objects
                .with_versions(&target.served_view.served_resource, target.path.part, |versions| {
                    managed_fields::track(versions, &stored_view, &mut view, manager, now);
                })
                .await;
        }
        let mut parent = current.object().clone();
        target.served_view.view.write(&view, &mut parent);
        shared_field.copy_to_parent(&view, &mut parent);
        // The write may create a missing part of the parent, whose other fields have defaults.
        target.parent.default_missing_parts(&mut parent);
        for field in ["resourceVersion", "uid"] {
            // Absent fields are no preconditions.
            if !view.at(&["metadata", field]).str().is_empty() {
                parent.copy_from(&view, &["metadata", field]);
            }
        }
        let path = ObjectPath { part: ObjectPart::Main, ..target.path };
        let replace_options = ReplaceOptions { tracking: FieldTracking::Done, ..options };
        match self.replace(target.parent, path, current, parent, replace_options).await? {
            AttemptOutcome::Retry(newer) => Ok(AttemptOutcome::Retry(newer)),
            AttemptOutcome::Done(written) => {
                let stored = target.served_view.stored_view_of(&written.stored)?;
                Ok(AttemptOutcome::Done(Box::new(WriteResult {
                    stored,
                    ..written.prepend_warnings(first_warnings)
                })))
            }
        }
    }
}

fn patch_replace_options<'a>(
    context: &'a Context,
    target: ViewTarget<'a>,
    options: &'a PatchOptions,
    tracking: FieldTracking<'a>,
) -> ReplaceOptions<'a> {
    let attributes = target.attributes(context, Options::Patch(options));
    ReplaceOptions {
        attributes,
        already_admitted: true,
        has_resource_version: false,
        uid_rule: UidRule::Immutable,
        tracking,
        extra_ops: &[],
    }
}

/// View from which a change starts; status 500 if the parent has a field of a wrong type.
fn view_to_change(target: ViewTarget<'_>, parent: &Object) -> Result<Object> {
    let mut old_view = target.served_view.view_of(parent);
    match target.served_view.view.problem(parent) {
        Some(ViewProblem::TypeMismatch(text)) => return Err(Box::new(type_mismatch(text))),
        Some(ViewProblem::Absent(_)) => target.served_view.view.set_placeholder(&mut old_view),
        None => {}
    }
    Ok(old_view)
}

fn validate(target: ViewTarget<'_>, view: &Object) -> Result<()> {
    if !target.served_view.view.is_builtin_kind() {
        return Ok(());
    }
    let info = &target.served_view.served_resource.info;
    let mut errors = Vec::new();
    validation::validate_create(view, MetaRules::from_kind(info), &mut errors);
    target.served_view.view.validate(view, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::invalid(&info.group_kind(), view.name(), &errors)))
}

/// Restores the UID of a custom resource in a patched view, as a patch of the view cannot be a precondition on the UID.
fn with_parent_uid(target: ViewTarget<'_>, mut view: Object, old_view: &Object) -> Object {
    if target.parent.custom.is_some() {
        view.copy_from(old_view, &["metadata", "uid"]);
    }
    view
}

/// Checks that a patched view has the name of the path, its namespace (may be absent), and the UID of the original object.
fn check_patched_view(target: ViewTarget<'_>, mut view: Object, old_view: &Object) -> Result<Object> {
    system::default_namespace(&mut view, target.parent.info.namespaced, target.path.namespace)?;
    patch::check_identity(target.parent, &view, target.path)?;
    clear_zero_version(&mut view);
    if view.uid().is_empty() || view.uid() == old_view.uid() {
        return Ok(view);
    }
    let resource = &target.parent.resource;
    let resource_name = format!("{}/{}", resource.resource, target.served_view.name);
    let (expected, found) = (view.uid(), old_view.uid());
    let message =
        format!("Precondition failed: UID in precondition: {expected}, UID in object meta: {found}");
    Err(Box::new(Status::conflict(
        &GroupResource::new(&resource.group, resource_name),
        view.name(),
        &message,
    )))
}
