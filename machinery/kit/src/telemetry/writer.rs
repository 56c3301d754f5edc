//! The queue between whoever logs and the one thread that writes.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait. When this many do, new ones are dropped and counted.
const QUEUE_LINES: usize = 8192;
/// A flush waits no longer.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

enum Message {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

#[derive(Clone)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    tx: SyncSender<Message>,
    dropped: AtomicU64,
}

/// One line in the making: handed over when it is dropped.
pub(super) struct Line {
    shared: Arc<Shared>,
    text: Vec<u8>,
}

impl Queue {
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (tx, rx) = sync_channel(QUEUE_LINES);
        std::thread::Builder::new().name("log-writer".to_owned()).spawn(move || write_all(&rx, out))?;
        Ok(Self { shared: Arc::new(Shared { tx, dropped: AtomicU64::new(0) }) })
    }

    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn flush(&self) {
        self.shared.flush();
    }
}

impl Shared {
    fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.tx.try_send(Message::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Ends when the queue's last handle is gone. A broken standard error cannot be reported anywhere.
fn write_all(rx: &Receiver<Message>, mut out: impl Write) {
    while let Ok(message) = rx.recv() {
        match message {
            Message::Line(text) => {
                let _ = out.write_all(&text);
            }
            Message::Flush(done) => {
                let _ = out.flush();
                let _ = done.try_send(());
            }
        }
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { shared: self.shared.clone(), text: Vec::with_capacity(256) }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let line = Message::Line(std::mem::take(&mut self.text));
        if self.shared.tx.try_send(line).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[derive(Clone, Default)]
    struct Slow {
        gate: Arc<Mutex<()>>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
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
    fn a_stuck_reader_costs_lines_and_never_time() {
        let out = Slow::default();
        let queue = Queue::start(out.clone()).unwrap();
        let gate = out.gate.lock();
        for _ in 0..QUEUE_LINES + 100 {
            queue.make_writer().write_all(b"line\n").unwrap();
        }
        assert!(queue.dropped() >= 99);
        drop(gate);
        while queue.shared.tx.try_send(Message::Line(Vec::new())).is_err() {
            std::thread::yield_now();
        }
        queue.flush();
        assert!(out.text.lock().len() >= QUEUE_LINES * 5);
    }
}
