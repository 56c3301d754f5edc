//! View `scale`: desired and current number of replicas of any kind. The paths of the fields are data.

use std::borrow::Cow;

use portico_kinds::{CellRule, ColumnRule};
use portico_machinery::selector::LabelSelector;
use portico_machinery::table::Column;
use portico_machinery::{Cursor, Object};

use crate::custom::{ScalePaths, Scaled};
use crate::view::{Gap, View};
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
    wanted: Cow<'static, str>,
    there: Cow<'static, str>,
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
            wanted: Cow::Borrowed(".spec.replicas"),
            there: Cow::Borrowed(".status.replicas"),
            selector: Some((Cow::Borrowed(".spec.selector"), selector)),
            custom: None,
        }
    }

    /// Scale with the paths of a definition.
    pub(crate) fn of_paths(paths: &ScalePaths) -> Self {
        Self {
            wanted: paths.spec_replicas_path.clone().into(),
            there: paths.status_replicas_path.clone().into(),
            selector: None,
            custom: Some(paths.clone()),
        }
    }

    fn show_custom(shown: &Scaled, view: &mut Object) {
        view.set(&["spec", "replicas"], shown.wanted.unwrap_or(0));
        view.set(&["status", "replicas"], shown.there);
        view.set(&["status", "selector"], &shown.selector);
    }
}

impl View for Scale {
    fn show(&self, parent: &Object, view: &mut Object) {
        if let Some(Ok(shown)) = self.custom.as_ref().map(|paths| Scaled::of(paths, parent)) {
            return Self::show_custom(&shown, view);
        }
        let number = |path: &str| parent.at(&fields(path)).i64().unwrap_or(0);
        view.set(&["spec", "replicas"], number(&self.wanted));
        view.set(&["status", "replicas"], number(&self.there));
        if let Some((path, form)) = &self.selector {
            view.set(&["status", "selector"], form.text(&parent.at(&fields(path))));
        }
    }

    fn gap(&self, parent: &Object) -> Option<Gap> {
        match Scaled::of(self.custom.as_ref()?, parent) {
            Err(text) => Some(Gap::TypeMismatch(text)),
            Ok(Scaled { wanted: None, .. }) => {
                Some(Gap::Absent(format!("the spec replicas field {:?} does not exist", self.wanted)))
            }
            Ok(_) => None,
        }
    }

    fn leave_open(&self, view: &mut Object) {
        view.set(&["spec", "replicas"], UNSET);
    }

    fn still_open(&self, view: &Object) -> Option<String> {
        let open = self.custom.is_some() && view.at(&["spec", "replicas"]).i64() == Some(UNSET);
        open.then(|| format!("the spec replicas field {:?} cannot be empty", self.wanted))
    }

    fn stands_alone(&self) -> bool {
        self.custom.is_none()
    }

    fn validate(&self, view: &Object, errors: &mut Errors) {
        not_negative(&view.at(&["spec", "replicas"]), errors);
    }

    fn write(&self, view: &Object, parent: &mut Object) {
        parent.set(&fields(&self.wanted), view.at(&["spec", "replicas"]).i64().unwrap_or(0));
    }

    fn field(&self) -> (&str, &str) {
        (&self.wanted, ".spec.replicas")
    }

    fn columns(&self) -> Vec<ColumnRule> {
        let path = |path: &str| fields(path).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let name = CellRule::Path { path: path(".metadata.name"), absent: String::new() };
        // Upstream's two generators of such tables differ.
        let (name_format, age_type) = if self.custom.is_some() { ("name", "date") } else { ("", "string") };
        let age = CellRule::Age { path: path(".metadata.creationTimestamp") };
        [
            ("Name", "string", name_format, "The name of what is scaled.", name),
            (
                "Desired",
                "integer",
                "",
                "How many there should be.",
                CellRule::Number { path: path(".spec.replicas") },
            ),
            (
                "Available",
                "integer",
                "",
                "How many there are.",
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
    fn text(&self, at: &Cursor<'_>) -> String {
        match self {
            Self::Labels => {
                let selector = LabelSelector::of_object(at).ok().flatten();
                selector.map_or_else(String::new, |s| s.to_string())
            }
            Self::Map => LabelSelector::of_labels(at).to_string(),
        }
    }
}
