//! Content negotiation: the media type and the form of an object that a client accepts.
//!
//! Mirrors `goautoneg.ParseAccept`, `negotiation.NegotiateMediaTypeOptions` and go-restful's routes. Works on header text only.

use std::collections::BTreeMap;

/// Maximum number of clauses that are sorted like Go's `sort.Sort`, an insertion sort for short lists. Longer headers, which no
/// client sends, are sorted by weight only.
const MAX_ORDERED_CLAUSES: usize = 12;

/// Clause of an Accept header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaRange {
    /// `application` in `application/json`.
    pub kind: String,
    /// `json` in `application/json`.
    pub subtype: String,
    /// Parameters except `q`. If a parameter is repeated, the last value wins.
    pub params: BTreeMap<String, String>,
    /// Weight. Any number: as upstream, the range is not checked.
    pub q: f32,
}

impl MediaRange {
    /// Parses a clause (case-sensitive). Returns `None` if it is not a media range.
    fn parse(clause: &str) -> Option<Self> {
        let (range, params) = clause.split_once(';').unwrap_or((clause, ""));
        let (kind, subtype) = match range.split_once('/') {
            Some((kind, subtype)) if !subtype.is_empty() => {
                let (subtype, rest) = subtype.split_once('/').unwrap_or((subtype, ""));
                if !rest.is_empty() {
                    return None;
                }
                (trim_spaces(kind), trim_spaces(subtype))
            }
            _ if trim_spaces(range.trim_end_matches('/')) == "*" => ("*", "*"),
            _ => return None,
        };
        let mut media =
            Self { kind: kind.to_owned(), subtype: subtype.to_owned(), params: BTreeMap::new(), q: 1.0 };
        for param in params.split(';') {
            media.read_param(param);
        }
        Some(media)
    }

    /// Parses a parameter. A parameter without a value, or with a second `=`, is ignored.
    fn read_param(&mut self, param: &str) {
        let Some((name, value)) = param.split_once('=').filter(|(_, value)| !value.is_empty()) else {
            return;
        };
        let (value, rest) = value.split_once('=').unwrap_or((value, ""));
        if !rest.is_empty() {
            return;
        }
        match trim_spaces(name) {
            "q" => self.q = weight(value),
            name => drop(self.params.insert(name.to_owned(), trim_spaces(value).to_owned())),
        }
    }

    /// Returns `application/json`, without parameters.
    #[must_use]
    pub fn essence(&self) -> String {
        format!("{}/{}", self.kind, self.subtype)
    }

    /// Returns the parameter of this name, or an empty string if it is absent.
    #[must_use]
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// True if the range covers this concrete media type.
    #[must_use]
    pub fn covers(&self, essence: &str) -> bool {
        let Some((kind, subtype)) = essence.split_once('/') else { return false };
        match (self.kind.as_str(), self.subtype.as_str()) {
            ("*", "*") => true,
            (range_type, "*") => range_type == kind,
            (range_type, range_subtype) => range_type == kind && range_subtype == subtype,
        }
    }

    /// True if the range precedes another one (`acceptSlice.Less`): it has a higher weight, or is more specific regardless of
    /// weight. This is not an order: two ranges can each precede the other.
    fn precedes(&self, other: &Self) -> bool {
        self.q > other.q
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// Parses a number like `strconv.ParseFloat`, except hexadecimal numbers. Invalid numbers are 0.
fn weight(text: &str) -> f32 {
    let weight: f32 = text.parse().unwrap_or(0.0);
    if weight.is_nan() && text.starts_with(['+', '-']) { 0.0 } else { weight }
}

fn trim_spaces(text: &str) -> &str {
    text.trim_matches(' ')
}

/// Parses an Accept header. The clauses are in the order in which they are tried.
#[must_use]
pub fn parse_accept(header: &str) -> Vec<MediaRange> {
    let clauses = header.split(',').map(trim_spaces);
    let mut clauses: Vec<_> = clauses.filter_map(MediaRange::parse).collect();
    if clauses.len() > MAX_ORDERED_CLAUSES {
        clauses.sort_by(|a, b| b.q.total_cmp(&a.q));
        return clauses;
    }
    // The relation is not an order, so the result depends on this algorithm, an insertion sort.
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

/// True if a route with these media types accepts a header, because it contains one of them or `*/*`. Ignores other ranges
/// and weights.
#[must_use]
pub fn route_accepts(header: &str, supported: &[&str]) -> bool {
    header.split(',').any(|media| {
        let media = trim_spaces(media.split(';').next().unwrap_or_default());
        media == "*/*" || supported.contains(&media)
    })
}

/// Encoding of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

impl Encoding {
    /// All encodings, in upstream's order.
    pub const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// Returns the media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// Form of the requested object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The object itself.
    #[default]
    Object,
    /// `as=Table`
    Table(MetaVersion),
    /// `as=PartialObjectMetadata`
    Metadata(MetaVersion),
    /// `as=PartialObjectMetadataList`
    MetadataList(MetaVersion),
}

impl Form {
    /// All forms except the plain object.
    pub const SHAPES: [Self; 6] = [
        Self::Table(MetaVersion::V1),
        Self::Table(MetaVersion::V1Beta1),
        Self::Metadata(MetaVersion::V1),
        Self::Metadata(MetaVersion::V1Beta1),
        Self::MetadataList(MetaVersion::V1),
        Self::MetadataList(MetaVersion::V1Beta1),
    ];

    /// Returns the `apiVersion` of this form, or `None` for the object itself.
    #[must_use]
    pub fn api_version(self) -> Option<&'static str> {
        match self {
            Self::Object => None,
            Self::Table(version) | Self::Metadata(version) | Self::MetadataList(version) => {
                Some(version.api_version())
            }
        }
    }
}

/// Version of `meta.k8s.io`; the content is the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    /// `v1`
    V1,
    /// `v1beta1`
    V1Beta1,
}

impl MetaVersion {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// Returns `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Result of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Encoding of the response.
    pub encoding: Encoding,
    /// Form of the object.
    pub form: Form,
    /// True if the clause contains `pretty=1`.
    pub pretty: bool,
}

/// Encodings and forms that an endpoint supports.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Encodings, preferred first.
    pub encodings: &'a [Encoding],
    /// Forms other than the plain object.
    pub forms: &'a [Form],
    /// True if the plain object can be encoded as protobuf, which custom resources cannot.
    pub object_as_protobuf: bool,
}

/// Negotiates an Accept header. An empty header selects the first encoding. Returns `None` (406) if nothing matches.
#[must_use]
pub fn negotiate(header: &str, offer: Offer<'_>) -> Option<Choice> {
    let first = offer.encodings.first().copied()?;
    if header.trim().is_empty() {
        return Some(Choice { encoding: first, form: Form::Object, pretty: false });
    }
    parse_accept(header).iter().find_map(|clause| {
        let covered = offer.encodings.iter().copied().filter(|e| clause.covers(e.media_type()));
        covered.into_iter().find_map(|encoding| choose(clause, encoding, offer))
    })
}

/// Returns the result of a clause for an encoding that it covers (`acceptMediaTypeOptions`).
fn choose(clause: &MediaRange, encoding: Encoding, offer: Offer<'_>) -> Option<Choice> {
    let streams = encoding != Encoding::Yaml;
    match (clause.param("stream"), clause.param("sv")) {
        ("", "" | "v1") => {}
        ("watch", "" | "v1") if streams => {}
        _ => return None,
    }
    let form = form_of(clause)?;
    let offered = form == Form::Object || offer.forms.contains(&form);
    let written = encoding != Encoding::Protobuf
        || match form {
            Form::Object => offer.object_as_protobuf,
            // Tables contain arbitrary JSON: upstream has no protobuf for them.
            Form::Table(_) => false,
            Form::Metadata(_) | Form::MetadataList(_) => true,
        };
    (offered && written).then(|| Choice { encoding, form, pretty: clause.param("pretty") == "1" })
}

fn form_of(clause: &MediaRange) -> Option<Form> {
    let (form, group, version) = (clause.param("as"), clause.param("g"), clause.param("v"));
    if ["as", "g", "v"].iter().all(|name| !clause.params.contains_key(*name)) {
        return Some(Form::Object);
    }
    if group != "meta.k8s.io" {
        return None;
    }
    let version = MetaVersion::parse(version)?;
    match form {
        "Table" => Some(Form::Table(version)),
        "PartialObjectMetadata" => Some(Form::Metadata(version)),
        "PartialObjectMetadataList" => Some(Form::MetadataList(version)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Offer<'_> = Offer {
        encodings: &[Encoding::Json, Encoding::Yaml],
        forms: &[Form::Table(MetaVersion::V1), Form::Metadata(MetaVersion::V1)],
        object_as_protobuf: true,
    };

    #[test]
    fn accept_headers_are_parsed_as_recorded() {
        let rows = include_str!("../testdata/accepts.jsonl").lines();
        let mut count = 0;
        for row in rows {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let clauses = parse_accept(row["text"].as_str().unwrap());
            let got: Vec<serde_json::Value> = clauses
                .iter()
                .map(|c| serde_json::json!([c.kind, c.subtype, c.q.to_string().to_lowercase(), c.params]))
                .collect();
            assert_eq!(serde_json::Value::from(got), row["clauses"], "{row}");
            count += 1;
        }
        assert!(count > 500, "{count} rows");
    }

    #[test]
    fn specific_ranges_are_tried_before_heavier_ones() {
        let order: Vec<_> = parse_accept("*/*, application/*;q=0.5, a/b;q=0.2, x/y")
            .iter()
            .map(MediaRange::essence)
            .collect();
        assert_eq!(order, ["x/y", "a/b", "application/*", "*/*"]);
        let many = parse_accept(&"a/b;q=0.5,c/d,".repeat(50_000));
        assert_eq!((many.len(), many[0].kind.as_str()), (100_000, "c"));
    }

    #[test]
    fn routes_compare_media_types_as_they_are_written() {
        for (header, accepted) in [
            ("a/b", true),
            ("x/y, a/b ;q=0", true),
            ("*/*;x", true),
            ("A/B", false),
            ("a/*", false),
            ("*", false),
            ("", false),
            ("a/b/c", false),
        ] {
            assert_eq!(route_accepts(header, &["a/b"]), accepted, "{header}");
        }
    }

    #[test]
    fn unknown_streams_and_versions_do_not_match() {
        let fits = |param: &str| negotiate(&format!("application/json;{param}"), ALL).is_some();
        assert!(fits("stream=watch") && fits("sv=v1") && fits("stream=") && fits("x=y"));
        assert!(!fits("stream=other") && !fits("sv=v2"));
        assert_eq!(negotiate("application/yaml;stream=watch", ALL), None);
    }

    #[test]
    fn kubectl_falls_back_from_table_to_the_object() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(kubectl, ALL).unwrap().form, Form::Table(MetaVersion::V1));
        let bare = Offer { forms: &[], ..ALL };
        assert_eq!(negotiate(kubectl, bare).unwrap().form, Form::Object);
    }

    #[test]
    fn headers_without_a_match_return_none() {
        assert_eq!(negotiate("application/pdf", ALL), None);
        assert_eq!(negotiate("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ALL), None);
        for half in ["as=;g=meta.k8s.io;v=v1", "as=Table", "g=meta.k8s.io", "v=v1"] {
            assert_eq!(negotiate(&format!("application/json;{half}"), ALL), None, "{half}");
        }
        assert_eq!(negotiate("", ALL).unwrap().encoding, Encoding::Json);
        assert_eq!(negotiate("application/yaml", ALL).unwrap().encoding, Encoding::Yaml);
    }
}
