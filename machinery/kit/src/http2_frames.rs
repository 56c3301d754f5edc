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
const PREFACE: usize = 24;
/// Length of a frame header: length (3 bytes), type, flags, stream (4 bytes).
const HEADER: usize = 9;
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
    header: [u8; HEADER],
    filled: usize,
    payload: usize,
    /// True if the bytes so far end within a HEADERS frame or its CONTINUATION frames.
    in_headers: bool,
    /// True if HEADERS arrived without END_HEADERS, so that CONTINUATION follows.
    continues: bool,
    allowed: u32,
    refilled: Instant,
    sent: usize,
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
            preface: PREFACE,
            header: [0; HEADER],
            filled: 0,
            payload: 0,
            in_headers: false,
            continues: false,
            allowed: MAX_CONTROL_FRAMES,
            refilled: Instant::now(),
            sent: 0,
        }
    }

    /// True if the bytes received so far end within the head of a request or within the connection preface.
    #[must_use]
    pub fn in_head(&self) -> bool {
        self.preface > 0 || self.filled > 0 || self.in_headers || self.continues
    }

    /// Records bytes sent to the client.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        let earned = self.sent / BYTES_PER_CONTROL_FRAME;
        self.sent %= BYTES_PER_CONTROL_FRAME;
        self.earn(u32::try_from(earned).unwrap_or(u32::MAX));
    }

    /// Parses bytes received from the client.
    ///
    /// # Errors
    /// [`TooManyFrames`]: the connection should be closed.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<(), TooManyFrames> {
        let skipped = self.preface.min(bytes.len());
        self.preface -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            if self.payload > 0 {
                let skipped = self.payload.min(bytes.len());
                self.payload -= skipped;
                bytes = &bytes[skipped..];
                self.in_headers &= self.payload > 0;
                continue;
            }
            let taken = (HEADER - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEADER {
                self.filled = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    fn frame(&mut self) -> Result<(), TooManyFrames> {
        let [a, b, c, kind, flags, ..] = self.header;
        self.payload = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.in_headers = false;
        match kind {
            DATA => Ok(()),
            HEADERS | CONTINUATION => {
                if kind == HEADERS {
                    self.earn(CONTROL_FRAMES_PER_REQUEST);
                }
                self.continues = flags & END_HEADERS == 0;
                self.in_headers = self.payload > 0;
                Ok(())
            }
            _ => self.spend(),
        }
    }

    fn earn(&mut self, frames: u32) {
        self.allowed = self.allowed.saturating_add(frames).min(MAX_CONTROL_FRAMES);
    }

    fn spend(&mut self) -> Result<(), TooManyFrames> {
        if self.allowed == 0 {
            let seconds = self.refilled.elapsed().as_secs();
            self.refilled = Instant::now();
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            self.earn(seconds.saturating_mul(CONTROL_FRAMES_PER_SECOND));
        }
        self.allowed = self.allowed.checked_sub(1).ok_or(TooManyFrames)?;
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

    fn started() -> FrameReader {
        let mut reader = FrameReader::new();
        assert!(reader.in_head());
        reader.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        assert!(!reader.in_head());
        reader
    }

    #[test]
    fn only_an_unfinished_head_is_one_however_the_bytes_are_cut() {
        let mut reader = started();
        let mut bytes = frame(PING, 1, &[0; 8]);
        bytes.extend(frame(HEADERS, 0, b"abc"));
        bytes.extend(frame(CONTINUATION, END_HEADERS, b"de"));
        bytes.extend(frame(DATA, 0, &[7; 200]));
        for byte in &bytes {
            reader.read(std::slice::from_ref(byte)).unwrap();
        }
        assert!(!reader.in_head());
        reader.read(&frame(PING, 1, &[0; 8])).unwrap();
        assert!(!reader.in_head(), "an acknowledged ping is no head");
        reader.read(&frame(HEADERS, 0, b"abc")).unwrap();
        assert!(reader.in_head(), "its continuation is missing");
        let last = frame(CONTINUATION, END_HEADERS, b"de");
        reader.read(&last[..10]).unwrap();
        assert!(reader.in_head());
        reader.read(&last[10..]).unwrap();
        assert!(!reader.in_head());
    }

    proptest! {
        #[test]
        fn bytes_mean_the_same_however_they_are_cut(bytes: Vec<u8>, cuts: Vec<prop::sample::Index>) {
            let mut whole = started();
            whole.read(&bytes).unwrap();
            let mut parts = started();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            for ends in cuts.windows(2) {
                parts.read(&bytes[ends[0]..ends[1]]).unwrap();
            }
            prop_assert_eq!(whole.in_head(), parts.in_head());
            prop_assert_eq!((whole.payload, whole.allowed), (parts.payload, parts.allowed));
        }
    }

    #[test]
    fn a_flood_of_control_frames_is_too_many_and_a_large_download_is_not() {
        let mut reader = started();
        let update = frame(8, 0, &[0, 0, 16, 0]);
        for _ in 0..MAX_CONTROL_FRAMES * 3 {
            reader.sent(2048);
            reader.read(&update).unwrap();
        }
        let flood = |reader: &mut FrameReader, kind| {
            (0..MAX_CONTROL_FRAMES * 3).any(|_| reader.read(&frame(kind, 0, &[0; 8])).is_err())
        };
        // PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, and an unknown type.
        for kind in [2, 3, 4, 6, 8, 99] {
            assert!(flood(&mut started(), kind), "{kind}");
        }
    }
}
