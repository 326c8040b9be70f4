use proptest::prelude::*;
use serde_json::json;

use super::*;

fn one(text: &str) -> Document {
    let parsed = parse("a.yaml", text, &Limits::default());
    assert!(!parsed.has_errors(), "{text:?}: {:?}", parsed.diagnostics);
    assert_eq!(parsed.documents.len(), 1, "{text:?}");
    parsed.documents.into_iter().next().unwrap()
}

fn findings(text: &str) -> String {
    let parsed = parse("a.yaml", text, &Limits::default());
    parsed.diagnostics.iter().map(|finding| format!("{finding}\n")).collect()
}

/// Recorded from kubectl 1.32: `kubectl label --local -o json` on each line.
#[test]
fn scalars_read_as_kubectl_reads_them() {
    let table = [
        ("y", json!(true)),
        ("YES", json!(true)),
        ("On", json!(true)),
        ("true", json!(true)),
        ("n", json!(false)),
        ("off", json!(false)),
        ("False", json!(false)),
        ("YeS", json!("YeS")),
        ("tRue", json!("tRue")),
        ("~", json!(null)),
        ("Null", json!(null)),
        ("nULL", json!("nULL")),
        ("", json!(null)),
        ("0755", json!(493)),
        ("-0755", json!(-493)),
        ("\"0755\"", json!("0755")),
        ("'yes'", json!("yes")),
        ("08", json!(8)),
        ("0_8", json!(8)),
        ("0o17", json!(15)),
        ("0o8", json!("0o8")),
        ("0o", json!("0o")),
        ("0x1F", json!(31)),
        ("0x1_F", json!(31)),
        ("-0x5", json!(-5)),
        ("0x-5", json!("0x-5")),
        ("0x", json!("0x")),
        ("0x1p4", json!("0x1p4")),
        ("0b11", json!(3)),
        ("-0b11", json!(-3)),
        ("+0b1", json!(1)),
        ("00", json!(0)),
        ("+5", json!(5)),
        ("--5", json!("--5")),
        ("1_000", json!(1000)),
        ("1__0", json!(10)),
        ("1_", json!(1)),
        ("_1", json!("_1")),
        ("1e3", json!(1000)),
        ("1e+3", json!(1000)),
        ("1.e3", json!(1000)),
        ("1e", json!("1e")),
        ("1.0", json!(1)),
        ("1.", json!(1)),
        ("0.", json!(0)),
        ("-0.0", json!(0)),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        (".5_0", json!(0.5)),
        ("._5", json!("._5")),
        (".1p4", json!(".1p4")),
        (".e1", json!(".e1")),
        ("1_0.5", json!(10.5)),
        ("0.1e-3", json!(0.0001)),
        ("1.5E10", json!(15_000_000_000_i64)),
        ("1e18", json!(1_000_000_000_000_000_000_i64)),
        ("1e21", json!(1e21)),
        ("1e400", json!("1e400")),
        ("1e-400", json!(0)),
        ("1.23456789012345678", json!(1.234_567_890_123_456_7)),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9223372036854775808", json!(9_223_372_036_854_775_808.0)),
        ("0xFFFFFFFFFFFFFFFF", json!(18_446_744_073_709_551_615.0)),
        ("99999999999999999999999", json!(1e23)),
        ("0777777777777777777777777", json!(7.777_777_777_777_778e23)),
        ("123456789012", json!(123_456_789_012_i64)),
        ("012345678901", json!(12_345_678_901_i64)),
        ("12:30", json!("12:30")),
        ("2024-01-01", json!("2024-01-01")),
        ("1.2.3", json!("1.2.3")),
        ("a#b", json!("a#b")),
        ("1 # c", json!(1)),
        (".inf5", json!(".inf5")),
        ("!!str 5", json!("5")),
        ("!!str", json!("")),
        ("!!float 3", json!(3)),
        ("!!int \"5\"", json!(5)),
        ("!!bool \"yes\"", json!(true)),
        ("!!null ~", json!(null)),
        ("!!timestamp 2024-01-01", json!("2024-01-01")),
        ("!!binary aGVsbG8=", json!("hello")),
        ("!Ref foo", json!("foo")),
        ("! 12", json!("12")),
        ("!Ref {a: 1}", json!({"a": 1})),
        ("!!set {a}", json!({"a": null})),
        ("\"\\x41\\u00e9\"", json!("A\u{e9}")),
        ("<<", json!("<<")),
    ];
    for (text, expected) in table {
        assert_eq!(one(&format!("a: {text}\n")).value, json!({"a": expected}), "{text}");
    }
}

/// Recorded from kubectl 1.32 in the same way.
#[test]
fn keys_become_strings_as_kubectl_makes_them() {
    let table = [
        ("on", "true"),
        ("1", "1"),
        ("0x10", "16"),
        ("08", "8"),
        ("1.0", "1"),
        ("1.5", "1.5"),
        ("-0.0", "-0"),
        ("1e3", "1000"),
        ("1e6", "1e+06"),
        ("1234567.5", "1.2345675e+06"),
        ("1e20", "1e+20"),
        ("1e30", "1e+30"),
        ("1e39", ".inf"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        (".inf", ".inf"),
        ("2024-01-01", "2024-01-01"),
        ("!!binary aGk=", "hi"),
        ("\"<<\"", "<<"),
    ];
    for (text, expected) in table {
        assert_eq!(one(&format!("{text}: x\n")).value, json!({ expected: "x" }), "{text}");
    }
}

#[test]
fn block_scalars_keep_their_line_feeds() {
    let text = "a: |\n  x\n  y\nb: >\n  x\n  y\n\n  z\nc: |-\n  x\nd: |+\n  x\n\ne: |\n  x";
    assert_eq!(one(text).value, json!({"a": "x\ny\n", "b": "x y\nz\n", "c": "x", "d": "x\n\n", "e": "x\n"}));
}

#[test]
fn merge_keys_follow_go_yaml() {
    let text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nmap: {<<: *x, b: 9}\nlist: {<<: [*x, *y], d: 4}\n";
    let value = one(text).value;
    assert_eq!(value["map"], json!({"a": 1, "b": 9}));
    assert_eq!(value["list"], json!({"a": 1, "b": 1, "c": 2, "d": 4}));

    let late = parse("a.yaml", "a: 1\n<<: {a: 2, b: 3}\n", &Limits::default());
    assert_eq!(late.documents[0].value, json!({"a": 2, "b": 3}));
    insta::assert_snapshot!(late.diagnostics[0], @r"
    a.yaml:2:1: warning[yaml-merge]: `<<` overrides the key `a` that stands before it
      help: write `<<` first, so that the map's own keys win
    ");
}

#[test]
fn positions_lead_to_values_and_keys() {
    let document =
        one("# comment\nspec:\n  list:\n    - name: a\n    - name: \u{e9}b\n  a/b: &x {c: 1}\n  d: *x\n");
    let at = |line, column| Position { line, column };
    assert_eq!(document.position("/spec/list/1/name"), at(5, 13));
    assert_eq!(document.key_position("/spec/list/1/name"), at(5, 7));
    assert_eq!(document.position("/spec/list/1"), at(5, 7));
    assert_eq!(document.key_position("/spec/a~1b/c"), at(6, 12));
    assert_eq!(document.position("/spec/d"), at(7, 6));
    assert_eq!(document.position("/spec/d/c"), at(6, 15), "inside an alias: where it is written");
    assert_eq!(document.key_position("/spec/list/7/name"), at(3, 3), "nearest ancestor");
    assert_eq!(document.position(""), at(2, 1));

    let part = document.part("/spec/list/0").unwrap();
    assert_eq!((part.value.clone(), part.position("/name")), (json!({"name": "a"}), at(4, 13)));
}

#[test]
fn findings_name_place_and_help() {
    insta::assert_snapshot!(findings("a: 1\nb: 2\na: 3\n"), @r"
    a.yaml:3:1: error[yaml-duplicate-key]: the key `a` is already set at line 1, column 1
      help: keep one of the two
    ");
    insta::assert_snapshot!(findings("true: 1\n\"true\": 2\n"), @r"
    a.yaml:2:1: error[yaml-duplicate-key]: the key `true` is already set at line 1, column 1
      help: keep one of the two
    ");
    insta::assert_snapshot!(findings("a: -.inf\nb: .nan\n"), @r"
    a.yaml:1:4: error[yaml-value]: infinite and undefined numbers have no place in JSON
      help: quote the value when the word itself is meant
    a.yaml:2:4: error[yaml-value]: infinite and undefined numbers have no place in JSON
      help: quote the value when the word itself is meant
    ");
    insta::assert_snapshot!(findings("a: !!int abc\nb: !!binary /w==\nc: !!binary _\n"), @r"
    a.yaml:1:10: error[yaml-value]: the value is a string, but its tag says `!!int`
      help: correct the value or remove the tag
    a.yaml:2:13: error[yaml-value]: the value of `!!binary` is not UTF-8 text, so JSON cannot hold it
      help: keep the Base64 text itself, without the tag, e.g. in `data` of a Secret
    a.yaml:3:13: error[yaml-value]: the value of `!!binary` is not Base64
      help: encode it again, with padding
    ");
    insta::assert_snapshot!(findings("~: 1\n18446744073709551615: 2\n? [a]\n: 3\n"), @r#"
    a.yaml:1:1: error[yaml-value]: null is no key of a map
      help: write a key, or quote it when the word itself is meant
    a.yaml:2:1: error[yaml-value]: the number 18446744073709551615 is no key of a map: it is beyond 64 bits with a sign
      help: quote the key
    a.yaml:3:3: error[yaml-key]: a key of a map must be a scalar
      help: quote the text when it is a template such as "{{ name }}"
    "#);
    insta::assert_snapshot!(findings("a: {{ name }}\n"), @r#"
    a.yaml:1:5: error[yaml-key]: a key of a map must be a scalar
      help: quote the text when it is a template such as "{{ name }}"
    "#);
    insta::assert_snapshot!(findings("a: *nobody\n"), @r"
    a.yaml:1:4: error[yaml-syntax]: while parsing node, found unknown anchor
      help: define the anchor before its alias, in the same document
    ");
    insta::assert_snapshot!(findings("a: &x [*x]\n"), @r"
    a.yaml:1:8: error[yaml-alias]: the alias stands inside its own anchor
      help: write the value out
    ");
    insta::assert_snapshot!(findings("<<: 1\n"), @r"
    a.yaml:1:5: error[yaml-merge]: `<<` wants a map or a list of maps
      help: merge an alias of a map, or a list of such aliases
    ");
    insta::assert_snapshot!(findings("a:\n\t- b\n"), @r"
    a.yaml:2:2: error[yaml-syntax]: tabs disallowed within this context (block indentation)
      help: indent with spaces
    ");
    insta::assert_snapshot!(findings("a: b: c\n"), @r"a.yaml:1:5: error[yaml-syntax]: mapping values are not allowed in this context");
    insta::assert_snapshot!(findings("a: \"b\nc: d\n"), @r"
    a.yaml:1:4: error[yaml-syntax]: unclosed quote
      help: close the quotes
    ");
    insta::assert_snapshot!(findings("a: [b\nc: d\n"), @r"a.yaml:2:2: error[yaml-syntax]: illegal placement of ':' indicator");
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    for broken in
        ["a: [1, 2\n", "a: \"x\n", "a: *x\n", "a: {{ x }}\n", "a: 1\na: 2\n", "a:\n\tb: 1\n", "a: .inf\n"]
    {
        let text = format!("first: 1\n---\n{broken}---\nthird: 3\n---\n# nothing\n---\nlast: 4\n");
        let parsed = parse("a.yaml", &text, &Limits::default());
        let values: Vec<Value> = parsed.documents.iter().map(|document| document.value.clone()).collect();
        assert_eq!(
            values,
            [json!({"first": 1}), json!({"third": 3}), json!(null), json!({"last": 4})],
            "{broken:?}"
        );
        assert!(parsed.has_errors(), "{broken:?}");
        let indexes: Vec<usize> = parsed.documents.iter().map(Document::index).collect();
        assert_eq!(indexes, [0, 2, 3, 4], "{broken:?}");
    }
}

#[test]
fn nothing_is_no_document() {
    for text in ["", "\n\n", "# only a comment\n", "\u{feff}"] {
        let parsed = parse("a.yaml", text, &Limits::default());
        assert!(parsed.documents.is_empty() && parsed.diagnostics.is_empty(), "{text:?}");
    }
}

#[test]
fn json_is_yaml() {
    let text = "{\n\t\"a\": [1, 2.5, \"\\/\\ud83d\\ude00\", null, true],\r\n\t\"b\": {\"c\":\"d\"}\n}\n";
    assert_eq!(one(text).value, json!({"a": [1, 2.5, "/\u{1f600}", null, true], "b": {"c": "d"}}));
}

#[test]
fn limits_refuse_instead_of_eating_memory() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let alias = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![alias; 9].join(", "));
    }
    bomb += "---\nsound: true\n";
    let parsed = parse("a.yaml", &bomb, &Limits::default());
    assert_eq!(parsed.documents.len(), 1, "the document behind the bomb is read");
    assert_eq!(parsed.diagnostics[0].code, "yaml-too-large");

    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(parse("a.yaml", &deep, &Limits::default()).diagnostics[0].code, "yaml-too-deep");
    let mut stairs = String::from("a0: &a0 [x]\n");
    for level in 1..200 {
        stairs += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    assert_eq!(parse("a.yaml", &stairs, &Limits::default()).diagnostics[0].code, "yaml-too-deep");

    let limits = Limits { max_bytes: 10, max_documents: 2, ..Limits::default() };
    assert_eq!(parse("a.yaml", "a: 12345678", &limits).diagnostics[0].code, "yaml-too-large");
    let many = parse("a.yaml", "1\n--- 2\n--- 3", &Limits { max_bytes: 100, ..limits });
    assert_eq!((many.documents.len(), many.diagnostics[0].code), (2, "yaml-too-large"));
}

#[test]
fn written_yaml_is_what_a_person_would_write() {
    let value = json!({
        "apiVersion": "v1",
        "data": {"script": "#!/bin/sh\n\necho \"hi\"\n", "tail": "a\nb", "keep": "a\n\n", "blank": " a\nb"},
        "list": [{"name": "a", "tags": ["x", []]}, [1, [2]], {}, "", null],
        "text": ["yes", "0755", "1e3", "12:30", "2024-01-01", "${vpc.status.id}", "a: b", "10.0.0.0/16", "- a", "#", "0o8", "it's"],
        "on": true,
        "number": 1.5,
        "odd\nkey": "\u{7f}\u{feff}",
    });
    insta::assert_snapshot!(to_string(&value), @r##"
    apiVersion: v1
    data:
      script: |
        #!/bin/sh

        echo "hi"
      tail: |-
        a
        b
      keep: |+
        a

      blank: " a\nb"
    list:
    - name: a
      tags:
      - x
      - []
    - - 1
      - - 2
    - {}
    - ""
    - null
    text:
    - "yes"
    - "0755"
    - "1e3"
    - "12:30"
    - "2024-01-01"
    - ${vpc.status.id}
    - "a: b"
    - 10.0.0.0/16
    - "- a"
    - "#"
    - "0o8"
    - it's
    "on": true
    number: 1.5
    "odd\nkey": "\u007f\ufeff"
    "##);
    assert_eq!(one(&to_string(&value)).value, value);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,12}",
        "[ \\t\\n\\r:#\\-?|>\"'{}\\[\\],&*!%@`~.0-9a-z_+=]{0,12}",
        "(yes|no|on|y|null|~|0x1F|0o7|1_0|1e5|\\.5|<<|=|---|\\.\\.\\.|2024-01-01|1:30)[ \n:#]{0,2}",
        proptest::collection::vec(any::<char>(), 0..8)
            .prop_map(|characters| characters.into_iter().collect()),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("whole numbers come back as integers", |value| {
            (value.is_finite() && value.fract() != 0.0).then(|| Value::from(value))
        }),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn a_text_that_is_all_keeps_its_document_marks() {
    for text in ["---\n", "...\n---\n", "a\n--- b\n...\n\n"] {
        let written = to_string(&json!(text));
        let parsed = parse("a.yaml", &written, &Limits::default());
        assert_eq!(
            parsed.documents.iter().map(|it| &it.value).collect::<Vec<_>>(),
            [&json!(text)],
            "{written}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![".*", "[ \\t\\n:#\\-?|>\"'{}\\[\\],&*!%@`~<ax0.]{0,80}"]) {
        let limits = Limits { max_nodes_after_aliases: 500, max_depth: 20, ..Limits::default() };
        let parsed = parse("a.yaml", &text, &limits);
        for document in &parsed.documents {
            document.position("/a/b/0");
        }
    }

    #[test]
    fn what_is_written_reads_back(value in json_value()) {
        let text = to_string(&value);
        let parsed = parse("a.yaml", &text, &Limits::default());
        prop_assert!(parsed.diagnostics.is_empty(), "{text}\n{:?}", parsed.diagnostics);
        prop_assert_eq!(parsed.documents.len(), 1, "{}", text);
        prop_assert_eq!(&parsed.documents[0].value, &value, "{}", text);
    }
}
