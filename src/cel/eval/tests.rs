//! What goes in and what comes out.
