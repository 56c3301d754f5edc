//! SPDY frames over a connection.

use bytes::{Bytes, BytesMut};
use portico_spdy::{Decoder, DecoderLimits, Encoder, Frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A connection that carries frames. Errors are handled as its end.
pub(super) struct FrameConnection<I> {
    io: I,
    decoder: Decoder,
    encoder: Encoder,
    bytes: BytesMut,
}

impl<I: AsyncRead + AsyncWrite + Unpin> FrameConnection<I> {
    pub(super) fn new(io: I) -> Self {
        let (decoder, encoder) = (Decoder::new(DecoderLimits::default()), Encoder::new().unwrap());
        Self { io, decoder, encoder, bytes: BytesMut::new() }
    }

    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.bytes).ok()? {
                return Some(frame);
            }
            if self.io.read_buf(&mut self.bytes).await.ok()? == 0 {
                return None;
            }
        }
    }

    pub(super) async fn send(&mut self, frame: Frame) -> Option<()> {
        let mut bytes = BytesMut::new();
        self.encoder.encode(&frame, &mut bytes).unwrap();
        self.io.write_all(&bytes).await.ok()?;
        self.io.flush().await.ok()
    }

    pub(super) async fn data(&mut self, stream: u32, data: impl Into<Bytes>) -> Option<()> {
        self.send(Frame::Data { stream, fin: false, data: data.into() }).await
    }

    pub(super) async fn end(&mut self, stream: u32) -> Option<()> {
        self.send(Frame::Data { stream, fin: true, data: Bytes::new() }).await
    }
}
