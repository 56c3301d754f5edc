//! Tables below `/debug/api_priority_and_fairness/`, formatted as upstream does (its `apf_controller_debug.go`).

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portico_gostd::time::{Time, format_duration};

use crate::dispatcher::Dispatcher;
use crate::dump::{LevelDump, RequestDump};

/// Minimum width of a column.
const MIN_WIDTH: usize = 8;

/// Returns a table with one row per priority level.
#[must_use]
pub fn priority_levels(flow: &Dispatcher) -> String {
    let header = [
        "PriorityLevelName",
        "ActiveQueues",
        "IsIdle",
        "IsQuiescing",
        "WaitingRequests",
        "ExecutingRequests",
        "DispatchedRequests",
        "RejectedRequests",
        "TimedoutRequests",
        "CancelledRequests",
    ];
    let row = |level: LevelDump| {
        let active = level.queues.iter().filter(|queue| queue.waiting > 0).count();
        vec![
            level.name,
            active.to_string(),
            level.idle.to_string(),
            level.quiescing.to_string(),
            level.waiting.to_string(),
            level.executing.to_string(),
            level.dispatched.to_string(),
            level.rejected.to_string(),
            level.timed_out.to_string(),
            level.cancelled.to_string(),
        ]
    };
    let now = Instant::now();
    table(&header, flow.levels().iter().map(|level| row(level.dump(now))))
}

/// Returns a table with one row per queue.
#[must_use]
pub fn queues(flow: &Dispatcher) -> String {
    let header = [
        "PriorityLevelName",
        "Index",
        "PendingRequests",
        "ExecutingRequests",
        "SeatsInUse",
        "NextDispatchR",
        "InitialSeatsSum",
        "MaxSeatsSum",
        "TotalWorkSum",
    ];
    let now = Instant::now();
    let rows = flow.levels().into_iter().flat_map(|level| {
        let dump = level.dump(now);
        dump.queues.into_iter().enumerate().map(move |(index, queue)| {
            vec![
                dump.name.clone(),
                index.to_string(),
                queue.waiting.to_string(),
                queue.executing.to_string(),
                queue.seats_in_use.to_string(),
                queue.next_dispatch.to_string(),
                queue.initial_seats.to_string(),
                queue.max_seats.to_string(),
                queue.work.to_string(),
            ]
        })
    });
    table(&header, rows)
}

/// Returns a table with one row per waiting or running request; `details` adds user and request attributes.
#[must_use]
pub fn requests(flow: &Dispatcher, details: bool) -> String {
    let mut header = vec![
        "PriorityLevelName",
        "FlowSchemaName",
        "QueueIndex",
        "RequestIndexInQueue",
        "FlowDistingsher",
        "ArriveTime",
        "InitialSeats",
        "FinalSeats",
        "AdditionalLatency",
        "StartTime",
    ];
    if details {
        let more =
            ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];
        header.extend(more);
    }
    let (now, wall) = (Instant::now(), SystemTime::now());
    let rows = flow.levels().into_iter().flat_map(|level| {
        let name = level.name().to_owned();
        level.dump_requests(now).into_iter().map(move |request| request_row(&name, &request, wall, details))
    });
    table(&header, rows)
}

fn request_row(level: &str, request: &RequestDump, now: SystemTime, details: bool) -> Vec<String> {
    // -1 means that there is no queue or position.
    let index_text = |place: Option<usize>| place.map_or_else(|| "-1".to_owned(), |at| at.to_string());
    let started = request.since_start.map(|ago| time(now, ago));
    let mut row = vec![
        level.to_owned(),
        request.schema.clone(),
        index_text(request.queue),
        index_text(request.position),
        request.distinguisher.clone(),
        time(now, request.since_arrival),
        request.work.initial_seats.to_string(),
        request.work.final_seats.to_string(),
        format_duration(request.work.additional_latency),
        started.unwrap_or_else(|| "0001-01-01T00:00:00Z".to_owned()),
    ];
    if details {
        let info = &request.request;
        let version = match info.api_group.as_str() {
            "" => info.api_version.clone(),
            group => format!("{group}/{}", info.api_version),
        };
        row.extend([
            request.user.name.clone(),
            info.verb.clone(),
            info.path.clone(),
            info.namespace.clone(),
            info.name.clone(),
            version,
            info.resource.clone(),
            info.subresource.clone(),
        ]);
    }
    row
}

/// Formats the time `ago` before `now` as RFC 3339 with fractions.
fn time(now: SystemTime, ago: Duration) -> String {
    let since = now.checked_sub(ago).and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Time::unix(seconds, i64::from(since.subsec_nanos())).rfc3339_nano().unwrap_or_default()
}

/// Formats as Go's `tabwriter` does, with a minimum width of 8, a padding of 1, and cells that end in commas.
fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header = header.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count() + 2).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|column| width(column).max(MIN_WIDTH)).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths).take(columns - 1) {
            text.push_str(&format!("{:width$}", format!("{cell},")));
        }
        text.push_str(&row[columns - 1]);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_widths_equal_those_of_go() {
        let text = table(&["A", "LongerHeader", "Z"], [vec!["abcdefghij".into(), "1".into(), "x".into()]]);
        assert_eq!(text, "A,          LongerHeader, Z\nabcdefghij, 1,            x\n");
    }
}
