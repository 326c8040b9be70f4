//! Which words an author may use for node ids and iterators.

/// Words with a meaning in kro or in CEL.
const RESERVED: [&str; 53] = [
    "apiVersion",
    "as",
    "break",
    "const",
    "context",
    "continue",
    "dependencies",
    "dependency",
    "each",
    "else",
    "externalRef",
    "externalReference",
    "externalReferences",
    "externalRefs",
    "false",
    "for",
    "function",
    "graph",
    "if",
    "import",
    "in",
    "instance",
    "item",
    "items",
    "kind",
    "kro",
    "let",
    "loop",
    "metadata",
    "namespace",
    "null",
    "object",
    "package",
    "resource",
    "resourceGraphDefinition",
    "resourcegraphdefinition",
    "resources",
    "return",
    "root",
    "runtime",
    "schema",
    "self",
    "serviceAccountName",
    "spec",
    "status",
    "this",
    "true",
    "var",
    "variables",
    "vars",
    "version",
    "void",
    "while",
];

/// Why a word can't name a node or an iterator; nothing when it can.
pub(super) fn objection(word: &str) -> Option<String> {
    let camel = word.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !camel {
        return Some(format!(
            "naming convention violation: `{word}` must be lower camelCase: a small letter, then letters and digits"
        ));
    }
    RESERVED.binary_search(&word).is_ok().then(|| format!("`{word}` is a reserved keyword in KRO"))
}

/// The lowerCamelCase form of a word that is not.
pub(super) fn camel_case(word: &str) -> Option<String> {
    let mut result = String::new();
    let mut raise = false;
    for char in word.chars() {
        if !char.is_ascii_alphanumeric() {
            raise = !result.is_empty();
        } else if result.is_empty() {
            result.push(char.to_ascii_lowercase());
        } else if std::mem::take(&mut raise) {
            result.push(char.to_ascii_uppercase());
        } else {
            result.push(char);
        }
    }
    objection(&result).is_none().then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_its_search() {
        assert!(RESERVED.is_sorted());
    }

    #[test]
    fn ids_are_lower_camel_case_and_not_reserved() {
        for (word, good) in [
            ("vpc", true),
            ("vpc2Main", true),
            ("Vpc", false),
            ("my-vpc", false),
            ("schema", false),
            ("in", false),
            ("", false),
        ] {
            assert_eq!(objection(word).is_none(), good, "{word}");
        }
        assert_eq!(camel_case("my-vpc_id").as_deref(), Some("myVpcId"));
        assert_eq!(camel_case("Schema"), None);
    }
}
