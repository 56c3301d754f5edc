//! Application tags such as `!vault`: upstream's YAML parser reads a scalar with such a tag as a string, regardless of its form.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Location;

/// Maximum number of levels that are searched for tags: each uses more stack than a level without tags.
const MAX_LEVELS: u8 = 20;
const CORE_PREFIX: &str = "tag:yaml.org,2002:";
/// Tags of YAML that select a type.
const CORE_TYPES: [&str; 9] = ["str", "bool", "int", "float", "timestamp", "null", "binary", "seq", "map"];

/// Returns the number of levels in which a text may have tags.
pub(super) fn levels(text: &str) -> u8 {
    if text.contains('!') { MAX_LEVELS } else { 0 }
}

/// Reads a value by `seed`. Returns its byte range in the text if it has an application tag.
pub(super) fn read_tagged<'de, D, S>(deserializer: D, seed: S) -> Result<Option<Range<usize>>, D::Error>
where
    D: Deserializer<'de>,
    S: DeserializeSeed<'de, Value = ()>,
{
    deserializer.deserialize_newtype_struct("__yaml_tagged", TaggedSeed(seed))
}

/// Value and its tag.
struct TaggedSeed<S>(S);

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for TaggedSeed<S> {
    type Value = Option<Range<usize>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value and its tag")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let byte_range = parts.next_element_seed(LocatedSeed(self.0))?.flatten();
        let tag: Option<String> = parts.next_element()?;
        Ok(byte_range.filter(|_| tag.is_some_and(|tag| is_application_tag(&tag))))
    }
}

fn is_application_tag(tag: &str) -> bool {
    let name = tag.strip_prefix(CORE_PREFIX).or_else(|| tag.strip_prefix("!!"));
    tag != "!" && !name.is_some_and(|name| CORE_TYPES.contains(&name))
}

/// Value and its byte range in the text, if known.
struct LocatedSeed<S>(S);

impl<'de, S: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for LocatedSeed<S> {
    type Value = Option<Range<usize>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_newtype_struct("__yaml_spanned", self)
    }
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for LocatedSeed<S> {
    type Value = Option<Range<usize>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value and its place")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut seed, mut byte_range) = (Some(self.0), None);
        while let Some(field) = fields.next_key::<String>()? {
            match (field.as_str(), seed.take()) {
                ("value", Some(seed)) => fields.next_value_seed(seed)?,
                // Position of an alias, then of the value.
                ("referenced" | "defined", _) => byte_range = range(&fields.next_value()?),
                (_, left) => {
                    fields.next_value::<IgnoredAny>()?;
                    seed = left;
                }
            }
        }
        Ok(byte_range)
    }
}

fn range(location: &Location) -> Option<Range<usize>> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    Some(start..start + usize::try_from(span.byte_len()?).ok()?)
}
