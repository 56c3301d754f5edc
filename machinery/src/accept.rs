//! Accept and Content-Type: which media type and which form of an object the caller wants.
//!
//! Upstream rules 8.1, 8.3 and 8.6. Pure: header text in, choice out.

/// One media range of an Accept header, or a Content-Type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaType {
    /// `application` in `application/json`.
    pub kind: String,
    /// `json` in `application/json`.
    pub subtype: String,
    /// Parameters but `q`, in order.
    pub params: Vec<(String, String)>,
    /// The weight, 0 to 1.
    pub q: f32,
}

impl MediaType {
    /// Reads a Content-Type, in which capitals do not count (`mime.ParseMediaType`); nothing when it has no slash.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let lower = |media: Self| Self {
            kind: media.kind.to_ascii_lowercase(),
            subtype: media.subtype.to_ascii_lowercase(),
            params: media
                .params
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
            ..media
        };
        Self::range(text).map(lower)
    }

    /// Reads a clause of an Accept header, in which capitals count (`goautoneg.ParseAccept`).
    fn range(text: &str) -> Option<Self> {
        let mut pieces = text.split(';').map(str::trim);
        let (kind, subtype) = pieces.next()?.split_once('/')?;
        let mut media = Self {
            kind: kind.trim().to_owned(),
            subtype: subtype.trim().to_owned(),
            q: 1.0,
            ..Self::default()
        };
        for (name, value) in pieces.filter_map(|p| p.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_owned() {
                name if name == "q" => {
                    // `nan` and `7` parse, too, and weigh nothing that others could be compared with.
                    media.q = value.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(1.0);
                }
                name => media.params.push((name, value.to_owned())),
            }
        }
        (!media.kind.is_empty() && !media.subtype.is_empty()).then_some(media)
    }

    /// `application/json`, without parameters.
    #[must_use]
    pub fn essence(&self) -> String {
        format!("{}/{}", self.kind, self.subtype)
    }

    /// The parameter of this name, empty when absent.
    #[must_use]
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    /// Whether the range covers this concrete media type.
    #[must_use]
    pub fn covers(&self, essence: &str) -> bool {
        let Some((kind, subtype)) = essence.split_once('/') else { return false };
        (self.kind == "*" || self.kind == kind) && (self.subtype == "*" || self.subtype == subtype)
    }

    fn specificity(&self) -> u8 {
        u8::from(self.kind != "*") + u8::from(self.subtype != "*")
    }
}

/// Reads an Accept header: clauses by weight, then specific before wildcard, otherwise as written.
#[must_use]
pub fn parse_accept(header: &str) -> Vec<MediaType> {
    let mut clauses: Vec<_> = header.split(',').filter_map(|c| MediaType::range(c.trim())).collect();
    clauses.sort_by(|a, b| b.q.total_cmp(&a.q).then(b.specificity().cmp(&a.specificity())));
    clauses
}

/// How an object is encoded.
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
    /// All, in upstream's order.
    pub const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// What shape of an object is wanted.
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
    /// Every shape besides the plain object.
    pub const SHAPES: [Self; 6] = [
        Self::Table(MetaVersion::V1),
        Self::Table(MetaVersion::V1Beta1),
        Self::Metadata(MetaVersion::V1),
        Self::Metadata(MetaVersion::V1Beta1),
        Self::MetadataList(MetaVersion::V1),
        Self::MetadataList(MetaVersion::V1Beta1),
    ];

    /// The `apiVersion` of this shape; nothing for the object itself.
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

/// A version of `meta.k8s.io`; the content is the same in both.
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

    /// `meta.k8s.io/v1`
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How it is encoded.
    pub encoding: Encoding,
    /// In which shape.
    pub form: Form,
    /// Whether the clause asked for `pretty=1`.
    pub pretty: bool,
}

/// What an endpoint can give.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Encodings, preferred first.
    pub encodings: &'a [Encoding],
    /// Shapes besides the plain object.
    pub forms: &'a [Form],
    /// Whether the plain object can be written as protobuf, which custom resources cannot.
    pub sealed: bool,
}

/// Chooses for an Accept header; an empty one gets the first encoding. Nothing fits: 406.
#[must_use]
pub fn negotiate(header: &str, offer: Offer<'_>) -> Option<Choice> {
    let first = offer.encodings.first().copied()?;
    if header.trim().is_empty() {
        return Some(Choice { encoding: first, form: Form::Object, pretty: false });
    }
    parse_accept(header).iter().find_map(|clause| {
        let encoding = offer.encodings.iter().copied().find(|e| clause.covers(e.media_type()))?;
        let form = form_of(clause)?;
        let offered = form == Form::Object || offer.forms.contains(&form);
        let written = encoding != Encoding::Protobuf
            || match form {
                Form::Object => offer.sealed,
                // Tables hold any JSON: upstream has no protobuf for them.
                Form::Table(_) => false,
                Form::Metadata(_) | Form::MetadataList(_) => true,
            };
        (offered && written).then(|| Choice { encoding, form, pretty: clause.param("pretty") == "1" })
    })
}

fn form_of(clause: &MediaType) -> Option<Form> {
    let (form, group, version) = (clause.param("as"), clause.param("g"), clause.param("v"));
    if ["as", "g", "v"].iter().all(|name| clause.params.iter().all(|(n, _)| n != name)) {
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
        sealed: true,
    };

    #[test]
    fn clauses_rank_by_weight_and_then_by_specificity() {
        let order: Vec<_> =
            parse_accept("*/*, application/*;q=0.5, a/b;q=0.5, x/y").iter().map(MediaType::essence).collect();
        assert_eq!(order, ["x/y", "*/*", "a/b", "application/*"]);
    }

    #[test]
    fn kubectl_falls_back_from_table_to_the_object() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(kubectl, ALL).unwrap().form, Form::Table(MetaVersion::V1));
        let bare = Offer { forms: &[], ..ALL };
        assert_eq!(negotiate(kubectl, bare).unwrap().form, Form::Object);
    }

    #[test]
    fn nothing_that_fits_is_nothing() {
        assert_eq!(negotiate("application/pdf", ALL), None);
        assert_eq!(negotiate("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ALL), None);
        for half in ["as=;g=meta.k8s.io;v=v1", "as=Table", "g=meta.k8s.io", "v=v1"] {
            assert_eq!(negotiate(&format!("application/json;{half}"), ALL), None, "{half}");
        }
        assert_eq!(negotiate("", ALL).unwrap().encoding, Encoding::Json);
        assert_eq!(negotiate("application/yaml", ALL).unwrap().encoding, Encoding::Yaml);
    }
}
