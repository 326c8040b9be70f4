//! Any text as a file of a fleet repository.
#![no_main]

use fleetwright::yaml::{Limits, parse};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for document in parse("a.yaml", text, &Limits::default()).documents {
        document.position("/spec/0/a");
    }
});
