//! Selecting objects by labels and fields without looking into their bytes (upstream's `SelectionPredicate`).

use std::collections::HashMap;

use portico_machinery::Status;
use portico_machinery::selector::{FieldSelector, FieldTerm, LabelSelector, Operator};
use portico_store::{Only, Record, Signature};

use crate::Result;
use crate::custom;
use crate::served::ServedResource;

/// What a list or watch is about, besides the namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// Whether fields have to be looked for in the bytes: those of custom resources are in no index.
    inside: bool,
}

impl Selection {
    /// 400 for a field that the kind does not offer.
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

    /// Whether it takes by what is in the bytes.
    pub(crate) fn looks_inside(&self) -> bool {
        self.inside
    }

    /// Whether it takes by labels.
    pub(crate) fn looks_at_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// What each object that it takes has: most others are ruled out by that alone.
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

    /// The one name that can match, if there is only one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.fields.requires_exact_match("metadata.name")
    }

    /// One thing that holds of all that it takes, for the store to find its watchers by.
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

    /// Whether it can take an object of this key.
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

/// Whether every kind offers this field.
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
