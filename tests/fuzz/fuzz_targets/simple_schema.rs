//! Any text as a field and as a type of its own.
#![no_main]

use serde_json::json;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = fleetwright::schema::simple::parse(&json!({"f": text, "g": {"h": text}}), &json!({"T": text}));
});
