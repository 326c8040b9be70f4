//! AWS objects of the fleet that nothing in force stands for: listed, never deleted by themselves, deleted by
//! an approval in Git (decisions 11).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fleetwright::config::Mode;
use fleetwright::controllers::gate::{Control, Wish};
use fleetwright::daemon::Handle;
use fleetwright::plan::orphans::Orphans;
use fleetwright::simulator::{FaultAction, FaultRule};
use fleetwright::store::Embedded;

use crate::drift::{ACCOUNT, REGION, networks, subnet_key, vpc_key};
use crate::support::{World, is_ready};

const RESYNC: Duration = Duration::from_secs(600);

fn listed(orphans: &Orphans) -> BTreeSet<String> {
    orphans.orphans.iter().filter_map(|orphan| orphan.object.clone()).collect()
}

fn keys(names: &[&str]) -> BTreeSet<String> {
    names.iter().flat_map(|name| [vpc_key(name), subnet_key(name)]).collect()
}

/// Waits until AWS was listed since now, and twice the settle window after.
async fn looked_at(world: &World) {
    world.clock.sleep(RESYNC + RESYNC / 2).await;
}

/// Two networks; then the store is lost, and the manifest of the second goes with it.
async fn after_a_lost_store() -> World {
    let mut world = networks(&["a".to_owned(), "b".to_owned()], RESYNC).await;
    lose_the_store(&mut world).await;
    world.remove("nets/b.yaml");
    world.commit("b goes");
    world.start();
    world
}

async fn lose_the_store(world: &mut World) {
    // AWS shows by tags what was made.
    world.clock.sleep(RESYNC / 5).await;
    world.stop().await;
    world.store = Arc::new(Embedded::in_memory(world.clock.clone()).unwrap());
    world.control = Some(Control::new(tempfile::tempdir().unwrap().keep()));
}

/// Tells the daemon of the new store that it is the one to change AWS now.
async fn take_over(world: &World) {
    let wish = Wish {
        all: true,
        accounts: BTreeSet::new(),
        by: "ann".into(),
        at: world.clock.now(),
        done: BTreeSet::new(),
    };
    world.control.as_ref().unwrap().take_over(wish).unwrap();
    looked_at(world).await;
}

async fn orphaned(world: &World, names: &[&str]) {
    let wanted = keys(names);
    world.until("orphans are listed", |handle| listed(&handle.orphans.borrow()) == wanted).await;
}

/// The document that the daemon prints for the account.
fn approval(handle: &Handle) -> String {
    let orphans = handle.orphans.borrow();
    let [approval] = orphans.approvals.as_slice() else { panic!("{orphans:?}") };
    assert_eq!(approval.account.as_str(), ACCOUNT);
    approval.document.clone()
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_store_what_git_does_not_state_is_listed_and_left_alone() {
    let mut world = after_a_lost_store().await;
    let before = world.mutating_calls();
    orphaned(&world, &["b"]).await;
    looked_at(&world).await;
    assert_eq!(world.mutating_calls(), before, "listing changes nothing, and what Git states is adopted");
    assert!(is_ready(&world.handle(), &subnet_key("a")));
    let orphans = world.handle().orphans.borrow().clone();
    assert_eq!(listed(&orphans), keys(&["b"]));
    for orphan in &orphans.orphans {
        assert_eq!((orphan.scope.account.as_str(), orphan.scope.region.as_str()), (ACCOUNT, REGION));
        assert!(orphan.reason.starts_with("nothing in force stands for "), "{}", orphan.reason);
        assert_eq!(orphan.incarnation, Some(1));
    }
    assert!(orphans.undecided.is_empty() && orphans.unknown.is_empty(), "{orphans:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_is_all_in_force_has_no_orphans_at_any_moment() {
    let mut world = networks(&["a".to_owned()], RESYNC).await;
    let mut seen = world.handle().orphans;
    for _ in 0..4 {
        world.clock.sleep(RESYNC / 2).await;
        let orphans = seen.borrow_and_update().clone();
        assert!(orphans.orphans.is_empty() && orphans.undecided.is_empty(), "{orphans:?}");
    }
    assert!(seen.borrow().listed_at.is_some());
    // One goes with Git's word, another is made anew: neither is an orphan on its way.
    world.write("nets/b.yaml", crate::drift::net("b", 1));
    world.commit("b");
    world.until("b", |handle| is_ready(handle, &subnet_key("b"))).await;
    lose_the_store(&mut world).await;
    world.start();
    world.until("adopted", |handle| is_ready(handle, &subnet_key("b"))).await;
    looked_at(&world).await;
    let orphans = world.handle().orphans.borrow().clone();
    assert!(orphans.orphans.is_empty() && orphans.listed_at.is_some(), "{orphans:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_unknown_and_takes_nothing_from_the_list() {
    let mut world = after_a_lost_store().await;
    orphaned(&world, &["b"]).await;
    let refused =
        FaultAction::Error { status: 403, code: "UnauthorizedOperation".into(), message: "denied".into() };
    world.simulator.add_fault(FaultRule::on("DescribeVpcs", refused));
    looked_at(&world).await;
    let orphans = world.handle().orphans.borrow().clone();
    assert_eq!(listed(&orphans), keys(&["b"]), "what was seen before stays");
    let unknown: Vec<&str> = orphans.unknown.iter().map(|unknown| unknown.scope.kind.kind.as_str()).collect();
    assert_eq!(unknown, ["VPC"]);
    assert!(orphans.unknown[0].message.contains("UnauthorizedOperation: denied (request "), "{orphans:?}");

    world.stop().await;
    world.start();
    world.until("unknown", |handle| handle.orphans.borrow().unknown.len() == 1).await;
    looked_at(&world).await;
    let orphans = world.handle().orphans.borrow().clone();
    assert_eq!(listed(&orphans), BTreeSet::from([subnet_key("b")]), "the VPC was not seen in this life");
    assert_eq!(orphans.unknown.len(), 1);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_not_asked_for_more_often() {
    let mut world = after_a_lost_store().await;
    world.until("listed once", |handle| handle.orphans.borrow().listed_at.is_some()).await;
    let refused =
        FaultAction::Error { status: 403, code: "UnauthorizedOperation".into(), message: "denied".into() };
    world.simulator.add_fault(FaultRule::on("DescribeVpcs", refused));
    let before = world.simulator.calls().len();
    looked_at(&world).await;
    let calls = world.simulator.calls();
    let asked = calls[before..].iter().filter(|call| call.operation == "DescribeVpcs").count();
    assert!(asked < 20, "{asked} calls, with those of the VPC in force that is tried again and again");
    assert_eq!(
        listed(&world.handle().orphans.borrow()),
        BTreeSet::from([subnet_key("b")]),
        "the VPC was listed once only"
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_broken_file_may_state_is_no_orphan() {
    let mut world = networks(&["a".to_owned(), "b".to_owned()], RESYNC).await;
    lose_the_store(&mut world).await;
    let good = world.text("nets/b.yaml");
    world.remove("nets/b.yaml");
    // A new path has no earlier version to go back to.
    world.write("moved/b.yaml", format!("{good}  wrong: ["));
    world.commit("b breaks");
    world.start();
    world.until("a is adopted", |handle| is_ready(handle, &subnet_key("a"))).await;
    world.until("b is undecided", |handle| handle.orphans.borrow().undecided.len() == 2).await;
    let orphans = world.handle().orphans.borrow().clone();
    assert!(orphans.orphans.is_empty() && orphans.approvals.is_empty(), "{orphans:?}");
    assert!(orphans.undecided[0].reason.starts_with("moved/b.yaml does not load"), "{orphans:?}");
    world.write("moved/b.yaml", good);
    world.commit("b is mended");
    world.until("b is adopted", |handle| is_ready(handle, &subnet_key("b"))).await;
    looked_at(&world).await;
    let orphans = world.handle().orphans.borrow().clone();
    assert!(orphans.orphans.is_empty() && orphans.undecided.is_empty(), "{orphans:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_in_git_deletes_exactly_its_orphans_in_order() {
    let mut world = after_a_lost_store().await;
    orphaned(&world, &["b"]).await;
    take_over(&world).await;
    let document = approval(&world.handle());
    let before = world.simulator.calls().len();
    world.write("approvals/b.yaml", document.as_str());
    world.commit("delete b");
    world.until("no orphans", |handle| handle.orphans.borrow().orphans.is_empty()).await;
    looked_at(&world).await;
    let calls = world.simulator.calls();
    let deleted: Vec<&str> =
        calls[before..].iter().filter(|call| call.mutating).map(|call| call.operation.as_str()).collect();
    assert_eq!(deleted, ["DeleteSubnet", "DeleteVpc"]);
    let commit = world.handle().sync.borrow().revision.clone().unwrap().commit.unwrap();
    for call in calls[before..].iter().filter(|call| call.mutating) {
        assert!(call.principal.ends_with(&format!("/fleetwright-{}", &commit[..7])), "{}", call.principal);
    }
    assert!(is_ready(&world.handle(), &subnet_key("a")), "{}", world.picture());
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_was_changed_or_is_for_others_deletes_nothing() {
    let mut world = after_a_lost_store().await;
    orphaned(&world, &["b"]).await;
    let document = approval(&world.handle());
    let before = world.mutating_calls();
    let shorter: Vec<&str> = document.lines().filter(|line| !line.contains(":subnet/")).collect();
    world.write("approvals/shorter.yaml", shorter.join("\n"));
    world.write(
        "approvals/longer.yaml",
        document.replace("  orphans:\n", "  orphans:\n  - \"arn:aws:x 1\"\n").replace("name: ", "name: x"),
    );
    let digest_alone = document.split("  orphans:").next().unwrap().replace("name: ", "name: y");
    world.write("approvals/digest.yaml", digest_alone);
    world.commit("three approvals");
    looked_at(&world).await;
    assert_eq!(world.mutating_calls(), before);
    assert_eq!(listed(&world.handle().orphans.borrow()), keys(&["b"]));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn approved_orphans_stay_while_aws_is_only_observed() {
    let mut world = after_a_lost_store().await;
    orphaned(&world, &["b"]).await;
    world.write("approvals/b.yaml", approval(&world.handle()));
    world.stop().await;
    world.settings.mode = Mode::Observe;
    let before = world.mutating_calls();
    world.commit("delete b");
    world.start();
    orphaned(&world, &["b"]).await;
    looked_at(&world).await;
    assert_eq!(world.mutating_calls(), before);
    let told = |handle: &Handle| {
        let orphans = handle.orphans.borrow();
        let mut deletions = orphans.orphans.iter().filter_map(|orphan| orphan.deletion.clone());
        deletions.any(|deletion| deletion.starts_with("only observed: "))
    };
    assert!(told(&world.handle()), "{:?}", world.handle().orphans.borrow());
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_approved_orphan_that_is_still_used_waits() {
    let mut world = after_a_lost_store().await;
    orphaned(&world, &["b"]).await;
    take_over(&world).await;
    let vpc = |world: &World| {
        let orphans = world.handle().orphans.borrow().clone();
        let vpc = orphans.orphans.into_iter().find(|orphan| orphan.scope.kind.kind == "VPC");
        vpc.map(|vpc| vpc.life)
    };
    let id = vpc(&world).unwrap();
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, REGION));
    let theirs = ec2.create_subnet().vpc_id(&id).cidr_block("10.1.9.0/24").send().await.unwrap();
    world.write("approvals/b.yaml", approval(&world.handle()));
    world.commit("delete b");
    let told = |handle: &Handle| {
        let orphans = handle.orphans.borrow();
        let told = orphans.orphans.iter().find_map(|orphan| orphan.deletion.clone());
        told.is_some_and(|told| told.starts_with("still used: DeleteVpc failed: DependencyViolation"))
    };
    world.until("the VPC is in use", told).await;
    assert_eq!(vpc(&world), Some(id));
    let theirs = theirs.subnet.unwrap().subnet_id.unwrap();
    ec2.delete_subnet().subnet_id(theirs).send().await.unwrap();
    world.until("no orphans", |handle| handle.orphans.borrow().orphans.is_empty()).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_older_life_and_a_second_object_are_orphans_beside_the_one_in_force() {
    let mut world = networks(&["a".to_owned()], RESYNC).await;
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, REGION));
    let tags = |incarnation: &str| {
        let tag = |key: &str, value: &str| aws_sdk_ec2::types::Tag::builder().key(key).value(value).build();
        aws_sdk_ec2::types::TagSpecification::builder()
            .resource_type(aws_sdk_ec2::types::ResourceType::Vpc)
            .tags(tag("fleetwright.dev/fleet", "test"))
            .tags(tag("fleetwright.dev/object", &vpc_key("a")))
            .tags(tag("fleetwright.dev/incarnation", incarnation))
            .build()
    };
    for incarnation in ["0", "1"] {
        let call = ec2.create_vpc().cidr_block("10.9.0.0/16").tag_specifications(tags(incarnation));
        call.send().await.unwrap();
    }
    world.until("two orphans", |handle| handle.orphans.borrow().orphans.len() == 2).await;
    let orphans = world.handle().orphans.borrow().clone();
    let reasons: BTreeSet<String> = orphans
        .orphans
        .iter()
        .map(|orphan| orphan.reason.split(" arn:").next().unwrap().to_owned())
        .collect();
    let expected =
        ["a second object of incarnation 1, beside", "left over from incarnation 0; incarnation 1 is"];
    assert_eq!(reasons, expected.map(str::to_owned).into());
    // The approval takes them and not the one in force, which carries the same tags.
    world.write("approvals/a.yaml", approval(&world.handle()));
    world.commit("delete the others");
    world.until("no orphans", |handle| handle.orphans.borrow().orphans.is_empty()).await;
    looked_at(&world).await;
    assert_eq!(world.mutating_calls()["DeleteVpc"], 2);
    assert!(is_ready(&world.handle(), &subnet_key("a")));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_region_that_the_fleet_has_left_is_looked_at_when_it_is_configured() {
    let mut world = networks(&["a".to_owned()], RESYNC).await;
    lose_the_store(&mut world).await;
    world.remove("nets/a.yaml");
    let moved = world.text("accounts/team.yaml").replace(REGION, "eu-central-1");
    world.write("accounts/team.yaml", moved);
    world.write("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: team}\n");
    world.commit("elsewhere");
    world.start();
    world.until("listed", |handle| handle.orphans.borrow().listed_at.is_some()).await;
    looked_at(&world).await;
    assert_eq!(listed(&world.handle().orphans.borrow()), BTreeSet::new(), "nobody knows of the Region");
    world.stop().await;
    world.sweep_regions = vec![REGION.parse().unwrap()];
    world.start();
    orphaned(&world, &["a"]).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn where_the_fleet_does_not_work_is_no_place_that_cannot_be_listed() {
    let mut world = networks(&[], RESYNC).await;
    world.until("listed without a Region", |handle| handle.orphans.borrow().listed_at.is_some()).await;
    let somewhere = world.text("accounts/team.yaml").replace(REGION, "eu-central-1");
    world.write("accounts/other.yaml", somewhere.replace("name: team", "name: other"));
    world.commit("a Region");
    looked_at(&world).await;
    let orphans = world.handle().orphans.borrow().clone();
    assert!(orphans.unknown.is_empty(), "{:?}", orphans.unknown);
    world.stop().await;
}
