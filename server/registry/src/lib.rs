//! What may be written and its forms: the one door to objects.
