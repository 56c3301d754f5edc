//! Index of label selectors: finds the selectors that match a set of labels without trying all of them. Each selector is
//! indexed by a label that it requires.
//!
//! The cost of a lookup depends on the number of labels and of selectors that require one of them, within one namespace.

use std::collections::{BTreeSet, HashMap};

use portico_machinery::selector::{LabelSelector, Operator};

/// Labels in the form in which the store keeps them.
pub type Labels = [(Box<str>, Box<str>)];

/// Selectors of named objects, by namespace.
#[derive(Debug, Default)]
pub struct Selectors {
    namespaces: HashMap<String, NamespaceIndex>,
}

#[derive(Debug, Default)]
struct NamespaceIndex {
    selectors: HashMap<String, LabelSelector>,
    /// Names of objects by a label (key, then value) that their selector requires.
    by_label: HashMap<String, HashMap<String, BTreeSet<String>>>,
    /// Names of objects whose selectors require no label with a single value.
    others: BTreeSet<String>,
}

/// Returns a label that all objects matching the selector have.
fn required_label(selector: &LabelSelector) -> Option<(&str, &str)> {
    selector.requirements().iter().find_map(|requirement| {
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::In, [value]) => Some((requirement.key.as_str(), value.as_str())),
            _ => None,
        }
    })
}

impl Selectors {
    /// Indexes the selector of an object; `None` removes the object.
    pub fn put(&mut self, namespace: &str, name: &str, selector: Option<LabelSelector>) {
        self.remove(namespace, name);
        let Some(selector) = selector else { return };
        let index = self.namespaces.entry(namespace.to_owned()).or_default();
        let names = match required_label(&selector) {
            Some((key, value)) => {
                index.by_label.entry(key.to_owned()).or_default().entry(value.to_owned()).or_default()
            }
            None => &mut index.others,
        };
        names.insert(name.to_owned());
        index.selectors.insert(name.to_owned(), selector);
    }

    /// Removes the selector of an object.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        let Some(index) = self.namespaces.get_mut(namespace) else { return };
        let Some(selector) = index.selectors.remove(name) else { return };
        match required_label(&selector) {
            Some((key, value)) => index.remove_label(key, value, name),
            None => {
                index.others.remove(name);
            }
        }
        if index.selectors.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    pub fn clear(&mut self) {
        self.namespaces.clear();
    }

    /// Returns the names of the objects whose selectors match these labels.
    #[must_use]
    pub fn matching(&self, namespace: &str, labels: &Labels) -> BTreeSet<String> {
        let Some(index) = self.namespaces.get(namespace) else { return BTreeSet::new() };
        let by_label = labels.iter().filter_map(|(key, value)| index.by_label.get(&**key)?.get(&**value));
        let candidates = by_label.flatten().chain(&index.others);
        let pairs = labels.iter().map(|(key, value)| (&**key, &**value));
        let matches = |name: &&String| index.selectors.get(*name).is_some_and(|s| s.matches(pairs.clone()));
        candidates.filter(matches).cloned().collect()
    }
}

impl NamespaceIndex {
    fn remove_label(&mut self, key: &str, value: &str, name: &str) {
        let Some(values) = self.by_label.get_mut(key) else { return };
        if let Some(names) = values.get_mut(value) {
            names.remove(name);
            if names.is_empty() {
                values.remove(value);
            }
        }
        if values.is_empty() {
            self.by_label.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<(Box<str>, Box<str>)> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.into(), value.into())).collect()
    }

    fn matching(selectors: &Selectors, text: &str) -> Vec<String> {
        selectors.matching("n", &labels(text)).into_iter().collect()
    }

    #[test]
    fn selectors_are_found_by_labels_that_they_require_or_not() {
        let mut selectors = Selectors::default();
        for (name, text) in
            [("one", "a=1"), ("two", "a=1,b=2"), ("set", "a in (1,2)"), ("all", ""), ("not", "!a")]
        {
            selectors.put("n", name, Some(LabelSelector::parse(text).unwrap()));
        }
        selectors.put("other", "one", Some(LabelSelector::default()));
        assert_eq!(matching(&selectors, "a=1"), ["all", "one", "set"]);
        assert_eq!(matching(&selectors, "a=1,b=2"), ["all", "one", "set", "two"]);
        assert_eq!(matching(&selectors, "c=1"), ["all", "not"]);
        selectors.put("n", "one", Some(LabelSelector::parse("a=3").unwrap()));
        selectors.put("n", "all", None);
        assert_eq!(matching(&selectors, "a=1"), ["set"]);
        assert_eq!(matching(&selectors, "a=3"), ["one"]);
    }

    #[test]
    fn removed_selectors_leave_no_entries() {
        let mut selectors = Selectors::default();
        for text in ["a=1", "x", "a=2"] {
            selectors.put("n", "same", Some(LabelSelector::parse(text).unwrap()));
        }
        selectors.remove("n", "same");
        selectors.remove("n", "never");
        assert!(selectors.namespaces.is_empty());
    }
}
