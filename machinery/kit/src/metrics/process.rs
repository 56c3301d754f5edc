//! The process's own metrics, read from `/proc/self` at each scrape. Silent where there is no `/proc`.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks per second in `/proc`: 100 on every Linux architecture that we build for.
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
        let mut gauge = |name: &str, help: &str, value: Option<f64>| -> Result<(), std::fmt::Error> {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        let memory = memory();
        gauge("process_start_time_seconds", "Start of the process, in Unix seconds", Some(self.start))?;
        gauge("process_resident_memory_bytes", "Resident memory", memory.map(|memory| memory.1))?;
        gauge("process_virtual_memory_bytes", "Virtual memory", memory.map(|memory| memory.0))?;
        gauge("process_open_fds", "Open file descriptors", open_fds())?;
        gauge("process_max_fds", "Most file descriptors that may be open", max_fds())?;
        let most = "Most virtual memory that may be taken; -1 without a limit";
        gauge("process_virtual_memory_max_bytes", most, max_memory())?;
        let mut counter = |name: &str, help: &str, value: Option<f64>| -> Result<(), std::fmt::Error> {
            let Some(value) = value else { return Ok(()) };
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
        };
        counter("process_cpu_seconds", "CPU time, user and system", cpu_seconds())?;
        let (received, sent) = octets().unzip();
        counter("process_network_receive_bytes", "Bytes received over the network", received)?;
        counter("process_network_transmit_bytes", "Bytes sent over the network", sent)
    }
}

/// The fields of `/proc/self/stat` after the command's closing bracket; the first is field 3.
fn stat() -> Option<Vec<f64>> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(|field| field.trim().parse().unwrap_or(0.0)).collect())
}

fn cpu_seconds() -> Option<f64> {
    let stat = stat()?;
    Some((stat.get(14 - 3)? + stat.get(15 - 3)?) / USER_HZ)
}

/// When the process was started, in Unix seconds; now, where the system does not say.
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

/// Resident bytes of the process; nothing where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    memory().map(|(_, resident)| resident as u64)
}

/// Virtual and resident bytes.
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
    limit("Max open files")?.parse().ok()
}

fn max_memory() -> Option<f64> {
    match limit("Max address space")?.as_str() {
        "unlimited" => Some(-1.0),
        bytes => bytes.parse().ok(),
    }
}

/// A soft limit, as it is written.
fn limit(name: &str) -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Bytes received and sent by the process's network namespace, as upstream counts them.
fn octets() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/self/net/netstat").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let of = |wanted| {
        let at = names.split(' ').position(|name| name == wanted)?;
        values.split(' ').nth(at)?.parse().ok()
    };
    Some((of("InOctets")?, of("OutOctets")?))
}
