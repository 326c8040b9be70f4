//! Test help.
