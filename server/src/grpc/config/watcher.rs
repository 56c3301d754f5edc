//! Watchers of the state of facades: each receives the reports that it has not received yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_kit::pki::CertInfo;
use portico_proto::config as pb;
use tokio::sync::mpsc;

use super::facades::Facades;
use super::sources::StreamSources;
use crate::grpc::RpcResult;

/// Function that returns the certificates of the control service with their purposes.
pub(crate) type OwnCertificates = Arc<dyn Fn() -> Vec<(&'static str, CertInfo)> + Send + Sync>;

/// Client that watches the state of facades.
pub(super) struct Watcher {
    pub(super) facades: Facades,
    pub(super) sources: Arc<StreamSources>,
    pub(super) own: OwnCertificates,
    pub(super) outbound: mpsc::Sender<RpcResult<pb::WatchFacadesResponse>>,
}

impl Watcher {
    /// Sends reports until the client disconnects. A slow client receives several samples at a time.
    pub(super) async fn run(self) {
        let mut changes = self.facades.subscribe();
        let (mut sent, mut own_state) = (BTreeMap::new(), None);
        loop {
            changes.mark_unchanged();
            let certificates: Vec<_> = (self.own)().iter().map(certificate).collect();
            let mut messages = Vec::new();
            if own_state.as_ref() != Some(&certificates) {
                own_state = Some(certificates.clone());
                messages.push(pb::WatchFacadesResponse { certificates, ..Default::default() });
            }
            messages.extend(self.facades.unsent_reports(&mut sent, self.sources.publisher().revision()));
            for message in messages {
                if self.outbound.send(Ok(message)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = self.outbound.closed() => return,
            }
        }
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
