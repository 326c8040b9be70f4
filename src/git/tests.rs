//! Tests of the git room.
