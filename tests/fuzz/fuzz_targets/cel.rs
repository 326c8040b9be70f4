//! Any text as an expression: it compiles or is refused, and what compiles ends within its budget.
#![no_main]

use fleetwright::cel::{Bindings, Expression, Scope, Type};
use serde_json::json;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let scope =
        Scope::new().with("a", Type::Dyn).with("b", Type::list(Type::Int)).with("runtime", Type::runtime());
    let (a, b, list) = (json!({"x": [1, "y"]}), json!([1, 2]), Type::list(Type::Int));
    if let Ok(expression) = Expression::compile(text, &scope) {
        let bindings = Bindings::new().with("a", &a, &Type::Dyn).with("b", &b, &list);
        let _ = expression.evaluate_field(&bindings);
    }
});
