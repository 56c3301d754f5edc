//! Rendering of a body as negotiated: layout and compression, complete or part by part.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::indent::{Indenter, pretty};
use super::yaml::yaml;

/// Size in bytes above which bodies are compressed for clients that accept it (8.4).
pub const GZIP_ABOVE: usize = 128 * 1024;

/// Layout of a JSON body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The body is not changed.
    AsIs,
    /// Indented by two spaces per level.
    Indented,
    /// Converted to YAML.
    Yaml,
}

/// Conversions of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// Layout, applied first.
    pub layout: Layout,
    /// True if the client accepts gzip, which is applied to large bodies.
    pub gzip: bool,
}

/// A rendered body.
#[derive(Debug)]
pub struct RenderedBody {
    /// Content of the body.
    pub body: Bytes,
    /// True if the body was converted to YAML. Content that is not JSON is not converted.
    pub is_yaml: bool,
    /// True if the body is compressed.
    pub is_gzip: bool,
}

impl Rendering {
    /// True if bodies of this size stay unchanged.
    #[must_use]
    pub fn is_identity(self, bytes: usize) -> bool {
        self.layout == Layout::AsIs && !(self.gzip && bytes > GZIP_ABOVE)
    }

    /// Renders a complete body.
    #[must_use]
    pub fn render(self, body: Bytes) -> RenderedBody {
        let (body, is_yaml) = match self.layout {
            Layout::AsIs => (body, false),
            Layout::Indented => (pretty(&body).into(), false),
            Layout::Yaml => yaml(&body).map_or((body, false), |text| (text.into(), true)),
        };
        let is_gzip = self.gzip && body.len() > GZIP_ABOVE;
        let body = if is_gzip { gzip(&body) } else { body };
        RenderedBody { body, is_yaml, is_gzip }
    }
}

/// State between two parts of a body that is indented or compressed as it arrives.
pub struct PartRenderer {
    indenter: Option<Indenter>,
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl PartRenderer {
    /// Prepares to render a body that is larger than [`GZIP_ABOVE`]. YAML is not supported, because it needs the complete body.
    #[must_use]
    pub fn new(rendering: Rendering) -> Self {
        Self {
            indenter: (rendering.layout == Layout::Indented).then(Indenter::default),
            gzip: rendering.gzip.then(|| GzEncoder::new(Vec::new(), LEVEL)),
        }
    }

    /// Renders one more part and returns the bytes that can be sent.
    ///
    /// # Errors
    /// Errors of writing to memory, which do not occur.
    pub fn push(&mut self, part: Bytes) -> io::Result<Bytes> {
        let part = match &mut self.indenter {
            Some(indenter) => {
                let mut out = Vec::with_capacity(part.len() * 3 / 2);
                indenter.push(&part, &mut out);
                out.into()
            }
            None => part,
        };
        let Some(gzip) = &mut self.gzip else { return Ok(part) };
        gzip.write_all(&part)?;
        Ok(std::mem::take(gzip.get_mut()).into())
    }

    /// Returns the bytes to send after the last part.
    ///
    /// # Errors
    /// Errors of writing to memory, which do not occur.
    pub fn finish(self) -> io::Result<Bytes> {
        self.gzip.map_or(Ok(Bytes::new()), |gzip| gzip.finish().map(Bytes::from))
    }
}

/// Upstream's compression level.
const LEVEL: Compression = Compression::new(1);

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), LEVEL);
    // Writing into memory does not fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default().into()
}
