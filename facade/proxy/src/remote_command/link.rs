//! SPDY frames to and from a kubelet's connection.

use std::io;

use bytes::{Bytes, BytesMut};
use portico_spdy::{Decoder, DecoderLimits, Encoder, Frame, SpdyError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum bytes of input in one frame, as in `io.Copy`: the receiver buffers complete frames.
const MAX_FRAME_DATA: usize = 32 * 1024;
/// Maximum bytes of one read.
const READ_SIZE: usize = 16 * 1024;

/// Error of a connection, which ends its use.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Spdy(#[from] SpdyError),
}

/// Sending half of a connection.
pub(super) struct FrameWriter<W> {
    writer: W,
    encoder: Encoder,
    buffer: BytesMut,
    /// True if a frame was written incompletely: no frame can follow.
    is_incomplete: bool,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(super) fn new(writer: W) -> Result<Self, LinkError> {
        Ok(Self { writer, encoder: Encoder::new()?, buffer: BytesMut::new(), is_incomplete: false })
    }

    /// Sends frames; does nothing if an earlier send failed.
    pub(super) async fn send(&mut self, frames: impl IntoIterator<Item = Frame>) -> Result<(), LinkError> {
        if self.is_incomplete {
            return Ok(());
        }
        self.buffer.clear();
        for frame in frames {
            self.encoder.encode(&frame, &mut self.buffer)?;
        }
        // Stays true if this future is dropped early.
        self.is_incomplete = true;
        self.writer.write_all(&self.buffer).await?;
        self.writer.flush().await?;
        self.is_incomplete = false;
        Ok(())
    }

    /// Sends data in frames of a bounded length.
    pub(super) async fn data(&mut self, stream: u32, mut data: Bytes) -> Result<(), LinkError> {
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(MAX_FRAME_DATA));
            self.send([Frame::Data { stream, fin: false, data: piece }]).await?;
        }
        Ok(())
    }

    /// Ends the sending direction of this stream.
    pub(super) async fn end(&mut self, stream: u32) -> Result<(), LinkError> {
        self.send([Frame::Data { stream, fin: true, data: Bytes::new() }]).await
    }

    pub(super) async fn shutdown(&mut self) -> Result<(), LinkError> {
        Ok(self.writer.shutdown().await?)
    }
}

/// Receiving half of a connection.
pub(super) struct FrameReader<R> {
    reader: R,
    decoder: Decoder,
    bytes: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, decoder: Decoder::new(DecoderLimits::default()), bytes: BytesMut::new() }
    }

    /// Returns the next frame, or `None` at the end of the connection.
    pub(super) async fn next(&mut self) -> Result<Option<Frame>, LinkError> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.bytes)? {
                return Ok(Some(frame));
            }
            self.bytes.reserve(READ_SIZE);
            if self.reader.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }
}
