//! Any text as a template: nothing between its expressions is lost.
#![no_main]

use fleetwright::cel::template::{Part, Template, parse};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let written = |part: Part| match part {
        Part::Literal(text) => text,
        Part::Expression(source) => format!("${{{source}}}"),
    };
    match parse(text) {
        Ok(Template::Literal(whole)) => assert_eq!(whole, text),
        Ok(Template::Expression(source)) => assert_eq!(format!("${{{source}}}"), text),
        Ok(Template::Concat(parts)) => assert_eq!(parts.into_iter().map(written).collect::<String>(), text),
        Err(_) => {}
    }
});
