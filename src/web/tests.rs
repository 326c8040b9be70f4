//! The routers as a whole, without sockets; and the listeners, once.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::view::fixture;
use super::*;
use crate::api::{GroupKind, Object};
use crate::config::{Mode, SecretSource};
use crate::plan::orphans::{Orphan, Scope, Unknown};
use crate::redact::{Redactor, mask};

fn snapshot() -> Snapshot {
    snapshot_in(&Holds::none())
}

fn snapshot_in(holds: &Holds) -> Snapshot {
    let objects = fixture::objects();
    let redactor = Redactor::of(objects.iter().map(AsRef::as_ref));
    Snapshot::of(1, &objects, &fixture::sync(), (fixture::now(), 1.0), holds, &redactor)
}

pub(super) fn snapshots() -> watch::Receiver<Arc<Snapshot>> {
    watch::channel(Arc::new(snapshot())).1
}

fn page(listen: &str, token: Option<SecretSource>) -> axum::Router {
    let settings = Page { listen: listen.parse().unwrap(), token };
    page_router(snapshots(), access::Access::of(&settings), CancellationToken::new())
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).header(header::HOST, "localhost:8080").body(Body::empty()).unwrap()
}

async fn send(router: axum::Router, request: Request<Body>) -> Response<Body> {
    router.oneshot(request).await.unwrap()
}

pub(super) async fn text(response: Response<Body>) -> String {
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

const PAYMENTS: &str = "/clusters/team-payments/EksCluster/payments";
const READABLE: [&str; 14] = [
    "/",
    PAYMENTS,
    "/clusters/team-payments/EksCluster/checkout",
    "/clusters/team-payments/EksCluster/ledger",
    "/clusters/team-payments/Vpc/payments-network",
    "/api/v1/fleet",
    "/api/v1/clusters",
    "/api/v1/clusters/team-payments/EksCluster/checkout",
    "/api/v1/objects",
    "/api/v1/objects?kind=Secret&namespace=team-payments",
    "/api/v1/objects/core/Secret/team-payments/hook",
    "/api/v1/objects/ec2.services.k8s.aws/ElasticIPAddress/team-payments/egress",
    "/api/v1/sync",
    "/assets/live.js",
];

#[tokio::test]
async fn no_answer_holds_a_secret() {
    let encoded = STANDARD.encode(fixture::PLANTED);
    for path in READABLE {
        let response = send(page("127.0.0.1:8080", None), get(path)).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let body = text(response).await;
        assert!(!body.contains(fixture::PLANTED) && !body.contains(&encoded), "{path} shows a secret");
    }
    let response =
        send(page("127.0.0.1:8080", None), get("/api/v1/objects/core/Secret/team-payments/hook")).await;
    let secret: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(secret["data"]["token"], Value::from(mask(fixture::PLANTED.as_bytes())));
}

#[tokio::test]
async fn events_hold_no_secret_and_start_with_what_the_reader_lacks() {
    use futures::StreamExt as _;
    let path = format!("/events?page={PAYMENTS}&since=0");
    let response = send(page("127.0.0.1:8080", None), get(&path)).await;
    let first = response.into_body().into_data_stream().next().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert!(first.starts_with("event: whole"), "{first}");
    assert!(first.contains("cluster is CREATING") && !first.contains(fixture::PLANTED));
}

#[tokio::test]
async fn a_daemon_that_only_observes_says_so() {
    for (mode, word) in [(Mode::Observe, "observe"), (Mode::Reconcile, "reconcile")] {
        let snapshot = snapshot_in(&Holds { mode, ..Holds::none() });
        let (_sender, snapshots) = watch::channel(Arc::new(snapshot));
        let ask = |path: &'static str| {
            let access = access::Access::of(&free().page);
            let router = page_router(snapshots.clone(), access, CancellationToken::new());
            async move { text(send(router, get(path)).await).await }
        };
        for path in ["/", PAYMENTS] {
            assert_eq!(ask(path).await.contains("AWS is not changed"), mode == Mode::Observe, "{path}");
        }
        let sync: Value = serde_json::from_str(&ask("/api/v1/sync").await).unwrap();
        assert_eq!(sync["mode"], word);
    }
}

#[tokio::test]
async fn the_page_says_of_a_change_that_waits_that_it_does() {
    let frozen = "frozen: everything is frozen by ann";
    let held = |object: &Arc<Object>| {
        let mut value = object.to_value();
        value["status"]["conditions"] = serde_json::json!([
            {"type": "Ready", "status": "False", "reason": "Frozen", "message": format!("would do: CreateTags; {frozen}")},
            {"type": "ChangesHeld", "status": "True", "reason": "Frozen", "message": frozen}]);
        value["status"]["fleetwright"]["plan"] = serde_json::json!(["CreateTags"]);
        Arc::new(Object::from_value(value).unwrap())
    };
    let objects: Vec<_> = fixture::objects()
        .iter()
        .map(|object| {
            let planned = object.kind == "ElasticIPAddress"
                || object.kind == "Nodegroup" && object.metadata.name == "checkout";
            if planned { held(object) } else { object.clone() }
        })
        .collect();
    let redactor = Redactor::of(objects.iter().map(AsRef::as_ref));
    let snapshot =
        Snapshot::of(1, &objects, &fixture::sync(), (fixture::now(), 1.0), &Holds::none(), &redactor);
    let (_sender, snapshots) = watch::channel(Arc::new(snapshot));
    let ask = async |path: &str| {
        let access = access::Access::of(&free().page);
        text(send(page_router(snapshots.clone(), access, CancellationToken::new()), get(path)).await).await
    };
    let page = ask("/").await;
    assert!(!page.contains("all is as Git wants it"), "nothing of the fixture is");
    assert!(page.matches(frozen).count() >= 2 && page.contains("a change waits: Nodegroup"), "{page}");
    let page = ask("/clusters/team-payments/EksCluster/checkout").await;
    assert!(!page.contains("Everything is as Git wants it") && page.contains("a change waits"), "{page}");
    assert!(page.contains("box paused"), "{page}");
}

#[tokio::test]
async fn nothing_of_a_repository_steers_what_shows_it() {
    const STEERING: &str = "\u{1b}[31m\u{202e}eman\u{85}\u{e0041}";
    let mut sync = fixture::sync();
    sync.revision.as_mut().unwrap().message = STEERING.into();
    sync.held[0].reason = STEERING.into();
    sync.error = Some(STEERING.into());
    let objects = fixture::objects().into_iter().map(|object| {
        let mut value = object.to_value();
        if object.kind == "EksCluster" {
            value["metadata"]["annotations"]["note"] = STEERING.into();
            value["status"]["conditions"][0]["message"] = STEERING.into();
        }
        Arc::new(Object::from_value(value).unwrap())
    });
    let objects: Vec<_> = objects.collect();
    let redactor = Redactor::of(objects.iter().map(AsRef::as_ref));
    let snapshot = Snapshot::of(1, &objects, &sync, (fixture::now(), 1.0), &Holds::none(), &redactor);
    let (_sender, snapshots) = watch::channel(Arc::new(snapshot));
    let events = format!("/events?page={PAYMENTS}&since=0");
    for path in READABLE.into_iter().chain([events.as_str(), "/nowhere/%E2%80%AE"]) {
        let access = access::Access::of(&free().page);
        let router = page_router(snapshots.clone(), access, CancellationToken::new());
        let response = send(router, get(path)).await;
        let body = if path.starts_with("/events") {
            use futures::StreamExt as _;
            let first = response.into_body().into_data_stream().next().await.unwrap().unwrap();
            String::from_utf8(first.to_vec()).unwrap()
        } else {
            text(response).await
        };
        let steering = body.chars().find(|c| !matches!(c, '\n' | '\t') && crate::diagnostic::steers(*c));
        assert_eq!(steering, None, "{path}");
        if path == "/" {
            assert!(body.contains(r"\u{1b}[31m\u{202e}eman"), "{body}");
        }
    }
}

#[tokio::test]
async fn only_reading_is_possible() {
    for path in ["/", PAYMENTS, "/events", "/api/v1/fleet", "/api/v1/objects/core/Secret/team-payments/hook"]
    {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let mut request = get(path);
            *request.method_mut() = method.parse().unwrap();
            let response = send(page("127.0.0.1:8080", None), request).await;
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    for path in ["/", "/nowhere", "/api/v1/nowhere", "/assets/style.css"] {
        let response = send(page("127.0.0.1:8080", None), get(path)).await;
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'self'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}

#[tokio::test]
async fn nothing_inline_needs_an_exception_from_the_policy() {
    for path in ["/", PAYMENTS] {
        let body = text(send(page("127.0.0.1:8080", None), get(path)).await).await;
        assert!(
            !body.contains(" style=") && !body.contains("<script>") && !body.contains(" onclick="),
            "{path}"
        );
        for address in body.split(['"', '\'']).filter(|text| text.starts_with("http")) {
            let known = address.starts_with("https://eu-central-1.console.aws.amazon.com/")
                || address == "http://www.w3.org/2000/svg";
            assert!(known, "{path} leads to {address}");
        }
    }
}

#[tokio::test]
async fn errors_of_the_api_are_json() {
    for (path, status) in [
        ("/api/v1/objects/core/Secret/team-payments/none", 404),
        ("/api/v1/clusters/a/b/c", 404),
        ("/api/v2/fleet", 404),
        ("/api/v1/objects?sort=name", 400),
    ] {
        let response = send(page("127.0.0.1:8080", None), get(path)).await;
        assert_eq!(response.status(), status, "{path}");
        let body: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(body["error"]["status"], status, "{path}");
    }
}

#[tokio::test]
async fn a_rebound_name_gets_nothing_from_loopback() {
    for (host, status) in [
        ("localhost:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("fleet.localhost", 200),
        ("evil.example.com", 421),
        ("127.0.0.1.evil.example.com:8080", 421),
        ("10.0.0.1", 421),
    ] {
        let mut request = get("/api/v1/fleet");
        request.headers_mut().insert(header::HOST, host.parse().unwrap());
        assert_eq!(send(page("127.0.0.1:8080", None), request).await.status(), status, "{host}");
    }
    let mut request = get("/");
    request.headers_mut().remove(header::HOST);
    assert_eq!(send(page("127.0.0.1:8080", None), request).await.status(), 421);
}

#[tokio::test]
async fn a_token_opens_the_page_as_bearer_and_as_password() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "reader-token\n").unwrap();
    let source = SecretSource::File(file.path().to_owned());
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    for (authorization, status) in [
        (None, 401),
        (Some("Bearer reader-token".to_owned()), 200),
        (Some("bearer reader-token".to_owned()), 200),
        (Some("Bearer wrong".to_owned()), 401),
        (Some("Bearer ".to_owned()), 401),
        (Some(basic("anyone:reader-token")), 200),
        (Some(basic("reader-token:")), 401),
        (Some("Basic %%%".to_owned()), 401),
    ] {
        let mut request = get("/");
        request.headers_mut().insert(header::HOST, "fleet.example.com".parse().unwrap());
        if let Some(authorization) = &authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.parse().unwrap());
        }
        let response = send(page("0.0.0.0:8080", Some(source.clone())), request).await;
        assert_eq!(response.status(), status, "{authorization:?}");
    }
    // A rotated token needs no restart, and a lost one closes the page.
    let router = page("0.0.0.0:8080", Some(source));
    std::fs::write(file.path(), "rotated").unwrap();
    let with = |token: &str| {
        let mut request = get("/");
        request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        request
    };
    assert_eq!(send(router.clone(), with("reader-token")).await.status(), 401);
    assert_eq!(send(router.clone(), with("rotated")).await.status(), 200);
    drop(file);
    assert_eq!(send(router, with("rotated")).await.status(), 503);
}

#[tokio::test]
async fn health_and_metrics() {
    let (syncing, sync) = watch::channel(SyncState {
        error: Some("the remote does not answer\nat all".into()),
        ..SyncState::default()
    });
    let (_held, holds) = watch::channel(Holds::none());
    let queues: QueueDepths = Arc::new(|| vec![("resources", 3, 2)]);
    let router = metrics::router(Arc::new(Metrics::new()), snapshots(), sync, holds, Some(queues));
    let status = |path: &'static str| {
        let router = router.clone();
        async move { send(router, get(path)).await.status() }
    };
    assert_eq!(
        (status("/healthz").await, status("/readyz").await),
        (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE)
    );
    let body = text(send(router.clone(), get("/readyz")).await).await;
    assert!(body.starts_with("no revision is in force yet\nThe source is not followed"), "{body}");
    let error = syncing.borrow().error.clone();
    syncing.send_replace(SyncState { error, ..fixture::sync() });
    assert_eq!((status("/healthz").await, status("/readyz").await), (StatusCode::OK, StatusCode::OK));
    for (path, word) in [("/healthz", "ok"), ("/readyz", "ready")] {
        assert_eq!(
            text(send(router.clone(), get(path)).await).await,
            format!(
                "{word}\nThe source is not followed, the revision in force stays: the remote does not answer\n\
                 Waits for an approval: 1 removal.\nIn trouble: 1 AWS resource.\n"
            )
        );
    }
    let mut held = Holds::none();
    held.accounts.insert("222222222222".parse().unwrap(), "another daemon works here".into());
    let of_held = metrics::router(
        Arc::new(Metrics::new()),
        watch::channel(Arc::new(snapshot_in(&held))).1,
        watch::channel(fixture::sync()).1,
        watch::channel(held).1,
        None,
    );
    let page = text(send(of_held.clone(), get("/metrics")).await).await;
    assert!(page.contains("fleetwright_accounts_held{account=\"222222222222\"} 1\n"), "{page}");
    let health = text(send(of_held, get("/healthz")).await).await;
    assert!(health.contains("222222222222 is not changed: another daemon works here"), "{health}");
    let page = text(send(router, get("/metrics")).await).await;
    for line in [
        "fleetwright_clusters{state=\"ready\"} 1",
        "fleetwright_clusters{state=\"progressing\"} 1",
        "fleetwright_clusters{state=\"trouble\"} 1",
        "fleetwright_clusters{state=\"deleting\"} 0",
        "fleetwright_objects{kind=\"Cluster.eks.services.k8s.aws\",ready=\"false\"} 1",
        "fleetwright_sync_last_success_timestamp_seconds 1772446032",
        "fleetwright_sync_errors 1",
        "fleetwright_held_removals 1",
        "fleetwright_queue_depth{controller=\"resources\",state=\"waiting\"} 3",
        "fleetwright_build_info{version=",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"));
}

/// One orphan, one object of which nobody can tell, one place that cannot be looked at.
fn orphans() -> Orphans {
    let scope = |kind: &str| Scope {
        account: "222222222222".parse().unwrap(),
        region: "eu-west-1".parse().unwrap(),
        kind: GroupKind::new("ec2.services.k8s.aws", kind),
    };
    let orphan = |kind: &str, reason: &str| Orphan {
        scope: scope(kind),
        arn: format!("arn:of:{kind}"),
        life: "id-1".into(),
        object: None,
        incarnation: Some(1),
        since: fixture::now(),
        reason: reason.into(),
        deletion: None,
    };
    let unknown = Unknown { scope: scope("Subnet"), message: "not <authorized>".into() };
    let orphans = vec![orphan("VPC", "nothing in force stands for it")];
    Orphans::of(orphans, vec![orphan("RouteTable", "nets/b.yaml does not load")], vec![unknown])
}

#[tokio::test]
async fn orphans_stand_on_the_page_in_the_api_and_in_the_metrics() {
    let snapshot = Snapshot { orphans: orphans(), ..snapshot() };
    let snapshots = watch::channel(Arc::new(snapshot)).1;
    let page = text(send(page::router(snapshots.clone(), CancellationToken::new()), get("/")).await).await;
    for part in [
        "1 orphan in AWS",
        "arn:of:VPC",
        "kind: Approval",
        "nets/b.yaml does not load",
        "not &lt;authorized&gt;",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let answer = text(send(api::router(snapshots.clone()), get("/api/v1/orphans")).await).await;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["orphans"][0]["kind"], "VPC.ec2.services.k8s.aws");
    assert_eq!(
        (&answer["orphans"][0]["account"], &answer["unknown"][0]["region"]),
        (&"222222222222".into(), &"eu-west-1".into())
    );
    let (sync, holds) = (watch::channel(fixture::sync()).1, watch::channel(Holds::none()).1);
    let router = metrics::router(Arc::new(Metrics::new()), snapshots, sync, holds, None);
    let page = text(send(router, get("/metrics")).await).await;
    for line in [
        "fleetwright_orphans{account=\"222222222222\",region=\"eu-west-1\",kind=\"VPC.ec2.services.k8s.aws\"} 1",
        "fleetwright_orphans_unknown{account=\"222222222222\",region=\"eu-west-1\",kind=\"Subnet.ec2.services.k8s.aws\"} 1",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

fn inputs() -> (Inputs, watch::Sender<u64>, watch::Sender<SyncState>) {
    let mirror = Arc::new(Mirror::default());
    mirror.reset(fixture::objects());
    let (changed_sender, changed) = watch::channel(0);
    let (sync_sender, sync) = watch::channel(fixture::sync());
    let clock = Clock::starting_at(fixture::now(), 1.0);
    let holds = watch::channel(Holds::none()).1;
    let orphans = watch::channel(orphans()).1;
    let inputs =
        Inputs { mirror, changed, sync, trigger: Trigger::default(), clock, queues: None, holds, orphans };
    (inputs, changed_sender, sync_sender)
}

fn free() -> Settings {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    Settings {
        webhook: Webhook { listen: any, github: None, generic: None },
        page: Page { listen: any, token: None },
        metrics: any,
    }
}

#[tokio::test]
async fn a_taken_address_is_named_with_its_key() {
    let (inputs, ..) = inputs();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = free();
    settings.metrics = taken.local_addr().unwrap();
    let error = serve(inputs, settings, CancellationToken::new()).await.unwrap_err().to_string();
    assert!(
        error.contains("`metrics.listen`") && error.contains(&taken.local_addr().unwrap().to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn a_change_is_published_and_serving_ends_with_its_token() {
    let (inputs, changed, _sync) = inputs();
    let publisher = publish::Publisher::new(&inputs);
    let mut seen = publisher.snapshots();
    let stop = CancellationToken::new();
    let running = tokio::spawn(publisher.run(stop.clone()));
    let egress = fixture::objects().into_iter().find(|object| object.kind == "ElasticIPAddress").unwrap();
    inputs.mirror.remove(&egress.key());
    changed.send_modify(|count| *count += 1);
    seen.changed().await.unwrap();
    assert!(seen.borrow().fleet.resources.is_empty() && seen.borrow().version == 2);
    stop.cancel();
    running.await.unwrap();

    let stop = CancellationToken::new();
    let serving = serve(inputs, free(), stop.clone()).await.unwrap();
    assert!(serving.page_addr.port() > 0 && serving.page_addr != serving.webhook_addr);
    stop.cancel();
    serving.finished().await;
}
