//! Shared line writer: writes on the calling thread if that takes no longer than a copy into the page cache, otherwise on a
//! dedicated thread, so that no serving thread waits for a disk.
//!
//! Waking a thread and being woken by it costs ten times as much as writing such a line. A slow disk blocks one serving
//! thread once: afterwards the dedicated thread writes all lines for `SLOW_PERIOD`. The queue is bounded:
//! callers wait while it is full. Closing writes all queued lines.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Lines that wait for the audit log.
///
/// Limit (Audit): requests wait; in batch mode the size of the buffer is a flag.
const QUEUE_LINES: usize = 4096;
/// Time of a write to the audit log on a serving thread that shows a slow disk.
///
/// Limit (Audit): a thread of its own writes from then on.
const SLOW_WRITE: Duration = Duration::from_millis(5);
/// Time that an event waits for its turn to be written on a serving thread.
///
/// Limit (Audit): a thread of its own writes it.
const QUICK_WAIT: Duration = Duration::from_micros(100);
/// Time for which that thread writes all events after a slow write.
///
/// Limit (Audit): serving threads write again.
const SLOW_PERIOD: Duration = Duration::from_secs(10);

/// Callback for a write error, with the number of lost lines.
pub type OnError = Box<dyn FnMut(&io::Error, usize) + Send>;

/// Destination of lines.
pub trait LineSink: Write + Send + 'static {
    /// True if a write of this many bytes is expected to take no longer than a copy, so that a serving thread may perform it.
    fn is_quick(&self, _bytes: usize) -> bool {
        false
    }
}

/// The duration of a write to a pipe or terminal depends on its reader, so it is never quick.
impl LineSink for io::Stdout {}

enum WriterJob {
    Line(Bytes, Option<oneshot::Sender<bool>>),
    Close(oneshot::Sender<()>),
}

/// State of the thread that writes, under a lock.
struct SinkState<S: ?Sized> {
    on_error: OnError,
    slow_until: Option<Instant>,
    sink: S,
}

impl<S: LineSink + ?Sized> SinkState<S> {
    fn write(&mut self, line: &[u8]) -> bool {
        let begin = Instant::now();
        let result = self.sink.write_all(line);
        let end = Instant::now();
        if end - begin > SLOW_WRITE {
            self.slow_until = Some(end + SLOW_PERIOD);
        }
        if let Err(error) = &result {
            (self.on_error)(error, line.iter().filter(|byte| **byte == b'\n').count());
        }
        result.is_ok()
    }

    fn is_quick(&self, bytes: usize) -> bool {
        self.sink.is_quick(bytes) && self.slow_until.is_none_or(|until| Instant::now() >= until)
    }
}

/// Handle of the writer thread, which ends when the writer is closed or the last handle is dropped.
#[derive(Clone)]
pub struct LineWriter {
    queue: mpsc::Sender<WriterJob>,
    /// Number of lines that the thread has not written, plus one from the time it is to close.
    queued: Arc<AtomicUsize>,
    sink_state: Arc<Mutex<SinkState<dyn LineSink>>>,
}

impl LineWriter {
    /// Starts the thread. Each call of `queue` or `write` results in one write call of the sink, also for several lines.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread.
    pub fn start(name: &str, sink: impl LineSink, on_error: OnError) -> io::Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_LINES);
        let (queued, out) =
            (Arc::default(), Arc::new(Mutex::new(SinkState { on_error, slow_until: None, sink })));
        let this = Self { queue, queued: Arc::clone(&queued), sink_state: Arc::clone(&out) as _ };
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || write_all(jobs, &queued, &out))?;
        Ok(this)
    }

    /// Writes or queues a line; waits only while the queue is full. Returns `false` if the writer is closed or an
    /// immediate write failed.
    pub async fn queue(&self, line: Bytes) -> bool {
        match self.try_write(&line) {
            Some(written) => written,
            None => self.push(WriterJob::Line(line, None)).await,
        }
    }

    /// Writes a line and waits until it is written. Returns `false` if it was not.
    pub async fn write(&self, line: Bytes) -> bool {
        if let Some(written) = self.try_write(&line) {
            return written;
        }
        let (done, written) = oneshot::channel();
        self.push(WriterJob::Line(line, Some(done))).await && written.await.unwrap_or(false)
    }

    /// Refuses further lines, and waits until all queued lines are written.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.push(WriterJob::Close(done)).await {
            // An error means that the thread has ended, so it has nothing left to write.
            let _ = closed.await;
        }
    }

    /// Writes a line on the calling thread. Returns `None` without writing if other lines are queued or the write may be slow,
    /// otherwise true if the line was written.
    pub fn try_write(&self, line: &[u8]) -> Option<bool> {
        if self.queued.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut out = self.sink_state.try_lock_for(QUICK_WAIT)?;
        out.is_quick(line.len()).then(|| out.write(line))
    }

    async fn push(&self, job: WriterJob) -> bool {
        // A caller that is cancelled while it waits has queued nothing.
        let Ok(permit) = self.queue.reserve().await else { return false };
        self.queued.fetch_add(1, Ordering::AcqRel);
        permit.send(job);
        true
    }
}

fn write_all<S: LineSink>(
    mut jobs: mpsc::Receiver<WriterJob>,
    queued: &AtomicUsize,
    out: &Mutex<SinkState<S>>,
) {
    let mut closers = Vec::new();
    while let Some(job) = jobs.blocking_recv() {
        match job {
            WriterJob::Line(line, done) => {
                let written = out.lock().write(&line);
                queued.fetch_sub(1, Ordering::AcqRel);
                if let Some(done) = done {
                    // The caller may have been cancelled.
                    let _ = done.send(written);
                }
            }
            WriterJob::Close(done) => {
                jobs.close();
                closers.push(done);
            }
        }
    }
    let mut out = out.lock();
    if let Err(error) = out.sink.flush() {
        (out.on_error)(&error, 1);
    }
    for closed in closers {
        let _ = closed.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sink in memory that is slow unless `quick` is set.
    #[derive(Clone, Default)]
    struct MemorySink {
        text: Arc<Mutex<Vec<u8>>>,
        writers: Arc<Mutex<Vec<Option<String>>>>,
        write_duration: Duration,
        quick: bool,
    }

    impl LineSink for MemorySink {
        fn is_quick(&self, bytes: usize) -> bool {
            self.quick && bytes < 10
        }
    }

    impl Write for MemorySink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes == b"bad\n" {
                return Err(io::Error::other("no"));
            }
            let begin = Instant::now();
            while begin.elapsed() < self.write_duration {
                std::thread::yield_now();
            }
            self.writers.lock().push(std::thread::current().name().map(str::to_owned));
            self.text.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start(sink: &MemorySink, errors: &Arc<Mutex<Vec<String>>>) -> LineWriter {
        let errors = errors.clone();
        let failed = Box::new(move |error: &io::Error, _| errors.lock().push(error.to_string()));
        LineWriter::start("lines", sink.clone(), failed).unwrap()
    }

    #[tokio::test]
    async fn a_line_is_written_and_an_error_is_reported() {
        for quick in [false, true] {
            let (sink, errors) = (MemorySink { quick, ..MemorySink::default() }, Arc::default());
            let writer = start(&sink, &errors);
            assert!(writer.queue(Bytes::from_static(b"one\n")).await);
            assert!(writer.write(Bytes::from_static(b"two\n")).await);
            assert_eq!(*sink.text.lock(), b"one\ntwo\n");
            assert!(!writer.write(Bytes::from_static(b"bad\n")).await);
            assert_eq!(*errors.lock(), ["no"]);
        }
    }

    #[tokio::test]
    async fn a_quick_line_is_written_by_the_caller_and_a_slow_line_by_the_thread() {
        let sink = MemorySink { quick: true, ..MemorySink::default() };
        let writer = start(&sink, &Arc::default());
        assert!(writer.write(Bytes::from_static(b"quick\n")).await);
        assert!(writer.write(Bytes::from_static(b"a long line\n")).await);
        let thread = Some("lines".to_owned());
        let writers = sink.writers.lock().clone();
        assert!(writers[0] != thread && writers[1] == thread, "{writers:?}");
    }

    #[tokio::test]
    async fn a_slow_disk_blocks_only_the_first_caller() {
        let sink = MemorySink { quick: true, write_duration: 2 * SLOW_WRITE, ..MemorySink::default() };
        let writer = start(&sink, &Arc::default());
        for _ in 0..3 {
            assert!(writer.write(Bytes::from_static(b"line\n")).await);
        }
        let thread = Some("lines".to_owned());
        let writers = sink.writers.lock().clone();
        assert!(writers[0] != thread && writers[1..].iter().all(|writer| *writer == thread), "{writers:?}");
    }

    #[tokio::test]
    async fn close_writes_all_queued_lines_and_refuses_further_ones() {
        for quick in [false, true] {
            let (sink, errors) = (MemorySink { quick, ..MemorySink::default() }, Arc::default());
            let writer = start(&sink, &errors);
            for _ in 0..2 * QUEUE_LINES {
                assert!(writer.queue(Bytes::from_static(b"line\n")).await);
            }
            writer.close().await;
            assert_eq!(sink.text.lock().len(), 2 * QUEUE_LINES * b"line\n".len());
            assert!(!writer.queue(Bytes::from_static(b"late\n")).await);
            assert!(!writer.write(Bytes::from_static(b"late\n")).await);
            writer.close().await;
        }
    }
}
