//! Reports of a facade: measurements of the last hour, kept while the facade is connected.

use std::collections::VecDeque;

use portico_proto::config as pb;

/// Load samples of one facade that the control service keeps.
///
/// Limit (Facades and control services): the oldest one is removed.
const MAX_LOADS: usize = 360;
/// Failing checks and certificates of one facade that the control service keeps.
///
/// Limit (Facades and control services): further ones are ignored.
const MAX_NAMED: usize = 64;

/// Reports of one facade.
#[derive(Default)]
pub(super) struct FacadeReports {
    loads: VecDeque<pb::Load>,
    /// Number of the next load sample.
    next: u64,
    failing: Vec<String>,
    certificates: Vec<pb::Certificate>,
    /// Number of reports received.
    version: u64,
}

impl FacadeReports {
    pub(super) fn add(&mut self, mut report: pb::Report) {
        report.failing.truncate(MAX_NAMED);
        report.certificates.truncate(MAX_NAMED);
        (self.failing, self.certificates) = (report.failing, report.certificates);
        for load in report.loads {
            if self.loads.len() == MAX_LOADS {
                self.loads.pop_front();
            }
            self.loads.push_back(load);
            self.next += 1;
        }
        self.version += 1;
    }

    /// Returns the data that a watcher has not received yet; `None` if there is none.
    pub(super) fn unsent_report(
        &self,
        sent: Option<SentPosition>,
    ) -> Option<(SentPosition, pb::WatchFacadesResponse)> {
        let now = SentPosition { next: self.next, version: self.version };
        if sent == Some(now) {
            return None;
        }
        let unsent_count = self.next - sent.map_or(0, |sent| sent.next);
        let unsent_count = usize::try_from(unsent_count).unwrap_or(usize::MAX).min(self.loads.len());
        let loads = self.loads.range(self.loads.len() - unsent_count..).copied().collect();
        let (failing, certificates) = (self.failing.clone(), self.certificates.clone());
        Some((now, pb::WatchFacadesResponse { loads, failing, certificates, ..Default::default() }))
    }
}

/// Position up to which a watcher has received the reports of a facade.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SentPosition {
    next: u64,
    version: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(times: std::ops::Range<i64>) -> pb::Report {
        let loads = times.map(|time| pb::Load { time, ..pb::Load::default() }).collect();
        pb::Report { loads, ..pb::Report::default() }
    }

    #[test]
    fn a_watcher_receives_the_kept_samples_and_then_only_new_ones() {
        let mut reports = FacadeReports::default();
        reports.add(report(0..400));
        let (sent, first) = reports.unsent_report(None).unwrap();
        assert_eq!((first.loads.len(), first.loads[0].time), (MAX_LOADS, 40));
        assert!(reports.unsent_report(Some(sent)).is_none());
        reports.add(report(400..401));
        let (sent, second) = reports.unsent_report(Some(sent)).unwrap();
        assert_eq!(second.loads.iter().map(|load| load.time).collect::<Vec<_>>(), [400]);
        reports.add(report(401..1000));
        assert_eq!(reports.unsent_report(Some(sent)).unwrap().1.loads.len(), MAX_LOADS);
    }
}
