//! The contract: protobuf packages, conversions and the client library.
