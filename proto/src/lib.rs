//! The contract: protobuf packages, the client library, and conversions from and to the vocabulary.
//!
//! Generated types live in the modules named after their packages. Knows nothing of stores, HTTP or kinds.
#![doc = include_str!("../README.md")]

#[cfg(feature = "client")]
pub mod client;
mod codec;
#[cfg(feature = "conversions")]
pub mod convert;
#[cfg(feature = "conversions")]
pub mod identity;
#[cfg(feature = "conversions")]
pub mod rpc_status;

// What is generated for the feature names it.
#[cfg(feature = "json")]
use pbjson as _;

/// A generated package.
macro_rules! package {
    ($(#[$doc:meta])* $module:ident, $package:literal $(, $json:literal)?) => {
        $(#[$doc])*
        #[allow(missing_docs, rust_2018_idioms, clippy::all, clippy::too_many_lines, reason = "generated from documented .proto files")]
        pub mod $module {
            tonic::include_proto!($package);
            $(
                #[cfg(feature = "json")]
                include!(concat!(env!("OUT_DIR"), $json));
            )?
        }
    };
}

package!(
    /// `portico.admin.v1`: operating the control service.
    admin, "portico.admin.v1"
);
package!(
    /// `portico.apiextensions.v1`: definitions before they are written.
    apiextensions, "portico.apiextensions.v1", "/portico.apiextensions.v1.serde.rs"
);
package!(
    /// `portico.apiregistration.v1`: APIServices with typed messages.
    apiregistration, "portico.apiregistration.v1"
);
package!(
    /// `portico.catalog.v1`: documents by content.
    catalog, "portico.catalog.v1"
);
package!(
    /// `portico.config.v1`: what facades must know.
    config, "portico.config.v1", "/portico.config.v1.serde.rs"
);
package!(
    /// External signers of service accounts' tokens that the control service asks (Kubernetes' package `v1`).
    externaljwt, "v1"
);
package!(
    /// `portico.history.v1`: what objects were.
    history, "portico.history.v1", "/portico.history.v1.serde.rs"
);
package!(
    /// `portico.identity.v1`: who a forwarded call is for.
    identity_v1, "portico.identity.v1"
);
package!(
    /// KMS v2: key management services that the control service asks (Kubernetes' package `v2`).
    kms, "v2"
);
package!(
    /// `portico.objects.v1`: objects of any kind.
    objects, "portico.objects.v1"
);
package!(
    /// `portico.routes.v1`: what may be reached, and why not.
    routes, "portico.routes.v1", "/portico.routes.v1.serde.rs"
);

/// All our packages as an encoded `FileDescriptorSet`, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Size of a gRPC message.
///
/// Limit (Requests, bytes): larger content is streamed.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
