//! `fleetwright get orphans`: AWS objects of the fleet that nothing in force stands for.

use serde_json::Value;

use super::{Table, moment, text};

/// The answer of the API for people.
pub(super) fn text_of(answer: &Value, wide: bool) -> String {
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let (orphans, undecided, unknown) = (list("orphans"), list("undecided"), list("unknown"));
    let mut shown = String::new();
    let listed = moment(answer, "/listedAt");
    if listed.is_empty() {
        let why = text(answer, "/waitsFor");
        let why = if why.is_empty() { "AWS was not listed yet".to_owned() } else { why };
        return format!("Not known yet: {why}\n");
    }
    if orphans.is_empty() {
        shown.push_str(&format!("There are no orphans, as of {listed}\n"));
    } else {
        shown.push_str(&table(&orphans, wide).to_string());
    }
    if !undecided.is_empty() {
        shown.push_str(&format!("\nGit may want these or not:\n{}", table(&undecided, wide)));
    }
    if !unknown.is_empty() {
        let mut places = Table::new(&["ACCOUNT", "REGION", "KIND", "MESSAGE"]);
        for place in &unknown {
            places.row(["/account", "/region", "/kind", "/message"].map(|at| text(place, at)));
        }
        shown.push_str(&format!("\nNot listed, so there may be more:\n{places}"));
    }
    for approval in list("approvals") {
        let account = text(&approval, "/account");
        shown.push_str(&format!(
            "\nThey are not deleted by themselves. To have those in {account} deleted, commit this document to the fleet repository:\n"
        ));
        let document = approval.get("document").and_then(Value::as_str).unwrap_or_default();
        document.lines().for_each(|line| shown.push_str(&format!("  {line}\n")));
    }
    shown
}

fn table(rows: &[Value], wide: bool) -> Table {
    let mut headings = vec!["KIND", "ARN", "ACCOUNT", "REGION", "OBJECT", "LIFE", "SINCE"];
    if wide {
        headings.push("ID");
    }
    headings.push("MESSAGE");
    let mut table = Table::new(&headings);
    for row in rows {
        let kind = text(row, "/kind");
        let mut cells = vec![kind.split('.').next().unwrap_or_default().to_owned()];
        cells.extend(["/arn", "/account", "/region", "/object", "/incarnation"].map(|at| text(row, at)));
        cells.push(moment(row, "/since"));
        if wide {
            cells.push(text(row, "/life"));
        }
        let deletion = text(row, "/deletion");
        cells.push(if deletion.is_empty() { text(row, "/reason") } else { deletion });
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_known_is_not_nothing_there() {
        assert_eq!(
            text_of(&json!({"waitsFor": "no revision is in force yet"}), false),
            "Not known yet: no revision is in force yet\n"
        );
        let none = json!({"listedAt": "2026-03-02T10:07:12.5Z", "orphans": []});
        assert_eq!(text_of(&none, false), "There are no orphans, as of 2026-03-02T10:07:12Z\n");
        let unknown = json!({"listedAt": "2026-03-02T10:07:12Z", "unknown": [{"account": "222222222222", "region": "eu-west-1",
            "kind": "VPC.ec2.services.k8s.aws", "message": "denied"}]});
        assert!(text_of(&unknown, false).contains("Not listed, so there may be more:"));
    }

    #[test]
    fn a_tag_of_aws_cannot_steer_the_terminal() {
        let answer = json!({"listedAt": "2026-03-02T10:07:12Z", "orphans": [{"kind": "VPC.ec2.services.k8s.aws",
            "object": "VPC.ec2.services.k8s.aws/a/\u{202e}drowssap\u{1b}]0;x\u{7}", "reason": "one\ntwo"}]});
        let shown = text_of(&answer, true);
        assert!(shown.contains(r"/a/\u{202e}drowssap\u{1b}]0;x\u{7}"), "{shown}");
        assert!(!shown.contains(['\u{202e}', '\u{1b}', '\u{7}']), "{shown:?}");
    }

    #[test]
    fn orphans_come_with_the_document_to_commit() {
        let answer = json!({"listedAt": "2026-03-02T10:07:12Z",
            "orphans": [{"kind": "VPC.ec2.services.k8s.aws", "arn": "arn:aws:ec2:eu-west-1:222222222222:vpc/vpc-1", "life": "vpc-1",
                "account": "222222222222", "region": "eu-west-1", "object": "VPC.ec2.services.k8s.aws/team/net",
                "incarnation": 1, "since": "2026-03-02T10:06:12Z", "reason": "nothing in force stands for it"}],
            "approvals": [{"account": "222222222222", "digest": "ab", "document": "kind: Approval\nspec: {}\n"}]});
        insta::assert_snapshot!(text_of(&answer, false), @r"
        KIND  ARN                                           ACCOUNT       REGION     OBJECT                             LIFE  SINCE                 MESSAGE
        VPC   arn:aws:ec2:eu-west-1:222222222222:vpc/vpc-1  222222222222  eu-west-1  VPC.ec2.services.k8s.aws/team/net  1     2026-03-02T10:06:12Z  nothing in force stands for it

        They are not deleted by themselves. To have those in 222222222222 deleted, commit this document to the fleet repository:
          kind: Approval
          spec: {}
        ");
    }
}
