//! One HTTP/1.1 connection to a backend, driven by the request that uses it.
//!
//! No task and no channel stands between a request and its connection: whoever awaits the answer, or reads its body,
//! reads and writes the socket. The head and small bodies are copied out of one buffer that the connection keeps,
//! so that an exchange allocates next to nothing. The end of an idle connection is noticed by the sweeper, or by the
//! next request, which then goes elsewhere.

mod decode;
mod encode;

pub(super) use decode::Decoded;
pub(crate) use decode::Decoder;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use http::{HeaderValue, Method, Response};
use http_body::Body;
use portico_kit::dial::{Connection, io_reason};
use tokio::io::AsyncWrite;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;
use tokio_util::io::poll_read_buf;

use super::send_error::{SendError, body_error};
use crate::outgoing::Outgoing;
use crate::request_body::RequestBody;
use decode::HeadDecoder;
use encode::Framing;

/// Space for reading; an answer that fills it gets [`STREAM`].
const READ: usize = 8 * 1024;
/// Space for reading an answer that streams: two TLS records.
const STREAM: usize = 32 * 1024;
/// How an exchange ends whose backend goes away in silence.
const CLOSED: &str = "EOF: the backend closed the connection before it answered";
/// A body waits while this much of it is not written yet.
const WRITE: usize = 64 * 1024;

pub(crate) struct Http1 {
    io: Connection,
    /// Read, and not yet decoded.
    pub(super) read: BytesMut,
    /// How much space to read into.
    space: usize,
    /// Encoded, and written up to `written`.
    write: Vec<u8>,
    written: usize,
    flushed: bool,
    upload: Option<Upload>,
    /// Why the backend takes no more of the request; it may still answer.
    refused: Option<SendError>,
    head: HeadDecoder,
    keep_alive: bool,
    /// Whether anything of the present request has left.
    sent: bool,
    /// The client certificate's generation that it was opened under.
    pub(super) generation: u64,
    pub(super) idle_since: Instant,
    /// Where its events arrive.
    pub(super) runtime: Id,
}

/// A request's body that is being sent.
struct Upload {
    body: RequestBody,
    framing: Framing,
}

/// Why a request is not written to its end.
pub(super) enum UploadError {
    /// Its body failed: what the backend has so far must never look like a whole request.
    Body(SendError),
    /// The backend takes no more of it.
    Backend(SendError),
}

/// Why no answer came.
pub(crate) enum Http1Error {
    /// Nothing of the request has left: it may be sent elsewhere.
    Unsent(SendError),
    /// Something has left, or may have.
    Broken(SendError),
}

/// What is left of a connection whose protocol was switched.
pub(crate) struct Switched {
    pub(crate) io: Connection,
    /// What the backend sent already in the new protocol.
    pub(crate) early: BytesMut,
}

/// A connection with an answer's head, and the decoder that finds the end of its body.
pub(crate) type Answered = (Box<Http1>, Response<Decoder>);

impl Http1 {
    pub(crate) fn new(io: Connection, generation: u64) -> Box<Self> {
        Box::new(Self {
            io,
            read: BytesMut::new(),
            space: READ,
            write: Vec::new(),
            written: 0,
            flushed: true,
            upload: None,
            refused: None,
            head: HeadDecoder::default(),
            keep_alive: true,
            sent: false,
            generation,
            idle_since: Instant::now(),
            runtime: Handle::current().id(),
        })
    }

    /// After an exchange: whether nothing is left over on either side. Big buffers are let go.
    pub(super) fn is_reusable(&mut self) -> bool {
        if self.space > READ {
            self.space = READ;
            if self.read.is_empty() {
                self.read = BytesMut::new();
            }
        }
        self.keep_alive
            && self.read.is_empty()
            && self.upload.is_none()
            && self.write.is_empty()
            && self.flushed
    }

    /// Whether the peer has said nothing, not even that it goes.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.poll_fill(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Sends a request and waits for the answer's head. Dropping the future cancels it, with the connection.
    pub(crate) async fn send(
        mut self: Box<Self>,
        request: &mut Outgoing<'_>,
        authority: &HeaderValue,
    ) -> Result<Answered, Http1Error> {
        // Bytes on an idle connection are either its end or not an answer to us. Without any, the check costs nothing.
        if !self.is_quiet() {
            return Err(Http1Error::Unsent(SendError::Http("the connection had ended".to_owned())));
        }
        let body = &request.body;
        let framing = encode::framing(&request.headers, body.is_end_stream(), body.size_hint().exact());
        encode::head(&mut self.write, request, authority, framing);
        (self.sent, self.refused, self.head) = (false, None, HeadDecoder::default());
        if framing != Framing::None {
            self.upload = Some(Upload { body: std::mem::take(&mut request.body), framing });
        }
        let to_head = request.method == Method::HEAD;
        match std::future::poll_fn(|cx| self.poll_answer(cx, to_head)).await {
            Ok(response) => Ok((self, response)),
            // A body that has been read from cannot be sent again.
            Err(error) if !self.sent && framing == Framing::None => Err(Http1Error::Unsent(error)),
            Err(error) => Err(Http1Error::Broken(error)),
        }
    }

    /// After a 101: lets go of the connection.
    pub(crate) fn switch(self: Box<Self>) -> Switched {
        Switched { io: self.io, early: self.read }
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        to_head: bool,
    ) -> Poll<Result<Response<Decoder>, SendError>> {
        match self.poll_upload(cx) {
            Poll::Ready(Err(UploadError::Body(error))) => return Poll::Ready(Err(error)),
            // The backend may have said why it takes no more before it closed.
            Poll::Ready(Err(UploadError::Backend(error))) => self.refused = Some(error),
            _ => {}
        }
        loop {
            match self.head.decode(&mut self.read, to_head) {
                Err(error) => return Poll::Ready(Err(SendError::Http(error.to_string()))),
                Ok(Some(head)) => {
                    self.keep_alive = head.keep_alive && self.refused.is_none();
                    return Poll::Ready(Ok(head.response.map(|()| head.body)));
                }
                Ok(None) => {}
            }
            let reason = match ready!(self.poll_fill(cx)) {
                Ok(0) => CLOSED.to_owned(),
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => CLOSED.to_owned(),
                Err(error) => format!("{} before the backend answered", io_reason(&error)),
            };
            return Poll::Ready(Err(self.refused.take().unwrap_or(SendError::Http(reason))));
        }
    }

    /// Writes what there is to write; ready when the whole request has left.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        loop {
            let pulled = match self.pull(cx) {
                Ok(pulled) => pulled,
                Err(error) => {
                    self.stop_writing();
                    return Poll::Ready(Err(UploadError::Body(error)));
                }
            };
            while self.written < self.write.len() {
                let rest = &self.write[self.written..];
                match ready!(Pin::new(&mut self.io).poll_write(cx, rest)) {
                    Ok(0) => return Poll::Ready(Err(self.give_up(&io::ErrorKind::WriteZero.into()))),
                    Ok(written) => {
                        self.written += written;
                        (self.sent, self.flushed) = (true, false);
                    }
                    Err(error) => return Poll::Ready(Err(self.give_up(&error))),
                }
            }
            self.rewind();
            if !self.flushed {
                if let Err(error) = ready!(Pin::new(&mut self.io).poll_flush(cx)) {
                    return Poll::Ready(Err(self.give_up(&error)));
                }
                self.flushed = true;
            }
            match (&self.upload, pulled) {
                (None, _) => return Poll::Ready(Ok(())),
                (Some(_), Poll::Pending) => return Poll::Pending,
                (Some(_), Poll::Ready(())) => {}
            }
        }
    }

    /// Encodes what the body has now, up to [`WRITE`] bytes. Pending when the body has nothing more at present.
    fn pull(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, SendError> {
        let broken = |reason: &str| SendError::Http(reason.to_owned());
        while let Some(upload) = &mut self.upload {
            if self.write.len() - self.written >= WRITE {
                break;
            }
            let Poll::Ready(frame) = Pin::new(&mut upload.body).poll_frame(cx) else {
                return Ok(Poll::Pending);
            };
            let ended = match frame {
                None => Some(encode::end(&mut self.write, upload.framing, None)),
                Some(Err(error)) => return Err(body_error(error.as_ref())),
                Some(Ok(frame)) => match (frame.data_ref(), frame.trailers_ref()) {
                    (Some(data), _) => {
                        encode::data(&mut self.write, &mut upload.framing, data).map_err(broken)?;
                        let ended = upload.body.is_end_stream();
                        ended.then(|| encode::end(&mut self.write, upload.framing, None))
                    }
                    (_, trailers) => Some(encode::end(&mut self.write, upload.framing, trailers)),
                },
            };
            if let Some(ended) = ended {
                ended.map_err(broken)?;
                self.upload = None;
            }
        }
        Ok(Poll::Ready(()))
    }

    /// All is written: the buffer is used again, unless a big body has made it big.
    fn rewind(&mut self) {
        self.written = 0;
        if self.upload.is_none() && self.write.capacity() > 2 * READ {
            self.write = Vec::new();
        } else {
            self.write.clear();
        }
    }

    fn give_up(&mut self, error: &io::Error) -> UploadError {
        self.stop_writing();
        let reason = format!("{} while the request was sent", io_reason(error));
        UploadError::Backend(SendError::Http(reason))
    }

    /// Nothing more is written on this connection: neither the rest of a body nor its end.
    fn stop_writing(&mut self) {
        (self.upload, self.keep_alive) = (None, false);
        self.rewind();
    }

    /// Reads more; 0 is the end.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read.capacity() - self.read.len() < READ / 2 {
            self.read.reserve(self.space);
        }
        let read = ready!(poll_read_buf(Pin::new(&mut self.io), cx, &mut self.read))?;
        if read >= READ {
            self.space = STREAM;
        }
        Poll::Ready(Ok(read))
    }
}

#[cfg(test)]
mod tests;
