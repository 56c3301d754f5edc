//! What may be reached: from APIServices and endpoints to a versioned table of routes.
