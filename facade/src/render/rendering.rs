//! A body as its reader asks for it: laid out and compressed, whole or part by part.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::indent::{Indenter, pretty};
use super::yaml::yaml;

/// Bodies larger than this are compressed for callers who accept it (8.4).
pub const GZIP_ABOVE: usize = 128 * 1024;

/// How JSON that somebody else made is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As it came.
    AsIs,
    /// Two spaces for each level.
    Indented,
    /// As YAML.
    Yaml,
}

/// What is done to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// First.
    pub layout: Layout,
    /// Then, when it is large; whether the reader takes it.
    pub gzip: bool,
}

/// What became of a body.
#[derive(Debug)]
pub struct Rendered {
    /// Its bytes.
    pub body: Bytes,
    /// Whether it is YAML: what is no JSON stays as it was.
    pub is_yaml: bool,
    /// Whether it is compressed.
    pub is_gzip: bool,
}

impl Rendering {
    /// Whether bodies of so many bytes stay as they are.
    #[must_use]
    pub fn keeps(self, bytes: usize) -> bool {
        self.layout == Layout::AsIs && !(self.gzip && bytes > GZIP_ABOVE)
    }

    /// The whole body.
    #[must_use]
    pub fn render(self, body: Bytes) -> Rendered {
        let (body, is_yaml) = match self.layout {
            Layout::AsIs => (body, false),
            Layout::Indented => (pretty(&body).into(), false),
            Layout::Yaml => yaml(&body).map_or((body, false), |text| (text.into(), true)),
        };
        let is_gzip = self.gzip && body.len() > GZIP_ABOVE;
        let body = if is_gzip { gzip(&body) } else { body };
        Rendered { body, is_yaml, is_gzip }
    }
}

/// The state between two parts of a body that is indented or compressed while it comes.
pub struct PartRenderer {
    indenter: Option<Indenter>,
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl PartRenderer {
    /// Before the first part of a body that is larger than [`GZIP_ABOVE`]. YAML needs the whole.
    #[must_use]
    pub fn new(rendering: Rendering) -> Self {
        Self {
            indenter: (rendering.layout == Layout::Indented).then(Indenter::default),
            gzip: rendering.gzip.then(|| GzEncoder::new(Vec::new(), LEVEL)),
        }
    }

    /// What can be sent after one more part.
    ///
    /// # Errors
    /// Those of writing to memory, which does not fail.
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

    /// What is sent after the last part.
    ///
    /// # Errors
    /// As [`PartRenderer::push`].
    pub fn finish(self) -> io::Result<Bytes> {
        self.gzip.map_or(Ok(Bytes::new()), |gzip| gzip.finish().map(Bytes::from))
    }
}

/// Upstream's.
const LEVEL: Compression = Compression::new(1);

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), LEVEL);
    // Writing into memory does not fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default().into()
}
