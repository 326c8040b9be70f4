//! graph
mod dag;
mod words;
