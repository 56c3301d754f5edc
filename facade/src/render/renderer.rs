//! Renders large bodies on threads that serve no connections: a megabyte takes tens of milliseconds, which would delay all
//! requests on the same thread.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use portico_kit::offload::Offload;

use super::rendering::{PartRenderer, RenderedBody, Rendering};
use crate::body::BoxError;

/// Size of a response, or of a part of a streamed one, that a serving thread compresses, indents or converts to YAML.
///
/// Limit (Serving, bytes): larger parts are rendered by other threads.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Renders bodies. Clones share the threads.
#[derive(Clone, Debug)]
pub struct Renderer {
    offload: Arc<Offload>,
}

/// The rendering was interrupted, by a panic or the end of the process.
#[derive(Debug, thiserror::Error)]
#[error("encoding of the response was interrupted")]
pub struct RenderInterrupted;

impl Renderer {
    /// Creates a renderer that uses these threads.
    #[must_use]
    pub fn new(offload: Arc<Offload>) -> Self {
        Self { offload }
    }

    /// Runs work on `bytes` bytes, outside of the serving threads if it is large.
    ///
    /// # Errors
    /// [`RenderInterrupted`].
    pub async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RenderInterrupted> {
        if bytes <= MAX_INLINE_BYTES {
            return Ok(work());
        }
        self.offload.run("render", async move { work() }).await.ok_or(RenderInterrupted)
    }

    /// Renders a complete body.
    ///
    /// # Errors
    /// [`RenderInterrupted`].
    pub async fn render(&self, rendering: Rendering, body: Bytes) -> Result<RenderedBody, RenderInterrupted> {
        let bytes = if rendering.is_identity(body.len()) { 0 } else { body.len() };
        self.run(bytes, move || rendering.render(body)).await
    }

    /// Renders a body that arrives in parts.
    pub fn render_parts<S>(
        &self,
        rendering: Rendering,
        parts: S,
    ) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + use<S>
    where
        S: Stream<Item = Result<Bytes, BoxError>> + Send + Unpin,
    {
        let state = (self.clone(), parts, Some(PartRenderer::new(rendering)));
        stream::try_unfold(state, |(this, mut parts, renderer)| async move {
            let Some(mut renderer) = renderer else { return Ok(None) };
            let Some(part) = parts.next().await.transpose()? else {
                return Ok(Some((renderer.finish()?, (this, parts, None))));
            };
            let work = move |part| renderer.push(part).map(|rendered| (rendered, renderer));
            let (rendered, renderer) = this.run(part.len(), move || work(part)).await??;
            Ok(Some((rendered, (this, parts, Some(renderer)))))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::render::Layout;
    use portico_kit::tasks::TaskSet;

    fn renderer() -> Renderer {
        Renderer::new(Arc::new(Offload::with_threads("render", 1, &TaskSet::new()).unwrap()))
    }

    fn thread_name() -> Option<String> {
        thread::current().name().map(str::to_owned)
    }

    #[tokio::test]
    async fn only_large_work_moves_to_another_thread() {
        let renderer = renderer();
        assert_eq!(renderer.run(MAX_INLINE_BYTES, thread_name).await.unwrap(), thread_name());
        assert_eq!(renderer.run(MAX_INLINE_BYTES + 1, thread_name).await.unwrap().as_deref(), Some("render"));
    }

    #[tokio::test]
    async fn a_panic_affects_only_its_response() {
        let renderer = renderer();
        assert!(renderer.run(MAX_INLINE_BYTES + 1, || -> u8 { panic!("asked to") }).await.is_err());
        assert_eq!(renderer.run(MAX_INLINE_BYTES + 1, || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_body_is_rendered_the_same_complete_and_in_parts() {
        let rendering = Rendering { layout: Layout::Indented, gzip: false };
        let json = Bytes::from(serde_json::to_string(&vec!["0123456789"; 10_000]).unwrap());
        let complete = renderer().render(rendering, json.clone()).await.unwrap().body;
        let parts: Vec<Result<Bytes, BoxError>> =
            json.chunks(70_000).map(|p| Ok(Bytes::copy_from_slice(p))).collect();
        let rendered = renderer().render_parts(rendering, stream::iter(parts));
        let rendered: Vec<Bytes> = rendered.map(|part| part.unwrap()).collect().await;
        assert_eq!(rendered.concat(), complete);
    }
}
