//! The descriptions of types and fields, for people: upstream's words, taken when this crate was built.
//!
//! Kept compressed in the binary; opened while documents are made, and dropped when the last of them is.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Weak};

use flate2::read::DeflateDecoder;
use parking_lot::Mutex;

use super::meta::META;

/// What `build.rs` made.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.deflate"));
const LIST_METADATA: &str = "Standard list metadata. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const END: char = '\x1e';
const PART: char = '\x1f';

/// The words of all types.
#[derive(Debug, Default)]
pub(crate) struct Words {
    text: String,
    /// Where each type's record is, sorted by name.
    records: Vec<Range<usize>>,
}

/// The words of one type.
#[derive(Debug, Default)]
pub(crate) struct TypeWords<'a> {
    /// Of the type itself; empty when there are none.
    pub about: Cow<'a, str>,
    fields: HashMap<&'a str, &'a str>,
}

impl TypeWords<'_> {
    /// Of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).copied()
    }
}

impl Words {
    /// The words, opened now unless somebody holds them.
    pub fn open() -> Arc<Self> {
        static OPEN: Mutex<Weak<Words>> = Mutex::new(Weak::new());
        let mut open = OPEN.lock();
        open.upgrade().unwrap_or_else(|| {
            let words = Arc::new(Self::unpack());
            *open = Arc::downgrade(&words);
            words
        })
    }

    fn unpack() -> Self {
        let mut text = String::with_capacity(PACKED.len() * 5);
        if let Err(error) = DeflateDecoder::new(PACKED).read_to_string(&mut text) {
            // The build wrote it: documents do without words rather than not at all.
            tracing::error!(%error, "cannot read the descriptions of types");
            return Self::default();
        }
        let mut records = Vec::new();
        let mut start = 0;
        for (end, _) in text.match_indices(END) {
            records.push(start..end);
            start = end + END.len_utf8();
        }
        Self { text, records }
    }

    fn record(&self, type_name: &str) -> Option<&str> {
        let name = |record: &Range<usize>| self.text[record.clone()].split(PART).next().unwrap_or_default();
        let at = self.records.binary_search_by(|record| name(record).cmp(type_name)).ok()?;
        Some(&self.text[self.records[at].clone()])
    }

    /// Returns the words of a type; a list that has none has those that most lists have.
    pub(crate) fn of(&self, type_name: &str) -> TypeWords<'_> {
        if let Some(record) = self.record(type_name) {
            let mut parts = record.split(PART).skip(1);
            let about = Cow::Borrowed(parts.next().unwrap_or_default());
            let mut fields = HashMap::new();
            while let (Some(field), Some(words)) = (parts.next(), parts.next()) {
                fields.insert(field, words);
            }
            return TypeWords { about, fields };
        }
        let short = type_name.rsplit('.').next().unwrap_or_default();
        match short.strip_suffix("List") {
            Some(kind) => self.of_list(kind),
            None => TypeWords::default(),
        }
    }

    fn of_list(&self, kind: &str) -> TypeWords<'_> {
        // The descriptions of these two in all objects.
        let like = self.of(&format!("{META}Status")).fields;
        let mut fields =
            HashMap::from([("items", "items is a list of schema objects."), ("metadata", LIST_METADATA)]);
        fields.extend(["apiVersion", "kind"].into_iter().filter_map(|name| Some((name, *like.get(name)?))));
        TypeWords { about: Cow::Owned(format!("{kind}List is a list of {kind} objects.")), fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_lists_and_fields_have_upstreams_words() {
        let words = Words::open();
        let deployment = words.of("io.k8s.api.apps.v1.DeploymentSpec");
        assert!(deployment.about.starts_with("DeploymentSpec is"), "{}", deployment.about);
        assert!(deployment.field("replicas").unwrap().contains("desired pods"));
        assert_eq!(deployment.field("nothing"), None);
        let list = words.of("io.k8s.api.core.v1.PodList");
        assert_eq!(list.about, "PodList is a list of Pods.");
        assert!(list.field("items").unwrap().starts_with("List of pods."));
        assert!(list.field("kind").unwrap().contains("CamelCase"));
        assert_eq!(words.of("com.example.NothingList").about, "NothingList is a list of Nothing objects.");
        assert!(words.of("com.example.Nothing").about.is_empty());
    }

    #[test]
    fn words_are_open_only_while_somebody_holds_them() {
        let words = Words::open();
        let weak = Arc::downgrade(&words);
        assert!(std::ptr::eq(&*words, &*Words::open()));
        drop(words);
        // Another test may hold them at this moment.
        assert!(weak.upgrade().is_none_or(|words| Arc::strong_count(&words) > 1));
    }
}
