//! Who is calling and what they may do, on attributes rather than on HTTP.
