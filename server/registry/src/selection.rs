//! Selection of objects by labels and fields without decoding them (upstream's `SelectionPredicate`).

use std::collections::HashMap;

use portico_machinery::Status;
use portico_machinery::selector::{FieldSelector, FieldTerm, LabelSelector, Operator};
use portico_store::{ObjectFilter, Record, Signature};

use crate::Result;
use crate::custom;
use crate::served_resource::ServedResource;

/// Label and field selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// True if fields must be read from decoded objects, because fields of custom resources are not indexed.
    needs_decoding: bool,
}

impl Selection {
    /// Creates a selection; status 400 for a field that is not selectable.
    pub(crate) fn new(
        served_resource: &ServedResource,
        labels: &LabelSelector,
        fields: &FieldSelector,
    ) -> Result<Self> {
        let offered = &served_resource.info.selectable_fields;
        if let Some(term) = fields.terms().iter().find(|t| !offered.contains(&t.field)) {
            return Err(Box::new(unknown_field(served_resource, &term.field)));
        }
        let fields =
            fields.rename_fields(|field| served_resource.strategies.fields.stored_field(field).into_owned());
        let needs_decoding =
            served_resource.custom.is_some() && fields.terms().iter().any(|t| !is_metadata(&t.field));
        Ok(Self { labels: labels.clone(), fields, needs_decoding })
    }

    pub(crate) fn matches_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// True if matching requires decoded objects.
    pub(crate) fn needs_decoding(&self) -> bool {
        self.needs_decoding
    }

    /// True if there is a label selector.
    pub(crate) fn has_label_selector(&self) -> bool {
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
        let indexed =
            indexed.filter(|term| !self.needs_decoding && !term.negated && !is_metadata(&term.field));
        indexed.fold(labels, |all, term| all.with_field(&term.field, &term.value))
    }

    /// Name of the only object that can match, if a field selector names it.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.fields.requires_exact_match("metadata.name")
    }

    /// One condition that all matching objects satisfy, by which the store finds the watchers of an event.
    pub(crate) fn index_condition(&self) -> ObjectFilter {
        if let Some(name) = self.only_name() {
            return ObjectFilter::Name(name.into());
        }
        let indexed = |term: &&FieldTerm| !self.needs_decoding && !term.negated && !is_metadata(&term.field);
        let exact_term = self.fields.terms().iter().filter(indexed).find(|term| !term.value.is_empty());
        exact_term.map_or(ObjectFilter::Any, |term| ObjectFilter::Field {
            name: term.field.as_str().into(),
            value: term.value.as_str().into(),
        })
    }

    /// True if an object with this key can match.
    pub(crate) fn may_match(&self, record: &Record) -> bool {
        self.fields.terms().iter().filter(|term| is_metadata(&term.field)).all(|term| {
            let value = match term.field.as_str() {
                "metadata.name" => record.key.name(),
                _ => record.key.namespace(),
            };
            (value == term.value) != term.negated
        })
    }

    pub(crate) fn matches(&self, record: &Record) -> bool {
        let found =
            if self.needs_decoding { custom::field_values(record, &self.fields) } else { HashMap::new() };
        self.labels.matches(record.value.indexed().label_entries())
            && self.fields.matches(|field| match field {
                "metadata.name" => Some(record.key.name()),
                "metadata.namespace" => Some(record.key.namespace()),
                other if self.needs_decoding => found.get(other).map(String::as_str),
                other => record.value.field(other),
            })
    }
}

/// True for the fields that every kind can be selected by.
fn is_metadata(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace")
}

fn unknown_field(served_resource: &ServedResource, field: &str) -> Status {
    let offered = &served_resource.info.selectable_fields;
    let plain = offered.iter().all(|field| is_metadata(field));
    Status::bad_request(if plain && offered.len() == 2 && served_resource.custom.is_none() {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        served_resource.strategies.fields.unknown_field(field)
    })
}
