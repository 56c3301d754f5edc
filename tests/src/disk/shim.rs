//! Shim between a process and its disk and clock: a library (shim.c) that is compiled on demand, if there is a C compiler, and
//! loaded into the process by LD_PRELOAD.

use std::fs::{File, OpenOptions};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Failure, power};

const SOURCE: &str = include_str!("shim.c");
/// Size of `struct control` in bytes.
const CONTROL_BYTES: u64 = 120;
// Offsets of its fields.
const CLOCK: u64 = 0;
const SYNC_DELAY: u64 = 8;
const FAILING: u64 = 16;
const GROWTH_LEFT: u64 = 24;
const GROWTH_LIMITED: u64 = 32;
const SYNCS: u64 = 40;
const WRITES: u64 = 48;
const FAILED_SYNCS: u64 = 56;
const REFUSED_WRITES: u64 = 64;
const CLOCK_CALLS: u64 = 72;
const LIES: u64 = 80;
const STEPS: u64 = 88;
const CUT_FROM: u64 = 96;
const CUT_TO: u64 = 104;
const CUT_ERRNO: u64 = 112;

/// The library, and the files that control its behavior in one process.
pub struct Shim {
    library: PathBuf,
    folder: PathBuf,
    control: File,
}

/// Calls counted by the library.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShimCounts {
    /// Syncs of files.
    pub syncs: u64,
    /// Writes to files.
    pub writes: u64,
    /// Syncs that failed.
    pub failed_syncs: u64,
    /// Writes refused for lack of space.
    pub refused_writes: u64,
    /// Reads of the clock.
    pub clock_calls: u64,
}

impl ShimCounts {
    /// Adds other counts.
    pub fn add(&mut self, other: Self) {
        self.syncs += other.syncs;
        self.writes += other.writes;
        self.failed_syncs += other.failed_syncs;
        self.refused_writes += other.refused_writes;
        self.clock_calls += other.clock_calls;
    }
}

impl Shim {
    /// Compiles the library; returns the reason if that is impossible on this machine.
    pub fn compile(folder: &Path) -> Result<Result<Self, String>, Failure> {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return Ok(Err("the library is for Linux with glibc".to_owned()));
        }
        let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
        std::fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-o"]).arg(&library).arg(&source);
        match compiler.args(["-ldl", "-lpthread"]).output() {
            Err(error) => Ok(Err(format!("no C compiler: {error}"))),
            Ok(done) if !done.status.success() => {
                Err(format!("cc: {}", String::from_utf8_lossy(&done.stderr)).into())
            }
            Ok(_) => Self::with(library, folder).map(Ok),
        }
    }

    fn with(library: PathBuf, folder: &Path) -> Result<Self, Failure> {
        let control = folder.join("control");
        let control = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(control)?;
        control.set_len(CONTROL_BYTES)?;
        Ok(Self { library, folder: folder.to_owned(), control })
    }

    /// Returns a shim for the process of this folder.
    pub fn for_folder(&self, folder: &Path) -> Result<Self, Failure> {
        let own = folder.join("shadow");
        std::fs::create_dir_all(&own)?;
        Self::with(self.library.clone(), &own)
    }

    /// Returns the folder of the synced content.
    pub fn shadow(&self) -> &Path {
        &self.folder
    }

    /// Marks the present files as synced, and adds the library to the command.
    pub fn prepare(&mut self, data: &Path, command: &mut Command) -> Result<(), Failure> {
        power::mark_synced(&self.folder, data)?;
        command.env("LD_PRELOAD", &self.library);
        command.env("TORTURE_DATA", data).env("TORTURE_SHADOW", &self.folder);
        command.env("TORTURE_CONTROL", self.folder.join("control"));
        Ok(())
    }

    /// Delays every sync by this time.
    pub fn slow_sync(&mut self, delay: Duration) -> Result<(), Failure> {
        self.put(SYNC_DELAY, u64::try_from(delay.as_micros())?)
    }

    /// Makes the next syncs fail; their data is lost at a power loss.
    pub fn fail_syncs(&mut self, count: u64) -> Result<(), Failure> {
        self.put(FAILING, count)
    }

    /// Limits the total growth of files to this number of bytes.
    pub fn limit_growth(&mut self, max_bytes: Option<u64>) -> Result<(), Failure> {
        self.put(GROWTH_LEFT, max_bytes.unwrap_or_default())?;
        self.put(GROWTH_LIMITED, u64::from(max_bytes.is_some()))
    }

    /// Shifts the clock by this number of seconds from now on.
    pub fn step_clock(&mut self, seconds: i64) -> Result<(), Failure> {
        let nanos = seconds.saturating_mul(1_000_000_000);
        Ok(self.control.write_all_at(&nanos.to_ne_bytes(), CLOCK)?)
    }

    /// Skips some of the changes of files and names and of the syncs, by their number (from 1): they fail with this errno, or the
    /// process is killed at the first.
    pub fn cut(&mut self, steps: RangeInclusive<u64>, errno: Option<i32>) -> Result<(), Failure> {
        self.put(STEPS, 0)?;
        self.put(CUT_FROM, *steps.start())?;
        self.put(CUT_TO, *steps.end())?;
        self.put(CUT_ERRNO, u64::try_from(errno.unwrap_or_default())?)
    }

    /// Returns the number of steps since the last [`Shim::cut`].
    pub fn steps(&self) -> Result<u64, Failure> {
        self.get(STEPS)
    }

    /// Makes syncs succeed without effect from now on.
    pub fn ignore_syncs(&mut self) -> Result<(), Failure> {
        self.put(LIES, 1)
    }

    /// Restores correct behavior of disk and clock.
    pub fn heal(&mut self) -> Result<(), Failure> {
        self.slow_sync(Duration::ZERO)?;
        self.fail_syncs(0)?;
        self.limit_growth(None)?;
        self.step_clock(0)
    }

    /// Returns the calls counted so far.
    pub fn counts(&self) -> Result<ShimCounts, Failure> {
        Ok(ShimCounts {
            syncs: self.get(SYNCS)?,
            writes: self.get(WRITES)?,
            failed_syncs: self.get(FAILED_SYNCS)?,
            refused_writes: self.get(REFUSED_WRITES)?,
            clock_calls: self.get(CLOCK_CALLS)?,
        })
    }

    fn put(&mut self, at: u64, number: u64) -> Result<(), Failure> {
        Ok(self.control.write_all_at(&number.to_ne_bytes(), at)?)
    }

    fn get(&self, at: u64) -> Result<u64, Failure> {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
