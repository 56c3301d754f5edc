//! Selection of objects by labels and fields without decoding them (upstream's `SelectionPredicate`).

use std::collections::HashMap;

use portico_machinery::Status;
use portico_machinery::selector::{FieldSelector, FieldTerm, LabelSelector, Operator};
use portico_store::{Only, Record, Signature};

use crate::Result;
use crate::custom;
use crate::served::ServedResource;

/// Label and field selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// True if fields must be read from decoded objects, because fields of custom resources are not indexed.
    inside: bool,
}

impl Selection {
    /// Creates a selection; status 400 for a field that is not selectable.
    pub(crate) fn new(
        served: &ServedResource,
        labels: &LabelSelector,
        fields: &FieldSelector,
    ) -> Result<Self> {
        let offered = &served.info.selectable;
        if let Some(term) = fields.terms().iter().find(|t| !offered.contains(&t.field)) {
            return Err(Box::new(unknown_field(served, &term.field)));
        }
        let fields = fields.renamed(|field| served.strategies.fields.stored_field(field).into_owned());
        let inside = served.custom.is_some() && fields.terms().iter().any(|t| !is_metadata(&t.field));
        Ok(Self { labels: labels.clone(), fields, inside })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// True if matching requires decoded objects.
    pub(crate) fn looks_inside(&self) -> bool {
        self.inside
    }

    /// True if there is a label selector.
    pub(crate) fn looks_at_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Signature that all matching objects contain; rules out most other objects.
    pub(crate) fn signature(&self) -> Signature {
        let labels =
            self.labels.requirements().iter().fold(Signature::default(), |all, requirement| {
                match (requirement.operator, requirement.values.as_slice()) {
                    (Operator::Equals | Operator::In, [value]) => all.with_label(&requirement.key, value),
                    (Operator::NotEquals | Operator::NotIn | Operator::DoesNotExist, _) => all,
                    _ => all.with_label_key(&requirement.key),
                }
            });
        let indexed = self.fields.terms().iter();
        let indexed = indexed.filter(|term| !self.inside && !term.negated && !is_metadata(&term.field));
        indexed.fold(labels, |all, term| all.with_field(&term.field, &term.value))
    }

    /// Name of the only object that can match, if a field selector names it.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.fields.requires_exact_match("metadata.name")
    }

    /// One condition that all matching objects satisfy, by which the store finds the watchers of an event.
    pub(crate) fn only(&self) -> Only {
        if let Some(name) = self.only_name() {
            return Only::Name(name.into());
        }
        let indexed = |term: &&FieldTerm| !self.inside && !term.negated && !is_metadata(&term.field);
        let known = self.fields.terms().iter().filter(indexed).find(|term| !term.value.is_empty());
        known.map_or(Only::Any, |term| Only::Field {
            name: term.field.as_str().into(),
            value: term.value.as_str().into(),
        })
    }

    /// True if an object with this key can match.
    pub(crate) fn may_take(&self, record: &Record) -> bool {
        self.fields.terms().iter().filter(|term| is_metadata(&term.field)).all(|term| {
            let value = match term.field.as_str() {
                "metadata.name" => record.key.name(),
                _ => record.key.namespace(),
            };
            (value == term.value) != term.negated
        })
    }

    pub(crate) fn takes(&self, record: &Record) -> bool {
        let found = if self.inside { custom::field_values(record, &self.fields) } else { HashMap::new() };
        self.labels.matches(record.value.indexed().label_entries())
            && self.fields.matches(|field| match field {
                "metadata.name" => Some(record.key.name()),
                "metadata.namespace" => Some(record.key.namespace()),
                other if self.inside => found.get(other).map(String::as_str),
                other => record.value.field(other),
            })
    }
}

/// True for the fields that every kind can be selected by.
fn is_metadata(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace")
}

fn unknown_field(served: &ServedResource, field: &str) -> Status {
    let offered = &served.info.selectable;
    let plain = offered.iter().all(|field| is_metadata(field));
    Status::bad_request(if plain && offered.len() == 2 && served.custom.is_none() {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        served.strategies.fields.unknown_field(field)
    })
}
