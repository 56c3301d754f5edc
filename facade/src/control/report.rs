//! Conversion of the report on this facade's state to its message.

use portico_kit::pki::CertInfo;
use portico_proto::config as pb;

use crate::last_hour::{FacadeReport, LoadSample};

impl From<FacadeReport> for pb::Report {
    fn from(report: FacadeReport) -> Self {
        Self {
            loads: report.loads.iter().map(load).collect(),
            failing: report.failing,
            certificates: report.certificates.iter().map(certificate).collect(),
        }
    }
}

fn load(load: &LoadSample) -> pb::Load {
    pb::Load {
        time: load.time,
        seconds: load.seconds,
        requests: load.requests,
        errors: load.errors,
        in_flight: load.in_flight as u64,
        memory_bytes: load.memory.unwrap_or_default(),
    }
}

fn certificate((usage, info): &(&'static str, CertInfo)) -> pb::Certificate {
    pb::Certificate {
        usage: (*usage).to_owned(),
        subject: info.display_name(),
        not_before: info.not_before_text(),
        not_after: info.not_after_text(),
    }
}
