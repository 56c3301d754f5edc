//! Metrics of the process, read from `/proc/self` at each scrape. Empty on systems without `/proc`.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::desc::Desc;

/// Clock ticks per second in `/proc`: 100 on every supported Linux architecture.
const USER_HZ: f64 = 100.0;

#[derive(Debug)]
pub(super) struct ProcessCollector {
    start: f64,
}

impl ProcessCollector {
    pub(super) fn new() -> Self {
        Self { start: process_started() }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut gauge = |desc: Desc, value: Option<f64>| match value {
            Some(value) => ConstGauge::new(value).encode(desc.encode(&mut encoder)?),
            None => Ok(()),
        };
        let memory = memory();
        gauge(
            Desc::gauge(
                "process_start_time_seconds",
                &[],
                "Start time of the process since unix epoch in seconds.",
            ),
            Some(self.start),
        )?;
        gauge(
            Desc::gauge("process_resident_memory_bytes", &[], "Resident memory size in bytes."),
            memory.map(|memory| memory.1),
        )?;
        gauge(
            Desc::gauge("process_virtual_memory_bytes", &[], "Virtual memory size in bytes."),
            memory.map(|memory| memory.0),
        )?;
        gauge(Desc::gauge("process_open_fds", &[], "Number of open file descriptors."), open_fds())?;
        gauge(Desc::gauge("process_max_fds", &[], "Maximum number of open file descriptors."), max_fds())?;
        gauge(
            Desc::gauge(
                "process_virtual_memory_max_bytes",
                &[],
                "Maximum amount of virtual memory available in bytes.",
            ),
            max_memory(),
        )?;
        let mut counter = |desc: Desc, value: Option<f64>| match value {
            Some(value) => ConstCounter::new(value).encode(desc.encode(&mut encoder)?),
            None => Ok(()),
        };
        counter(
            Desc::counter(
                "process_cpu_seconds_total",
                &[],
                "Total user and system CPU time spent in seconds.",
            ),
            cpu_seconds(),
        )?;
        let (received, sent) = octets().unzip();
        counter(
            Desc::counter(
                "process_network_receive_bytes_total",
                &[],
                "Number of bytes received by the process over the network.",
            ),
            received,
        )?;
        counter(
            Desc::counter(
                "process_network_transmit_bytes_total",
                &[],
                "Number of bytes sent by the process over the network.",
            ),
            sent,
        )
    }
}

/// Returns the fields of `/proc/self/stat` after the closing bracket of the command; the first one is field 3.
fn stat() -> Option<Vec<f64>> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(|field| field.trim().parse().unwrap_or(0.0)).collect())
}

fn cpu_seconds() -> Option<f64> {
    let stat = stat()?;
    Some((stat.get(14 - 3)? + stat.get(15 - 3)?) / USER_HZ)
}

/// Returns the start time of the process in Unix seconds, or the current time if the system does not report it.
#[must_use]
pub fn process_started() -> f64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    started_at().unwrap_or_else(now)
}

fn started_at() -> Option<f64> {
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + stat()?.get(22 - 3)? / USER_HZ)
}

/// Returns the resident bytes of the process, or `None` if the system does not report them.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    memory().map(|(_, resident)| resident as u64)
}

/// Returns the virtual and resident bytes of the process.
fn memory() -> Option<(f64, f64)> {
    let stat = stat()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
    Some((*stat.get(23 - 3)?, kilobytes * 1024.0))
}

fn open_fds() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn max_fds() -> Option<f64> {
    soft_limit("Max open files")?.parse().ok()
}

fn max_memory() -> Option<f64> {
    match soft_limit("Max address space")?.as_str() {
        "unlimited" => Some(-1.0),
        bytes => bytes.parse().ok(),
    }
}

/// Returns the text of a soft limit.
fn soft_limit(name: &str) -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Returns the bytes received and sent in the network namespace of the process, which upstream counts as well.
fn octets() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/self/net/netstat").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let value_of = |column| {
        let at = names.split(' ').position(|name| name == column)?;
        values.split(' ').nth(at)?.parse().ok()
    };
    Some((value_of("InOctets")?, value_of("OutOctets")?))
}
