//! The control service: owns state, speaks gRPC.
