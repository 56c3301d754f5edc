#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

#[cfg(feature = "client")]
pub mod client;
mod codec;
// The features `conversions`, `json` and `server` are for Portico's own programs.
#[cfg(feature = "conversions")]
#[doc(hidden)]
pub mod convert;
#[cfg(feature = "conversions")]
#[doc(hidden)]
pub mod identity;
#[cfg(feature = "conversions")]
#[doc(hidden)]
pub mod rpc_status;

// Used by generated code.
#[cfg(feature = "json")]
use pbjson as _;

/// Declares the module of a protobuf package.
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
    /// `portico.admin.v1`: operation of the control service.
    admin, "portico.admin.v1"
);
package!(
    /// `portico.apiextensions.v1`: checks of CustomResourceDefinitions before they are written.
    apiextensions, "portico.apiextensions.v1", "/portico.apiextensions.v1.serde.rs"
);
package!(
    /// `portico.apiregistration.v1`: APIServices as typed messages.
    apiregistration, "portico.apiregistration.v1"
);
package!(
    /// `portico.catalog.v1`: documents by content hash.
    catalog, "portico.catalog.v1"
);
package!(
    /// `portico.config.v1`: configuration of facades.
    config, "portico.config.v1", "/portico.config.v1.serde.rs"
);
package!(
    /// Kubernetes' package `v1`: external signers of service account tokens.
    #[doc(hidden)]
    externaljwt, "v1"
);
package!(
    /// `portico.history.v1`: past states of objects.
    history, "portico.history.v1", "/portico.history.v1.serde.rs"
);
package!(
    /// `portico.identity.v1`: identity of a forwarded call.
    #[doc(hidden)]
    identity_v1, "portico.identity.v1"
);
package!(
    /// Kubernetes' package `v2`: key management services (KMS v2).
    #[doc(hidden)]
    kms, "v2"
);
package!(
    /// `portico.objects.v1`: objects of any resource.
    objects, "portico.objects.v1"
);
package!(
    /// `portico.routes.v1`: reachability of APIs, and reasons for failures.
    routes, "portico.routes.v1", "/portico.routes.v1.serde.rs"
);

/// Encoded `FileDescriptorSet` of all packages of Portico, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Size of a gRPC message.
///
/// Limit (Requests, bytes): larger content is streamed.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
