//! What this facade's own requests have shown of backends, reported when it changes.

use std::collections::HashMap;

use portico_proxy::Mirrored;

use crate::route_table::RouteTable;

/// One verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The APIService.
    pub name: String,
    /// The stage that fails; empty when the backend is reached.
    pub stage: &'static str,
    /// For people.
    pub detail: String,
}

/// What was reported last. A new stream begins with nothing reported.
#[derive(Debug, Default)]
pub(super) struct Observer {
    reported: HashMap<String, &'static str>,
    mirrored: HashMap<String, Mirrored>,
}

impl Observer {
    /// Verdicts that differ from what was reported; those of routes that were never used are none.
    pub fn changes(&self, table: &RouteTable) -> Vec<Seen> {
        let seen = table.routes().filter_map(|upstream| {
            let observation = upstream.observation()?;
            let stage = observation.failed.map_or("", portico_proxy::Stage::as_str);
            let name = &upstream.route().name;
            let known = self.reported.get(name).copied();
            (known != Some(stage)).then(|| Seen { name: name.clone(), stage, detail: observation.message })
        });
        seen.collect()
    }

    /// Counts of mirrors that differ from what was reported.
    pub fn mirrored(&self, table: &RouteTable) -> Vec<(String, Mirrored)> {
        let counted = table.routes().filter_map(|upstream| {
            let (name, counts) = (&upstream.route().name, upstream.mirrored()?);
            let is_new = match self.mirrored.get(name) {
                Some(known) => *known != counts,
                None => counts != Mirrored::default(),
            };
            is_new.then(|| (name.clone(), counts))
        });
        counted.collect()
    }

    /// These were reported.
    pub fn reported(&mut self, seen: Vec<Seen>, mirrored: Vec<(String, Mirrored)>) {
        self.reported.extend(seen.into_iter().map(|s| (s.name, s.stage)));
        self.mirrored.extend(mirrored);
    }
}
