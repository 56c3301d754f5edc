//! Values that live as long as an upgraded connection.

use std::sync::Arc;

use parking_lot::Mutex;

/// Extension of a 101 response. Drops its values when the upgraded connection has ended and the response was sent.
#[derive(Clone, Default)]
pub struct Tunnel {
    values: Arc<Mutex<Vec<Box<dyn Send>>>>,
}

impl Tunnel {
    /// Keeps `value` until the connection ends.
    pub fn keep(&self, value: impl Send + 'static) {
        self.values.lock().push(Box::new(value));
    }
}
