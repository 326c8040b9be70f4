//! Unit tests of the embedded store.
