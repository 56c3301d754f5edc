//! View `scale`: desired and current number of replicas of any kind. The paths of the fields are data.

use std::borrow::Cow;

use portico_kinds::{CellRule, ColumnRule};
use portico_machinery::selector::LabelSelector;
use portico_machinery::table::Column;
use portico_machinery::{Cursor, Object};

use crate::custom::{CustomScale, ScalePaths};
use crate::view::{View, ViewProblem};
use portico_validation::Errors;
use portico_validation::checks::not_negative;

/// Form of the pod selector of a scalable object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleSelector {
    /// Label selector with `matchLabels` and `matchExpressions`.
    Labels,
    /// Map of labels.
    Map,
}

/// Scale of a kind: dotted paths into the parent, in the syntax of custom resources.
pub(crate) struct Scale {
    spec_replicas: Cow<'static, str>,
    status_replicas: Cow<'static, str>,
    /// Path and form of the selector; `None` if the parent has none.
    selector: Option<(Cow<'static, str>, ScaleSelector)>,
    /// Paths of a custom resource, in which any field may be absent.
    custom: Option<ScalePaths>,
}

/// Placeholder for an absent number of replicas of a custom resource while its scale is changed. Clients cannot set this value.
const UNSET: i64 = i32::MIN as i64;

fn fields(path: &str) -> Vec<&str> {
    path.split('.').filter(|name| !name.is_empty()).collect()
}

impl Scale {
    /// Scale of a kind that creates pods from a template.
    pub(crate) const fn of_pods(selector: ScaleSelector) -> Self {
        Self {
            spec_replicas: Cow::Borrowed(".spec.replicas"),
            status_replicas: Cow::Borrowed(".status.replicas"),
            selector: Some((Cow::Borrowed(".spec.selector"), selector)),
            custom: None,
        }
    }

    /// Scale with the paths of a definition.
    pub(crate) fn of_paths(paths: &ScalePaths) -> Self {
        Self {
            spec_replicas: paths.spec_replicas_path.clone().into(),
            status_replicas: paths.status_replicas_path.clone().into(),
            selector: None,
            custom: Some(paths.clone()),
        }
    }

    fn fill_custom(scale: &CustomScale, view: &mut Object) {
        view.set(&["spec", "replicas"], scale.spec_replicas.unwrap_or(0));
        view.set(&["status", "replicas"], scale.status_replicas);
        view.set(&["status", "selector"], &scale.selector);
    }
}

impl View for Scale {
    fn fill(&self, parent: &Object, view: &mut Object) {
        if let Some(Ok(scale)) = self.custom.as_ref().map(|paths| CustomScale::from_object(paths, parent)) {
            return Self::fill_custom(&scale, view);
        }
        let number = |path: &str| parent.at(&fields(path)).i64().unwrap_or(0);
        view.set(&["spec", "replicas"], number(&self.spec_replicas));
        view.set(&["status", "replicas"], number(&self.status_replicas));
        if let Some((path, form)) = &self.selector {
            view.set(&["status", "selector"], form.text(&parent.at(&fields(path))));
        }
    }

    fn problem(&self, parent: &Object) -> Option<ViewProblem> {
        match CustomScale::from_object(self.custom.as_ref()?, parent) {
            Err(text) => Some(ViewProblem::TypeMismatch(text)),
            Ok(CustomScale { spec_replicas: None, .. }) => Some(ViewProblem::Absent(format!(
                "the spec replicas field {:?} does not exist",
                self.spec_replicas
            ))),
            Ok(_) => None,
        }
    }

    fn set_placeholder(&self, view: &mut Object) {
        view.set(&["spec", "replicas"], UNSET);
    }

    fn placeholder_error(&self, view: &Object) -> Option<String> {
        let is_unset = self.custom.is_some() && view.at(&["spec", "replicas"]).i64() == Some(UNSET);
        is_unset.then(|| format!("the spec replicas field {:?} cannot be empty", self.spec_replicas))
    }

    fn is_builtin_kind(&self) -> bool {
        self.custom.is_none()
    }

    fn validate(&self, view: &Object, errors: &mut Errors) {
        not_negative(&view.at(&["spec", "replicas"]), errors);
    }

    fn write(&self, view: &Object, parent: &mut Object) {
        parent.set(&fields(&self.spec_replicas), view.at(&["spec", "replicas"]).i64().unwrap_or(0));
    }

    fn field(&self) -> (&str, &str) {
        (&self.spec_replicas, ".spec.replicas")
    }

    fn columns(&self) -> Vec<ColumnRule> {
        let path = |path: &str| fields(path).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let name = CellRule::Path { path: path(".metadata.name"), absent: String::new() };
        // Upstream's two generators of such tables differ.
        let (name_format, age_type) = if self.custom.is_some() { ("name", "date") } else { ("", "string") };
        let age = CellRule::Age { path: path(".metadata.creationTimestamp") };
        [
            ("Name", "string", name_format, "Name of the scaled object.", name),
            (
                "Desired",
                "integer",
                "",
                "Desired number of replicas.",
                CellRule::Number { path: path(".spec.replicas") },
            ),
            (
                "Available",
                "integer",
                "",
                "Current number of replicas.",
                CellRule::Number { path: path(".status.replicas") },
            ),
            ("Age", age_type, "", "How long ago the object was created.", age),
        ]
        .map(|(name, kind, format, description, cell)| {
            let column = Column {
                name: name.to_owned(),
                kind: kind.to_owned(),
                format: format.to_owned(),
                description: description.to_owned(),
                priority: 0,
            };
            ColumnRule { column, cell }
        })
        .into()
    }
}

impl ScaleSelector {
    /// Selector as text, in the syntax of queries; empty if there is none.
    fn text(&self, cursor: &Cursor<'_>) -> String {
        match self {
            Self::Labels => {
                let selector = LabelSelector::from_object(cursor).ok().flatten();
                selector.map_or_else(String::new, |s| s.to_string())
            }
            Self::Map => LabelSelector::from_labels(cursor).to_string(),
        }
    }
}
