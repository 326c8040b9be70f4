//! Broken and hostile input, through the whole daemon: one bad thing stays one bad thing, and nothing goes
//! that should not.

use std::time::Duration;

use fleetwright::api::find_condition;
use fleetwright::daemon::Handle;
use fleetwright::fleet::{FileContent, Tree};
use fleetwright::simulator::{FaultAction, FaultRule};

use crate::support::{World, is_ready};

pub(super) const ACCOUNT: &str = "222222222222";
const REGION: &str = "eu-west-1";

/// A network: a VPC, which may be left out, and a subnet in it.
const DEFINITION: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: net.kro.run}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Net
    spec:
      cidr: string | default="10.0.0.0/16"
      other: boolean | default=false
      subnet: boolean | default=true
      vpcName: string | default=""
  resources:
  - id: vpc
    includeWhen: ["${!schema.spec.other}"]
    template:
      apiVersion: ec2.services.k8s.aws/v1alpha1
      kind: VPC
      metadata:
        name: "${schema.spec.vpcName != '' ? schema.spec.vpcName : schema.metadata.name + '-vpc'}"
      spec:
        cidrBlocks: ["${schema.spec.cidr}"]
  - id: otherVpc
    includeWhen: ["${schema.spec.other}"]
    template:
      apiVersion: ec2.services.k8s.aws/v1alpha1
      kind: VPC
      metadata: {name: "${schema.metadata.name + '-vpc'}"}
      spec:
        cidrBlocks: ["${schema.spec.cidr}"]
  - id: subnet
    includeWhen: ["${schema.spec.subnet}", "${!schema.spec.other}"]
    template:
      apiVersion: ec2.services.k8s.aws/v1alpha1
      kind: Subnet
      metadata: {name: "${schema.metadata.name + '-subnet'}"}
      spec:
        vpcID: "${vpc.status.vpcID}"
        cidrBlock: "${schema.spec.cidr.replace('0.0/16', '1.0/24')}"
        availabilityZone: eu-west-1a
"#;

fn account(name: &str, account: &str) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata:
  name: {name}
  annotations: {{services.k8s.aws/default-region: {REGION}}}
---
apiVersion: services.k8s.aws/v1alpha1
kind: IAMRoleSelector
metadata: {{name: {name}}}
spec:
  arn: arn:aws:iam::{account}:role/fleet
  namespaceSelector: {{names: [{name}]}}
"
    )
}

pub(super) fn net(name: &str, more: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: Net\nmetadata: {{name: {name}, namespace: team}}\nspec: {{{more}}}\n"
    )
}

pub(super) fn key(name: &str) -> String {
    format!("Net.kro.run/team/{name}")
}

/// A world with one account, one definition and networks that are ready.
pub(super) async fn world(nets: &[&str]) -> World {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write("accounts/team.yaml", account("team", ACCOUNT));
    world.write("definitions/net.yaml", DEFINITION);
    for (index, name) in nets.iter().enumerate() {
        world.write(&format!("nets/{name}.yaml"), net(name, &format!("cidr: 10.{index}.0.0/16")));
    }
    world.commit("first");
    world.start();
    for name in nets {
        let subnet = format!("Subnet.ec2.services.k8s.aws/team/{name}-subnet");
        world.until("the network", |handle| is_ready(handle, &key(name)) && is_ready(handle, &subnet)).await;
    }
    world
}

/// Waits until the newest commit is in force.
async fn taken(world: &World, message: &str) {
    let taken = |handle: &Handle| {
        handle.sync.borrow().revision.as_ref().is_some_and(|revision| revision.message == message)
    };
    world.until(message, taken).await;
}

/// Gives what was set off the time to happen.
async fn calm() {
    tokio::time::sleep(Duration::from_millis(1500)).await;
}

pub(super) async fn vpcs(world: &World, account: &str) -> usize {
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(account, REGION));
    ec2.describe_vpcs().send().await.unwrap().vpcs().len()
}

pub(super) fn count(world: &World, call: &str) -> usize {
    world.mutating_calls().get(call).copied().unwrap_or_default()
}

fn commit_tree(world: &World, message: &str, tree: Tree) {
    world.source.commit(message, tree, world.clock.now());
    world.handle().trigger.fire();
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_files_break_nothing_else() {
    let mut world = world(&["good"]).await;
    let config_map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let mut bomb = "a: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let before = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("b{level}: &a{level} [{before}]\n"));
    }
    let deep = format!("{}x{}", "[".repeat(200), "]".repeat(200));
    let mut list = config_map("listed");
    for _ in 0..120 {
        let inner = list.replace('\n', "\n  ");
        list = format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", inner.trim_end());
    }
    let many: String =
        (0..5000).map(|index| format!("---\n{}", config_map(&format!("many-{index}")))).collect();
    let big = format!("{}data: {{text: \"{}\"}}\n", config_map("big"), "x".repeat(7 << 20));
    let long = "n".repeat(253);
    let mut bad: Vec<(&str, String)> = vec![
        ("kind-slash.yaml", config_map("a").replace("ConfigMap", "Con/fig")),
        ("kind-newline.yaml", config_map("a").replace("ConfigMap", "\"Con\\nfig\"")),
        ("kind-nul.yaml", config_map("a").replace("ConfigMap", "\"Con\\0fig\"")),
        ("kind-space.yaml", config_map("a").replace("ConfigMap", "\"Con fig\"")),
        ("kind-dot.yaml", config_map("a").replace("ConfigMap", "Con.fig")),
        ("group-odd.yaml", config_map("a").replace("v1", "\"a b\\u0001/v1\"")),
        ("group-case.yaml", config_map("a").replace("v1", "FOO_bar/v1")),
        ("version-odd.yaml", config_map("a").replace("v1", "\"x.io/v 1\\n\"")),
        ("rbac-control.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"a\\nb\"}\n".into()),
        ("bomb.yaml", format!("{}{bomb}", config_map("bomb"))),
        ("deep.yaml", format!("{}data: {deep}\n", config_map("deep"))),
        ("lists.yaml", list),
        ("tabs.yaml", config_map("tabs").replace("metadata: ", "metadata:\n\t")),
        ("nul.yaml", format!("{}data: {{a: \"\u{0}\"}}\n", config_map("nul"))),
        ("duplicate-key.yaml", format!("{}data: {{}}\ndata: {{}}\n", config_map("twice"))),
        ("anchor.yaml", format!("{}data: &x {{}}\n---\n{}data: *x\n", config_map("x"), config_map("y"))),
        ("key-map.yaml", format!("{}data: {{? {{a: b}} : c}}\n", config_map("x"))),
        ("long.yaml", config_map(&format!("{long}n"))),
        ("label.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: \"-b-\"}}\n".into()),
        ("namespace.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x, namespace: {}}}\n", "n".repeat(64))),
        ("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: \"%%%\"}\n".into()),
        ("big.yaml", big),
        ("same-2.yaml", config_map("same")),
        ("net-invalid.yaml", net("invalid", "cidr: [1, 2]")),
        ("approval.yaml", "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata: {name: a}\nspec: {digst: 1}\n".into()),
        ("selector.yaml", "apiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata: {name: bad}\nspec: {arn: 7}\n".into()),
        ("second-net.yaml", DEFINITION.replace("net.kro.run", "another.kro.run")),
        ("definition-cycle.yaml", DEFINITION.replace("net.kro.run", "cycle").replace("kind: Net", "kind: Cycle")
            .replace("vpcID: \"${vpc.status.vpcID}\"", "vpcID: \"${subnet.status.subnetID}\"")),
        ("definition-self.yaml", DEFINITION.replace("net.kro.run", "self").replace("kind: Net", "kind: Self")
            .replace("ec2.services.k8s.aws/v1alpha1\n      kind: Subnet", "kro.run/v1alpha1\n      kind: Self")),
    ];
    let fine = [
        ("bom.yaml", format!("\u{feff}{}", config_map("bom"))),
        ("crlf.yaml", config_map("crlf").replace('\n', "\r\n")),
        ("many.yaml", many),
        ("long-ok.yaml", config_map(&long)),
        ("spaces and : colons\nand lines é.yaml", config_map("odd-file")),
        (
            "numbers.yaml",
            format!("{}data: {{1: a, true: b, ~: c}}\n", config_map("numbers")).replace(", ~: c", ""),
        ),
    ];
    bad.sort();
    for (path, text) in bad.iter().chain(&fine) {
        world.write(&format!("odd/{path}"), text.as_str());
    }
    world.write("odd/same-1.yaml", config_map("same"));
    world.write("nets/more.yaml", net("more", "cidr: 10.9.0.0/16"));
    world.commit("hostile");
    taken(&world, "hostile").await;
    world.until("the new one is ready", |handle| is_ready(handle, &key("more"))).await;
    assert!(is_ready(&world.handle(), &key("good")));
    let sync = world.handle().sync.borrow().clone();
    for (path, _) in &bad {
        let file = format!("odd/{path}");
        let finding = sync.diagnostics.iter().find(|finding| {
            finding.is_error() && finding.location.as_ref().is_some_and(|location| location.file == file)
        });
        match finding {
            Some(finding) => println!("{finding}"),
            None => panic!("no finding for {file}"),
        }
    }
    for name in ["bom", "crlf", "many-4999", "odd-file", "numbers", &long] {
        assert!(world.get(&format!("ConfigMap/default/{name}")).await.is_some(), "{name}");
    }
    assert_eq!(count(&world, "CreateVpc"), 2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_files_and_links_remove_nothing() {
    let world = world(&["good"]).await;
    let text = |text: String| FileContent::text(text);
    let mut tree: Tree = Tree::from([
        ("accounts/team.yaml".to_owned(), text(account("team", ACCOUNT))),
        ("definitions/net.yaml".to_owned(), text(DEFINITION.to_owned())),
    ]);
    for (message, content) in [
        ("too large", FileContent::TooLarge(10 << 20)),
        ("not text", FileContent::Binary),
        ("outside", FileContent::Symlink("../../etc/passwd".into())),
        ("absolute", FileContent::Symlink("/etc/passwd".into())),
        ("circle", FileContent::Symlink("good.yaml".into())),
        ("dangling", FileContent::Symlink("gone.yaml".into())),
        ("null", FileContent::text("---\n")),
        ("torn", FileContent::text("apiVersion: kro.run/v1alpha1\nkind: Net\nmetadata: {name: go")),
    ] {
        tree.insert("nets/good.yaml".into(), content);
        commit_tree(&world, message, tree.clone());
        taken(&world, message).await;
        calm().await;
        let kept = world.get(&key("good")).await;
        if message == "null" {
            // The file loads and states nothing: no removal, but told.
            let told = world.handle().sync.borrow().diagnostics.clone();
            assert!(told.iter().any(|finding| finding.code == "removal-unsure"), "{told:#?}");
        }
        assert!(kept.is_some_and(|net| !net.is_terminating()), "{message}: {}", world.picture());
    }
    // A file that moves and breaks in one commit: its text still names the object.
    tree.remove("nets/good.yaml");
    tree.insert("nets/bad.yaml".into(), text(format!("{}broken: [", net("good", ""))));
    commit_tree(&world, "moved", tree.clone());
    taken(&world, "moved").await;
    calm().await;
    assert!(world.handle().sync.borrow().held.is_empty(), "not even held: {}", world.picture());
    assert!(world.get(&key("good")).await.is_some_and(|net| !net.is_terminating()));
    // An empty tree is no revision at all.
    commit_tree(&world, "empty", Tree::new());
    world.until("the empty tree is refused", |handle| handle.sync.borrow().error.is_some()).await;
    assert!(world.get(&key("good")).await.is_some_and(|net| !net.is_terminating()));
    assert_eq!(count(&world, "DeleteVpc"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_serves_once() {
    let mut world = world(&["a", "b"]).await;
    let held = |handle: &Handle| handle.sync.borrow().held.first().cloned();
    world.write("approvals/wrong.yaml", "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata: {name: w}\nspec: {digest: 0123456789abcdef}\n");
    world.remove("nets/a.yaml");
    world.commit("remove");
    world.until("the removal is held", |handle| held(handle).is_some()).await;
    calm().await;
    assert_eq!(count(&world, "DeleteVpc"), 0);
    let approval = held(&world.handle()).unwrap().approval;
    world.write("approvals/a.yaml", approval);
    world.commit("approve");
    // A whole network must never be told of once a part of it goes.
    let wrong = std::cell::Cell::new(false);
    world
        .until("it is gone", |handle| {
            let get = |key: &str| handle.mirror.get(&key.parse().unwrap());
            // Read before the instance, which may change meanwhile.
            let going =
                get("Subnet.ec2.services.k8s.aws/team/a-subnet").is_none_or(|part| part.is_terminating());
            let Some(net) = get(&key("a")) else { return true };
            let told = net.status()["state"] == "DELETING" && !is_ready(handle, &key("a"));
            wrong.set(wrong.get() || (going && !told));
            false
        })
        .await;
    assert!(!wrong.get(), "a part was going while the instance was told to be ready");
    world.write("nets/a.yaml", net("a", "cidr: 10.5.0.0/16"));
    world.commit("again");
    world.until("it is there again", |handle| is_ready(handle, &key("a"))).await;
    world.remove("nets/a.yaml");
    world.commit("remove again");
    taken(&world, "remove again").await;
    calm().await;
    assert!(
        held(&world.handle()).is_some(),
        "an old approval must not serve for a new life: {}",
        world.picture()
    );
    assert_eq!(count(&world, "DeleteVpc"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stated_again_while_it_goes_comes_back() {
    let mut world = world(&["a", "b"]).await;
    world.remove("nets/a.yaml");
    world.commit("remove");
    world.until("the removal is held", |handle| !handle.sync.borrow().held.is_empty()).await;
    let approval = world.handle().sync.borrow().held[0].approval.clone();
    world.write("approvals/a.yaml", approval);
    // It takes a while: AWS does not answer.
    world.simulator.add_fault(FaultRule::on("Delete*", FaultAction::Throttle).times(8));
    world.commit("approve");
    let going = |handle: &Handle| {
        handle.mirror.get(&key("a").parse().unwrap()).is_some_and(|net| net.is_terminating())
    };
    world.until("it is going", going).await;
    world.write("nets/a.yaml", net("a", "cidr: 10.0.0.0/16"));
    world.commit("revert");
    taken(&world, "revert").await;
    world
        .until("it is there again", |handle| {
            !going(handle) && is_ready(handle, "Subnet.ec2.services.k8s.aws/team/a-subnet")
        })
        .await;
    assert_eq!((count(&world, "CreateVpc"), count(&world, "DeleteVpc") > 0), (3, true));
    assert_eq!(vpcs(&world, ACCOUNT).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_once_is_tried_again() {
    let mut world = world(&["a"]).await;
    world.source.fail(Some("no route to host"));
    world.write("nets/b.yaml", net("b", "cidr: 10.1.0.0/16"));
    world.commit("b");
    world.until("it is told", |handle| handle.sync.borrow().error.is_some()).await;
    assert!(is_ready(&world.handle(), &key("a")));
    world.source.fail(None);
    world.until("b is ready", |handle| is_ready(handle, &key("b"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_takes_no_object_that_git_states() {
    let mut world = world(&["good"]).await;
    world.write(
        "nets/vpc.yaml",
        "apiVersion: ec2.services.k8s.aws/v1alpha1\nkind: VPC\nmetadata: {name: mine, namespace: team}\nspec: {cidrBlocks: [10.8.0.0/16]}\n",
    );
    world.commit("authored");
    world.until("the VPC is ready", |handle| is_ready(handle, "VPC.ec2.services.k8s.aws/team/mine")).await;
    world.write("nets/thief.yaml", net("thief", "vpcName: mine, cidr: 10.7.0.0/16, subnet: false"));
    world.write("nets/second.yaml", net("second", "vpcName: good-vpc, subnet: false"));
    // An exported child, with all that the engine wrote into it.
    let child = world.get("VPC.ec2.services.k8s.aws/team/good-vpc").await.unwrap();
    world.write("nets/exported.json", child.to_value().to_string());
    world.write("nets/copy.json", child.to_value().to_string().replace("good-vpc", "copied"));
    world.commit("collide");
    taken(&world, "collide").await;
    let findings: Vec<String> =
        world.handle().sync.borrow().diagnostics.iter().map(ToString::to_string).collect();
    let told =
        |code: &str, file: &str| findings.iter().any(|text| text.contains(code) && text.starts_with(file));
    assert!(told("child-stated", "nets/exported.json"), "{findings:#?}");
    assert!(told("mark-dropped", "nets/copy.json"), "{findings:#?}");
    let message = |handle: &Handle, name: &str| {
        let net = handle.mirror.get(&key(name).parse().unwrap())?;
        find_condition(net.status(), "Ready")?.message
    };
    world
        .until("the collisions are told", |handle| {
            message(handle, "thief").is_some_and(|text| text.contains("nets/vpc.yaml"))
                && message(handle, "second").is_some_and(|text| text.contains("belongs to"))
        })
        .await;
    world.remove("nets/thief.yaml");
    world.commit("thief goes");
    world
        .until("the thief is gone", |handle| handle.mirror.get(&key("thief").parse().unwrap()).is_none())
        .await;
    calm().await;
    let mine = world.get("VPC.ec2.services.k8s.aws/team/mine").await.unwrap();
    assert!(!mine.is_terminating(), "{}", world.picture());
    assert_eq!(mine.spec()["cidrBlocks"][0], "10.8.0.0/16");
    let copied = world.get("VPC.ec2.services.k8s.aws/team/copied").await.unwrap();
    assert_eq!(copied.label("kro.run/owned"), None);
    assert_eq!((count(&world, "CreateVpc"), count(&world, "DeleteVpc")), (3, 0));
    assert!(is_ready(&world.handle(), &key("good")));
}

#[tokio::test(flavor = "multi_thread")]
async fn support_that_goes_first_stays_while_it_is_used() {
    let mut world = world(&["a", "b"]).await;
    world.remove("definitions/net.yaml");
    world.commit("no definition");
    taken(&world, "no definition").await;
    calm().await;
    assert!(is_ready(&world.handle(), &key("a")), "{}", world.picture());
    assert!(!world.handle().sync.borrow().in_use.is_empty(), "{}", world.picture());
    world.write("definitions/net.yaml", DEFINITION);
    world.remove("accounts/team.yaml");
    world.commit("no account");
    taken(&world, "no account").await;
    calm().await;
    let in_use = world.handle().sync.borrow().in_use.clone();
    assert!(in_use.contains_key("Namespace/team"), "{in_use:?}\n{}", world.picture());
    assert!(in_use.contains_key("IAMRoleSelector.services.k8s.aws/team"), "{in_use:?}");
    // Everything at once is "all", which is held whatever it is.
    world.remove("nets/a.yaml");
    world.remove("nets/b.yaml");
    world.write("readme.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: left}\n");
    world.commit("nothing left");
    taken(&world, "nothing left").await;
    world.until("held", |handle| !handle.sync.borrow().held.is_empty()).await;
    let approval = world.handle().sync.borrow().held[0].approval.clone();
    world.remove("definitions/net.yaml");
    world.write("approval.yaml", approval);
    world.commit("approve");
    world
        .until("all of it is gone", |handle| {
            let gone = |key: &str| handle.mirror.get(&key.parse().unwrap()).is_none();
            gone(&key("a"))
                && gone(&key("b"))
                && gone("Namespace/team")
                && gone("IAMRoleSelector.services.k8s.aws/team")
                && gone("ResourceGraphDefinition.kro.run/net.kro.run")
        })
        .await;
    assert_eq!(vpcs(&world, ACCOUNT).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_moves_between_nodes_and_lives() {
    let mut world = world(&["a", "b"]).await;
    world.write("nets/a.yaml", net("a", "cidr: 10.0.0.0/16, other: true"));
    world.commit("flip");
    taken(&world, "flip").await;
    world
        .until("the subnet is gone", |handle| {
            handle.mirror.get(&"Subnet.ec2.services.k8s.aws/team/a-subnet".parse().unwrap()).is_none()
        })
        .await;
    world.until("it is ready", |handle| is_ready(handle, &key("a"))).await;
    world.write("nets/a.yaml", net("a", "cidr: 10.0.0.0/16, other: false"));
    world.commit("flip back");
    taken(&world, "flip back").await;
    world
        .until("the subnet is back", |handle| is_ready(handle, "Subnet.ec2.services.k8s.aws/team/a-subnet"))
        .await;
    assert_eq!((count(&world, "CreateVpc"), count(&world, "DeleteVpc")), (2, 0));
    // A rename is a removal and an addition: the removal waits for a person.
    world.remove("nets/a.yaml");
    world.write("nets/a.yaml", net("renamed", "cidr: 10.4.0.0/16"));
    world.commit("rename");
    world.until("the new one is ready", |handle| is_ready(handle, &key("renamed"))).await;
    assert!(!world.handle().sync.borrow().held.is_empty());
    assert_eq!(count(&world, "DeleteVpc"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_no_guard_protects_moves_between_nodes_and_lives() {
    let node = |id: &str, when: &str| {
        format!(
            "  - id: {id}\n    includeWhen: [\"${{{when}}}\"]\n    template:\n      apiVersion: \
             ec2.services.k8s.aws/v1alpha1\n      kind: ElasticIPAddress\n      metadata: {{name: \
             \"${{schema.metadata.name}}\"}}\n      spec: {{}}\n"
        )
    };
    let definition = format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: address.kro.run}}\nspec:\n  \
         schema:\n    apiVersion: v1alpha1\n    kind: Address\n    spec: {{other: boolean | default=false}}\n  \
         resources:\n{}{}",
        node("one", "!schema.spec.other"),
        node("another", "schema.spec.other")
    );
    let address = |other: bool| {
        format!(
            "apiVersion: kro.run/v1alpha1\nkind: Address\nmetadata: {{name: out, namespace: team}}\nspec: {{other: \
             {other}}}\n"
        )
    };
    let mut world = world(&["a"]).await;
    world.write("definitions/address.yaml", definition);
    world.write("address.yaml", address(false));
    world.commit("an address");
    let child = "ElasticIPAddress.ec2.services.k8s.aws/team/out";
    let of_node = |handle: &Handle, node: &str| {
        let child = handle.mirror.get(&child.parse().unwrap());
        child.is_some_and(|child| child.label("kro.run/node-id") == Some(node))
    };
    world.until("it is there", |handle| is_ready(handle, child) && of_node(handle, "one")).await;
    world.write("address.yaml", address(true));
    world.commit("by another node");
    world.until("it has moved", |handle| is_ready(handle, child) && of_node(handle, "another")).await;
    calm().await;
    assert_eq!((count(&world, "AllocateAddress"), count(&world, "ReleaseAddress")), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_instance_is_made_by_the_definition_that_came_with_it() {
    let node = |id: &str, kind: &str, spec: &str| {
        format!(
            "  - id: {id}\n    template:\n      apiVersion: ec2.services.k8s.aws/v1alpha1\n      kind: {kind}\n      \
             metadata: {{name: \"${{schema.metadata.name}}\"}}\n      spec: {spec}\n"
        )
    };
    let definition = |round: usize, nodes: &[String]| {
        format!(
            "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: round{round}.kro.run}}\n\
             spec:\n  schema: {{apiVersion: v1alpha1, kind: Round{round}}}\n  resources:\n{}",
            nodes.concat()
        )
    };
    let kept = node("gateway", "InternetGateway", "{}");
    let dropped = node("address", "ElasticIPAddress", "{}");
    let mut world = world(&["a"]).await;
    for round in 0..8 {
        let file = format!("definitions/round{round}.yaml");
        world.write(&file, definition(round, &[kept.clone(), dropped.clone()]));
        world.commit(&format!("both {round}"));
        taken(&world, &format!("both {round}")).await;
        world.write(&file, definition(round, std::slice::from_ref(&kept)));
        let instance = format!(
            "apiVersion: kro.run/v1alpha1\nkind: Round{round}\nmetadata: {{name: round-{round}, namespace: team}}\n"
        );
        world.write(&format!("round-{round}.yaml"), instance);
        world.commit(&format!("one {round}"));
        let gateway = format!("InternetGateway.ec2.services.k8s.aws/team/round-{round}");
        world.until("the gateway is there", |handle| is_ready(handle, &gateway)).await;
    }
    assert_eq!(count(&world, "AllocateAddress"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_regions_do_not_move_live_objects() {
    let mut world = world(&["a"]).await;
    world.role("333333333333", "fleet").await;
    world.write("accounts/team.yaml", account("team", "333333333333"));
    world.commit("another account");
    taken(&world, "another account").await;
    world.write("nets/b.yaml", net("b", "cidr: 10.2.0.0/16"));
    world.commit("b");
    world.until("b is ready", |handle| is_ready(handle, &key("b"))).await;
    calm().await;
    assert_eq!((vpcs(&world, ACCOUNT).await, vpcs(&world, "333333333333").await), (1, 1));
    world.write("accounts/team.yaml", account("team", ACCOUNT).replace(REGION, "us-east-1"));
    world.commit("another Region");
    taken(&world, "another Region").await;
    calm().await;
    assert_eq!((count(&world, "CreateVpc"), count(&world, "DeleteVpc")), (2, 0));
    let vpc = world.get("VPC.ec2.services.k8s.aws/team/a-vpc").await.unwrap();
    println!("{:#}", vpc.status());
    world.write("accounts/team.yaml", account("team", ACCOUNT));
    world.commit("back");
    world.until("a is ready", |handle| is_ready(handle, &key("a"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_change_of_a_definition_keeps_the_good_graph() {
    let mut world = world(&["a"]).await;
    for (message, text) in [
        ("syntax", DEFINITION.replace("${vpc.status.vpcID}", "${vpc.status.}")),
        ("type", DEFINITION.replace("cidr: string | default=\"10.0.0.0/16\"", "cidr: integer | default=5")),
        ("unterminated", DEFINITION.replace("${vpc.status.vpcID}", "${vpc.status.vpcID")),
        ("kind", DEFINITION.replace("kind: Net", "kind: Other")),
        ("node gone", DEFINITION.split("  - id: subnet").next().unwrap().to_owned()),
        ("bomb", DEFINITION.replace("${schema.metadata.name + '-subnet'}",
            "${lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000))).size() > 0 ? 'x' : 'y'}")),
        ("name", DEFINITION.replace("${schema.metadata.name + '-subnet'}", "${schema.metadata.name + '_SUBNET'}")),
        ("endless", DEFINITION.replace("includeWhen: [\"${schema.spec.subnet}\"", "forEach: [{x: \"${lists.range(5000)}\"}]\n    includeWhen: [\"${schema.spec.subnet}\"")
            .replace("'-subnet'", "string(x)")),
    ] {
        world.write("definitions/net.yaml", text);
        world.commit(message);
        taken(&world, message).await;
        calm().await;
        println!("--- {message}\n{}", world.picture());
        assert!(world.get(&key("a")).await.is_some_and(|net| !net.is_terminating()), "{message}");
        assert_eq!(count(&world, "DeleteVpc"), 0, "{message}");
        world.write("definitions/net.yaml", DEFINITION);
        world.commit(&format!("{message} repaired"));
        taken(&world, &format!("{message} repaired")).await;
        world.until("a is ready again", |handle| {
            is_ready(handle, &key("a")) && is_ready(handle, "Subnet.ec2.services.k8s.aws/team/a-subnet")
        }).await;
    }
    assert_eq!(count(&world, "CreateVpc"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_is_rewritten_waits() {
    let mut world = world(&["a", "b"]).await;
    world.write("nets/c.yaml", net("c", "cidr: 10.3.0.0/16"));
    world.commit("c");
    world.until("c is ready", |handle| is_ready(handle, &key("c"))).await;
    world.source.rewind(1);
    world.remove("nets/c.yaml");
    world.write("nets/d.yaml", net("d", "cidr: 10.4.0.0/16"));
    world.commit("forced");
    world.until("it is refused", |handle| handle.sync.borrow().error.is_some()).await;
    calm().await;
    assert!(world.get(&key("d")).await.is_none());
    assert!(world.get(&key("c")).await.is_some_and(|net| !net.is_terminating()));
    println!("{:?}", world.handle().sync.borrow().error);
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_with_propagation_begins_with_it() {
    let mut world = world(&["a"]).await;
    let error = |status, code: &str| FaultAction::Error { status, code: code.into(), message: "no".into() };
    // Unready for minutes for another reason, then AWS does not see its own VPC three times.
    world.simulator.add_fault(FaultRule::on("CreateSubnet", error(403, "UnauthorizedOperation")).times(9));
    let unseen = FaultRule::on("CreateSubnet", error(400, "InvalidVpcID.NotFound")).times(3);
    world.simulator.add_fault(FaultRule { from: Some(10), ..unseen });
    world.write("nets/b.yaml", net("b", "cidr: 10.7.0.0/16"));
    world.commit("b");
    world.until("ready", |handle| is_ready(handle, "Subnet.ec2.services.k8s.aws/team/b-subnet")).await;
    let calls = world.simulator.calls();
    let creates: Vec<_> = calls.iter().filter(|call| call.operation == "CreateSubnet").collect();
    let refused: Vec<_> = creates.iter().filter(|call| call.outcome == "UnauthorizedOperation").collect();
    let unseen: Vec<_> = creates.iter().filter(|call| call.outcome == "InvalidVpcID.NotFound").collect();
    assert_eq!((refused.len(), unseen.len()), (9, 3));
    let waited = unseen[0].time.duration_since(refused[0].time);
    assert!(waited.as_secs() > 180, "{waited:?}");
    let last = creates.last().unwrap();
    assert_eq!(last.outcome, "OK");
    let took = last.time.duration_since(unseen[0].time);
    assert!(took.as_secs() < 120, "called a mistake of the author: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_that_stumbles_duplicates_nothing() {
    let mut world = world(&["a"]).await;
    let names = ["b", "c", "d", "e"];
    let error = |status, code: &str| FaultAction::Error { status, code: code.into(), message: "no".into() };
    for (operation, action, times) in [
        ("CreateVpc", FaultAction::Reset { after: true }, 2),
        ("CreateSubnet", FaultAction::Reset { after: true }, 2),
        ("CreateSubnet", FaultAction::Reset { after: false }, 1),
        ("Describe*", FaultAction::Throttle, 10),
        ("*", error(500, "InternalError"), 10),
        ("CreateVpc", error(403, "UnauthorizedOperation"), 2),
        ("*", error(400, "RequestExpired"), 2),
        ("AssumeRole", error(403, "ExpiredToken"), 1),
        ("Describe*", error(400, "NeverHeardOf"), 2),
        ("Modify*", FaultAction::Throttle, 3),
    ] {
        world.simulator.add_fault(FaultRule::on(operation, action).times(times));
    }
    for (index, name) in names.iter().enumerate() {
        world.write(&format!("nets/{name}.yaml"), net(name, &format!("cidr: 10.{}.0.0/16", 10 + index)));
    }
    world.commit("four");
    for name in names {
        let subnet = format!("Subnet.ec2.services.k8s.aws/team/{name}-subnet");
        world
            .until("in spite of all", |handle| is_ready(handle, &key(name)) && is_ready(handle, &subnet))
            .await;
    }
    assert!(is_ready(&world.handle(), &key("a")));
    assert_eq!(vpcs(&world, ACCOUNT).await, 5, "{}", world.picture());
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, REGION));
    assert_eq!(ec2.describe_subnets().send().await.unwrap().subnets().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_hand_is_seen_and_nothing_foreign_is_taken() {
    let mut world = world(&["a"]).await;
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, REGION));
    let subnet = world.get("Subnet.ec2.services.k8s.aws/team/a-subnet").await.unwrap();
    let id = subnet.status()["subnetID"].as_str().unwrap().to_owned();
    ec2.delete_subnet().subnet_id(&id).send().await.unwrap();
    // The tags of another fleet, on our VPC: from now on it is theirs.
    world
        .until("the subnet is made again", |handle| {
            let subnet = handle.mirror.get(&"Subnet.ec2.services.k8s.aws/team/a-subnet".parse().unwrap());
            subnet.is_some_and(|subnet| subnet.status()["subnetID"].as_str().is_some_and(|now| now != id))
        })
        .await;
    let vpc = world.get("VPC.ec2.services.k8s.aws/team/a-vpc").await.unwrap();
    let id = vpc.status()["vpcID"].as_str().unwrap().to_owned();
    let tag = aws_sdk_ec2::types::Tag::builder().key("fleetwright.dev/fleet").value("others").build();
    ec2.create_tags().resources(&id).tags(tag).send().await.unwrap();
    world.write("nets/a.yaml", net("a", "cidr: 10.0.0.0/16, subnet: false"));
    world.commit("touch");
    world
        .until("it is told", |handle| {
            handle.mirror.get(&"VPC.ec2.services.k8s.aws/team/a-vpc".parse().unwrap()).is_some_and(|vpc| {
                find_condition(vpc.status(), "Ready")
                    .is_some_and(|ready| ready.message.unwrap_or_default().contains("is others"))
            })
        })
        .await;
    assert_eq!((count(&world, "CreateVpc"), count(&world, "DeleteVpc")), (1, 0));
}
