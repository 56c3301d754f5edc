//! To a backend: handler, transport, headers, upgrade, circuit.
