//! Counts received HTTP/2 frames: whether a request head is incomplete, and how many frames only cause work.
//!
//! Frame headers are parsed here in addition to h2, because h2 answers any number of PING, SETTINGS, PRIORITY and WINDOW_UPDATE
//! frames of a client and does not report them. Does not interpret frames beyond their types.

use std::time::Instant;

/// HTTP/2 frames other than requests and bodies (PING, SETTINGS, WINDOW_UPDATE) that a client may send in a burst.
///
/// Limit (Serving): the connection is closed.
const MAX_CONTROL_FRAMES: u32 = 10_000;
/// Further such frames allowed for each second.
///
/// Limit (Serving): the connection is closed.
const CONTROL_FRAMES_PER_SECOND: u32 = 1_000;
/// Bytes sent for which one further such frame is allowed.
///
/// Clients that read much update their windows often: Go for each 4 KiB, with two frames.
///
/// Limit (Serving, bytes): the connection is closed.
const BYTES_PER_CONTROL_FRAME: usize = 512;
/// Further such frames allowed for each request.
///
/// A request can be cancelled, prioritized, and given more window.
///
/// Limit (Serving): the connection is closed.
const CONTROL_FRAMES_PER_REQUEST: u32 = 4;

/// Length of the connection preface.
const PREFACE_BYTES: usize = 24;
/// Length of a frame header: length (3 bytes), type, flags, stream (4 bytes).
const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Error: the client sends more control frames than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the client sends too many HTTP/2 control frames")]
pub struct TooManyFrames;

/// Parser of the frame headers of one connection.
#[derive(Debug)]
pub struct FrameReader {
    preface: usize,
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    payload_left: usize,
    /// True if the bytes so far end within a HEADERS frame or its CONTINUATION frames.
    in_headers: bool,
    /// True if HEADERS arrived without END_HEADERS, so that CONTINUATION follows.
    expects_continuation: bool,
    allowance: u32,
    refilled_at: Instant,
    sent_bytes: usize,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameReader {
    /// Returns a parser for the beginning of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            preface: PREFACE_BYTES,
            header: [0; HEADER_BYTES],
            header_filled: 0,
            payload_left: 0,
            in_headers: false,
            expects_continuation: false,
            allowance: MAX_CONTROL_FRAMES,
            refilled_at: Instant::now(),
            sent_bytes: 0,
        }
    }

    /// True if the bytes received so far end within the head of a request or within the connection preface.
    #[must_use]
    pub fn is_in_head(&self) -> bool {
        self.preface > 0 || self.header_filled > 0 || self.in_headers || self.expects_continuation
    }

    /// Records bytes sent to the client.
    pub fn record_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        let allowance = self.sent_bytes / BYTES_PER_CONTROL_FRAME;
        self.sent_bytes %= BYTES_PER_CONTROL_FRAME;
        self.add_allowance(u32::try_from(allowance).unwrap_or(u32::MAX));
    }

    /// Parses bytes received from the client.
    ///
    /// # Errors
    /// [`TooManyFrames`]: the connection should be closed.
    pub fn parse_received(&mut self, mut bytes: &[u8]) -> Result<(), TooManyFrames> {
        let skipped = self.preface.min(bytes.len());
        self.preface -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let skipped = self.payload_left.min(bytes.len());
                self.payload_left -= skipped;
                bytes = &bytes[skipped..];
                self.in_headers &= self.payload_left > 0;
                continue;
            }
            let copied_bytes = (HEADER_BYTES - self.header_filled).min(bytes.len());
            self.header[self.header_filled..self.header_filled + copied_bytes]
                .copy_from_slice(&bytes[..copied_bytes]);
            self.header_filled += copied_bytes;
            bytes = &bytes[copied_bytes..];
            if self.header_filled == HEADER_BYTES {
                self.header_filled = 0;
                self.begin_frame()?;
            }
        }
        Ok(())
    }

    fn begin_frame(&mut self) -> Result<(), TooManyFrames> {
        let [a, b, c, kind, flags, ..] = self.header;
        self.payload_left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.in_headers = false;
        match kind {
            DATA => Ok(()),
            HEADERS | CONTINUATION => {
                if kind == HEADERS {
                    self.add_allowance(CONTROL_FRAMES_PER_REQUEST);
                }
                self.expects_continuation = flags & END_HEADERS == 0;
                self.in_headers = self.payload_left > 0;
                Ok(())
            }
            _ => self.use_allowance(),
        }
    }

    fn add_allowance(&mut self, frames: u32) {
        self.allowance = self.allowance.saturating_add(frames).min(MAX_CONTROL_FRAMES);
    }

    fn use_allowance(&mut self) -> Result<(), TooManyFrames> {
        if self.allowance == 0 {
            let seconds = self.refilled_at.elapsed().as_secs();
            self.refilled_at = Instant::now();
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            self.add_allowance(seconds.saturating_mul(CONTROL_FRAMES_PER_SECOND));
        }
        self.allowance = self.allowance.checked_sub(1).ok_or(TooManyFrames)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PING: u8 = 6;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, 1];
        frame.extend_from_slice(payload);
        frame
    }

    fn reader_after_preface() -> FrameReader {
        let mut reader = FrameReader::new();
        assert!(reader.is_in_head());
        reader.parse_received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        assert!(!reader.is_in_head());
        reader
    }

    #[test]
    fn an_incomplete_head_is_detected_for_any_split_of_the_bytes() {
        let mut reader = reader_after_preface();
        let mut bytes = frame(PING, 1, &[0; 8]);
        bytes.extend(frame(HEADERS, 0, b"abc"));
        bytes.extend(frame(CONTINUATION, END_HEADERS, b"de"));
        bytes.extend(frame(DATA, 0, &[7; 200]));
        for byte in &bytes {
            reader.parse_received(std::slice::from_ref(byte)).unwrap();
        }
        assert!(!reader.is_in_head());
        reader.parse_received(&frame(PING, 1, &[0; 8])).unwrap();
        assert!(!reader.is_in_head(), "a ping acknowledgement does not start a header block");
        reader.parse_received(&frame(HEADERS, 0, b"abc")).unwrap();
        assert!(reader.is_in_head(), "the continuation frame is missing");
        let last = frame(CONTINUATION, END_HEADERS, b"de");
        reader.parse_received(&last[..10]).unwrap();
        assert!(reader.is_in_head());
        reader.parse_received(&last[10..]).unwrap();
        assert!(!reader.is_in_head());
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_split_of_the_bytes(bytes: Vec<u8>, cuts: Vec<prop::sample::Index>) {
            let mut whole = reader_after_preface();
            whole.parse_received(&bytes).unwrap();
            let mut parts = reader_after_preface();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            for ends in cuts.windows(2) {
                parts.parse_received(&bytes[ends[0]..ends[1]]).unwrap();
            }
            prop_assert_eq!(whole.is_in_head(), parts.is_in_head());
            prop_assert_eq!((whole.payload_left, whole.allowance), (parts.payload_left, parts.allowance));
        }
    }

    #[test]
    fn a_flood_of_control_frames_is_rejected_and_a_large_download_is_not() {
        let mut reader = reader_after_preface();
        let update = frame(8, 0, &[0, 0, 16, 0]);
        for _ in 0..MAX_CONTROL_FRAMES * 3 {
            reader.record_sent(2048);
            reader.parse_received(&update).unwrap();
        }
        let flood = |reader: &mut FrameReader, kind| {
            (0..MAX_CONTROL_FRAMES * 3).any(|_| reader.parse_received(&frame(kind, 0, &[0; 8])).is_err())
        };
        // PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, and an unknown type.
        for kind in [2, 3, 4, 6, 8, 99] {
            assert!(flood(&mut reader_after_preface(), kind), "{kind}");
        }
    }
}
