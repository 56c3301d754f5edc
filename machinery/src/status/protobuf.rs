//! Protobuf encoding of `Status`, for responses and watch events.

use super::{Cause, Details, ListMeta, ShardInfo, Status};
use crate::protobuf::{Writer, encode_envelope};

impl Status {
    /// Encodes the Status as an enveloped message.
    #[must_use]
    pub fn to_protobuf(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.message(1, |w| write_metadata(w, &self.metadata));
        writer.string(2, &self.status);
        writer.string(3, &self.message);
        writer.string(4, &self.reason);
        if let Some(details) = &self.details {
            writer.message(5, |w| write_details(w, details));
        }
        writer.int(6, self.code.into());
        encode_envelope(&self.api_version, &self.kind, &writer.into_bytes())
    }
}

fn write_metadata(writer: &mut Writer, metadata: &ListMeta) {
    writer.string(1, &metadata.self_link);
    writer.string(2, &metadata.resource_version);
    writer.string(3, &metadata.continue_token);
    if let Some(count) = metadata.remaining_item_count {
        writer.int(4, count);
    }
    if let Some(ShardInfo { selector }) = &metadata.shard_info {
        writer.message(5, |w| w.string(1, selector));
    }
}

fn write_details(writer: &mut Writer, details: &Details) {
    writer.string(1, &details.name);
    writer.string(2, &details.group);
    writer.string(3, &details.kind);
    for Cause { reason, message, field } in &details.causes {
        writer.message(4, |w| {
            w.string(1, reason);
            w.string(2, message);
            w.string(3, field);
        });
    }
    writer.int(5, details.retry_after_seconds.into());
    writer.string(6, &details.uid);
}
