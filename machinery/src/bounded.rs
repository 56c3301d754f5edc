//! Lists of errors that a hostile body cannot make large: limited in number and in bytes when they are built.
//!
//! A body of 3 MiB can have hundreds of thousands of errors whose paths are a mebibyte long. An item is only built
//! while there is room for it, so omitted items cost nothing.

use crate::field;
use crate::status::{MAX_CAUSES_BYTES, MAX_FIELD_ERRORS};

/// Size of an item in a [`Bounded`] list.
pub trait Weight {
    /// Returns the number of bytes of text.
    fn bytes(&self) -> usize;
}

impl Weight for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Weight for field::Error {
    fn bytes(&self) -> usize {
        self.body.len() + self.path.as_str().len()
    }
}

/// List of the first items, limited by number and total bytes; the last item may exceed the byte limit.
#[derive(Clone, Debug)]
pub struct Bounded<T> {
    items: Vec<T>,
    max_items: usize,
    bytes_left: usize,
}

impl<T: Weight> Bounded<T> {
    /// Creates a list of at most `max_items` items with about `bytes` bytes in total.
    #[must_use]
    pub fn new(max_items: usize, bytes: usize) -> Self {
        Self { items: Vec::new(), max_items, bytes_left: bytes }
    }

    /// True if no further items are accepted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.items.len() >= self.max_items || self.bytes_left == 0
    }

    /// Builds and stores an item if there is room.
    pub fn push_with(&mut self, item: impl FnOnce() -> T) {
        if !self.is_full() {
            let item = item();
            self.bytes_left = self.bytes_left.saturating_sub(item.bytes());
            self.items.push(item);
        }
    }

    /// Returns the items.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Converts the list to its items.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }
}

impl<T: Weight + PartialEq> Bounded<T> {
    /// Builds and stores an item if there is room and the list does not contain it yet.
    pub fn push_new_with(&mut self, item: impl FnOnce() -> T) {
        if !self.is_full() {
            let item = item();
            if !self.items.contains(&item) {
                self.push_with(|| item);
            }
        }
    }
}

impl Bounded<field::Error> {
    /// Creates a list of the errors of one object, with the limits of a Status plus one, so that the Status can report that there
    /// are more.
    #[must_use]
    pub fn field_errors() -> Self {
        Self::new(MAX_FIELD_ERRORS + 1, MAX_CAUSES_BYTES)
    }
}

impl<T: Weight> Extend<T> for Bounded<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            if self.is_full() {
                return;
            }
            self.push_with(|| item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_built_while_there_is_room() {
        let (mut list, mut built) = (Bounded::new(3, 10), 0);
        for _ in 0..5 {
            list.push_with(|| {
                built += 1;
                "1234".to_owned()
            });
        }
        assert_eq!((built, list.items().len()), (3, 3));
        let mut short = Bounded::new(9, 5);
        short.extend(["1234".to_owned(), "5678".to_owned(), "9".to_owned()]);
        assert!(short.is_full());
        assert_eq!(short.into_items(), ["1234", "5678"]);
    }

    #[test]
    fn push_new_drops_duplicates() {
        let mut list = Bounded::new(9, 100);
        for text in ["a", "b", "a"] {
            list.push_new_with(|| text.to_owned());
        }
        assert_eq!(list.items(), ["a", "b"]);
    }
}
