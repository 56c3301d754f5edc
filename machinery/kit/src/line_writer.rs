//! One thread that writes lines for everybody else, so that no serving thread waits for a disk.
//!
//! The queue is bounded: whoever has a line for a full one waits. Closing it writes all that is queued.

use std::io::{self, Write};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// Lines that may wait for the thread.
const QUEUE_LINES: usize = 4096;

/// What is done with an error of writing, and how many lines it cost.
pub type OnError = Box<dyn FnMut(&io::Error) + Send>;

enum Job {
    Line(Bytes, Option<oneshot::Sender<bool>>),
    Close(oneshot::Sender<()>),
}

/// A handle on the thread, which ends when it is closed or when the last handle is gone.
#[derive(Clone)]
pub struct LineWriter {
    queue: mpsc::Sender<Job>,
}

impl LineWriter {
    /// Starts the thread, which writes each line with one call.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(name: &str, out: impl Write + Send + 'static, failed: OnError) -> io::Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_LINES);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || write_all(jobs, out, failed))?;
        Ok(Self { queue })
    }

    /// Queues a line; waits only while the queue is full. False when it is closed.
    pub async fn queue(&self, line: Bytes) -> bool {
        self.queue.send(Job::Line(line, None)).await.is_ok()
    }

    /// Has a line written, and waits for that; false when it was not.
    pub async fn write(&self, line: Bytes) -> bool {
        let (done, written) = oneshot::channel();
        self.queue.send(Job::Line(line, Some(done))).await.is_ok() && written.await.unwrap_or(false)
    }

    /// Takes no further lines, and waits until all that are queued are written.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue.send(Job::Close(done)).await.is_ok() {
            // Gone without a word: it has nothing left to write, either.
            let _ = closed.await;
        }
    }
}

fn write_all(mut jobs: mpsc::Receiver<Job>, mut out: impl Write, mut failed: OnError) {
    let mut closers = Vec::new();
    while let Some(job) = jobs.blocking_recv() {
        match job {
            Job::Line(line, done) => {
                let written = out.write_all(&line);
                if let Err(error) = &written {
                    failed(error);
                }
                if let Some(done) = done {
                    // Who asked may have left.
                    let _ = done.send(written.is_ok());
                }
            }
            Job::Close(done) => {
                jobs.close();
                closers.push(done);
            }
        }
    }
    if let Err(error) = out.flush() {
        failed(&error);
    }
    for closed in closers {
        let _ = closed.send(());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes == b"bad\n" {
                return Err(io::Error::other("no"));
            }
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start(page: &Page, errors: &Arc<Mutex<Vec<String>>>) -> LineWriter {
        let errors = errors.clone();
        let failed = Box::new(move |error: &io::Error| errors.lock().push(error.to_string()));
        LineWriter::start("lines", page.clone(), failed).unwrap()
    }

    #[tokio::test]
    async fn a_line_that_is_written_is_there_and_one_that_fails_is_told() {
        let (page, errors) = (Page::default(), Arc::default());
        let writer = start(&page, &errors);
        assert!(writer.queue(Bytes::from_static(b"one\n")).await);
        assert!(writer.write(Bytes::from_static(b"two\n")).await);
        assert_eq!(*page.0.lock(), b"one\ntwo\n");
        assert!(!writer.write(Bytes::from_static(b"bad\n")).await);
        assert_eq!(*errors.lock(), ["no"]);
    }

    #[tokio::test]
    async fn closing_writes_all_that_is_queued_and_takes_no_more() {
        let (page, errors) = (Page::default(), Arc::default());
        let writer = start(&page, &errors);
        for _ in 0..2 * QUEUE_LINES {
            assert!(writer.queue(Bytes::from_static(b"line\n")).await);
        }
        writer.close().await;
        assert_eq!(page.0.lock().len(), 2 * QUEUE_LINES * b"line\n".len());
        assert!(!writer.queue(Bytes::from_static(b"late\n")).await);
        assert!(!writer.write(Bytes::from_static(b"late\n")).await);
        writer.close().await;
    }
}
