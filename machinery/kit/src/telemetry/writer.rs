//! Queue of log lines, and the thread that writes them.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// Log lines that wait to be written.
///
/// Limit (Logs, traces and files): further lines are dropped and counted.
const QUEUE_LINES: usize = 8192;
/// Maximum duration of a flush.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    tx: SyncSender<Vec<u8>>,
    queued: AtomicU64,
    dropped: AtomicU64,
    progress: Arc<Progress>,
}

/// Number of lines written so far, with a notification for each.
#[derive(Default)]
struct Progress {
    written: Mutex<u64>,
    condvar: Condvar,
}

/// Buffer for one line, which is queued when it is dropped.
pub(super) struct LogLine {
    shared: Arc<Shared>,
    text: Vec<u8>,
}

impl Queue {
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (tx, rx) = sync_channel(QUEUE_LINES);
        let progress = Arc::new(Progress::default());
        let reports = progress.clone();
        let thread = std::thread::Builder::new().name("log-writer".to_owned());
        thread.spawn(move || write_all(&rx, out, &reports))?;
        let (queued, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { shared: Arc::new(Shared { tx, queued, dropped, progress }) })
    }

    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn flush(&self) {
        self.shared.flush();
    }
}

impl Shared {
    fn push(&self, line: Vec<u8>) {
        let counter = if self.tx.try_send(line).is_ok() { &self.queued } else { &self.dropped };
        counter.fetch_add(1, Ordering::Release);
    }

    /// Waits until all lines that are queued at this time are written.
    fn flush(&self) {
        let (queued, deadline) = (self.queued.load(Ordering::Acquire), Instant::now() + FLUSH_TIMEOUT);
        let mut written = self.progress.written.lock();
        while *written < queued && !self.progress.condvar.wait_until(&mut written, deadline).timed_out() {}
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Writes lines until the last handle of the queue is dropped. Ignores errors, because a broken standard error
/// cannot be reported.
fn write_all(rx: &Receiver<Vec<u8>>, mut out: impl Write, progress: &Progress) {
    while let Ok(line) = rx.recv() {
        let _ = out.write_all(&line);
        *progress.written.lock() += 1;
        progress.condvar.notify_all();
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine { shared: self.shared.clone(), text: Vec::with_capacity(256) }
    }
}

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        if self.text.is_empty() {
            return;
        }
        self.shared.push(std::mem::take(&mut self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct BlockingWriter {
        gate: Arc<Mutex<()>>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for BlockingWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _gate = self.gate.lock();
            self.text.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_reader_loses_lines_and_delays_no_caller() {
        let out = BlockingWriter::default();
        let queue = Queue::start(out.clone()).unwrap();
        let gate = out.gate.lock();
        for _ in 0..QUEUE_LINES + 100 {
            queue.make_writer().write_all(b"line\n").unwrap();
        }
        assert!(queue.dropped() >= 99);
        drop(gate);
        queue.flush();
        assert!(out.text.lock().len() >= QUEUE_LINES * 5);
    }
}
