//! SPDY frames to and from a kubelet's connection.

use std::io;

use bytes::{Bytes, BytesMut};
use portico_spdy::{Decoder, Encoder, Frame, Limits, SpdyError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes of input in one frame, as `io.Copy` makes them: the other side holds a frame whole.
const PIECE: usize = 32 * 1024;
/// What is read at once.
const READ: usize = 16 * 1024;

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Spdy(#[from] SpdyError),
}

/// The sending half.
pub(super) struct ToKubelet<W> {
    writer: W,
    encoder: Encoder,
    buffer: BytesMut,
    /// A frame was begun and not finished: nothing can follow it.
    cut: bool,
}

impl<W: AsyncWrite + Unpin> ToKubelet<W> {
    pub(super) fn new(writer: W) -> Result<Self, LinkError> {
        Ok(Self { writer, encoder: Encoder::new()?, buffer: BytesMut::new(), cut: false })
    }

    /// Sends frames, or does nothing where that has failed before.
    pub(super) async fn send(&mut self, frames: impl IntoIterator<Item = Frame>) -> Result<(), LinkError> {
        if self.cut {
            return Ok(());
        }
        self.buffer.clear();
        for frame in frames {
            self.encoder.encode(&frame, &mut self.buffer)?;
        }
        // Stays so when this future is dropped before its end.
        self.cut = true;
        self.writer.write_all(&self.buffer).await?;
        self.writer.flush().await?;
        self.cut = false;
        Ok(())
    }

    /// Sends data in frames of a bounded length.
    pub(super) async fn data(&mut self, stream: u32, mut data: Bytes) -> Result<(), LinkError> {
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(PIECE));
            self.send([Frame::Data { stream, fin: false, data: piece }]).await?;
        }
        Ok(())
    }

    /// Nothing more comes on this stream.
    pub(super) async fn end(&mut self, stream: u32) -> Result<(), LinkError> {
        self.send([Frame::Data { stream, fin: true, data: Bytes::new() }]).await
    }

    pub(super) async fn shutdown(&mut self) -> Result<(), LinkError> {
        Ok(self.writer.shutdown().await?)
    }
}

/// The receiving half.
pub(super) struct FromKubelet<R> {
    reader: R,
    decoder: Decoder,
    bytes: BytesMut,
}

impl<R: AsyncRead + Unpin> FromKubelet<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, decoder: Decoder::new(Limits::default()), bytes: BytesMut::new() }
    }

    /// The next frame; none when the connection has ended.
    pub(super) async fn next(&mut self) -> Result<Option<Frame>, LinkError> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.bytes)? {
                return Ok(Some(frame));
            }
            self.bytes.reserve(READ);
            if self.reader.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }
}
