//! What the checker knows of every function: its parameters and its result.
