//! Deliveries, good and bad, and what they set off.

use axum::body::Body;
use axum::http::Request;
use tower::ServiceExt as _;

use super::*;
use crate::web::tests::{snapshots, text};

const SECRET: &str = "It's a Secret to Everybody";
/// GitHub's documented example: this secret and `Hello, World!` (docs, "Validating webhook deliveries").
const EXAMPLE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
const AFTER: &str = "9c2b1a7be0d2d5c2a1b0c9d8e7f6a5b4c3d2e1ff";

#[test]
fn the_documented_example_verifies_and_nothing_else_does() {
    let secret = Secret::new(SECRET);
    assert!(is_signed(&secret, b"Hello, World!", EXAMPLE));
    let upper = EXAMPLE.replace("757107ea", "757107EA");
    for (body, given) in [
        ("Hello, World", EXAMPLE),
        ("Hello, World!", &EXAMPLE[7..]),
        ("Hello, World!", "sha256="),
        ("Hello, World!", "sha256=75710"),
        ("Hello, World!", "sha256=zz7107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        ("Hello, World!", &EXAMPLE[..EXAMPLE.len() - 2]),
        ("Hello, World!", &EXAMPLE.replace("sha256", "sha1")),
    ] {
        assert!(!is_signed(&secret, body.as_bytes(), given), "{body} {given}");
    }
    assert!(is_signed(&secret, b"Hello, World!", &upper));
    assert!(!is_signed(&Secret::new("other"), b"Hello, World!", EXAMPLE));
}

struct Bench {
    router: Router,
    metrics: Arc<Metrics>,
    files: Vec<tempfile::NamedTempFile>,
}

fn bench(github: bool, generic: bool) -> Bench {
    let mut files = Vec::new();
    let mut source = |wanted: bool, value: &str| {
        wanted.then(|| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), value).unwrap();
            let source = SecretSource::File(file.path().to_owned());
            files.push(file);
            source
        })
    };
    let settings = Webhook {
        listen: "127.0.0.1:0".parse().unwrap(),
        github: source(github, SECRET),
        generic: source(generic, "sender-token"),
    };
    let metrics = Arc::new(Metrics::new());
    let router = router(&settings, Trigger::default(), snapshots(), metrics.clone());
    Bench { router, metrics, files }
}

fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

fn push(id: &str) -> Request<Body> {
    github_event("push", id, format!(r#"{{"ref": "refs/heads/main", "after": "{AFTER}", "commits": []}}"#))
}

fn github_event(event: &str, id: &str, body: String) -> Request<Body> {
    Request::post("/webhook/github")
        .header("x-github-event", event)
        .header("x-github-delivery", id)
        .header("x-hub-signature-256", sign(body.as_bytes()))
        .body(body.into())
        .unwrap()
}

impl Bench {
    async fn send(&self, request: Request<Body>) -> (u16, serde_json::Value) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&text(response).await).unwrap_or_default())
    }

    fn counted(&self, outcome: &str) -> bool {
        let page = self.metrics.render(&snapshots().borrow(), &[]);
        page.contains(&format!("fleetwright_webhook_deliveries_total{{outcome=\"{outcome}\"}} 1"))
    }
}

#[tokio::test]
async fn a_push_asks_the_source_once_and_its_replay_does_not() {
    let settings_secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(settings_secret.path(), SECRET).unwrap();
    let settings = Webhook {
        listen: "127.0.0.1:0".parse().unwrap(),
        github: Some(SecretSource::File(settings_secret.path().to_owned())),
        generic: None,
    };
    let metrics = Arc::new(Metrics::new());
    let (fetches, mut fetched) = tokio::sync::mpsc::unbounded_channel();
    let source = Arc::new(Counting(fetches));
    let clock = crate::clock::Clock::real();
    let never = Duration::from_secs(3600);
    let options = crate::git::PollerOptions { interval: never, first_backoff: never, max_backoff: never };
    let random = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
    let poller = crate::git::Poller::new(source, options, clock, random);
    let bench = Bench {
        router: router(&settings, poller.trigger(), snapshots(), metrics.clone()),
        metrics,
        files: vec![settings_secret],
    };
    let (found, _keep) = tokio::sync::mpsc::channel(8);
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(poller.run(found, stop.clone()));
    fetched.recv().await.unwrap();

    let (status, answer) = bench.send(push("d-1")).await;
    assert_eq!(status, 202);
    assert_eq!(answer["inForce"], "4f1c9a7be0d2d5c2a1b0c9d8e7f6a5b4c3d2e1f0");
    assert_eq!(answer["after"], AFTER);
    tokio::time::timeout(Duration::from_secs(5), fetched.recv()).await.unwrap().unwrap();

    let (status, answer) = bench.send(push("d-1")).await;
    assert_eq!((status, answer["message"].as_str()), (200, Some("this delivery was taken before")));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fetched.try_recv().is_err(), "a replay asked the source");
    assert_eq!(bench.send(push("d-2")).await.0, 202);
    assert!(bench.counted("replayed"));
    stop.cancel();
    running.await.unwrap();
}

#[derive(Debug)]
struct Counting(tokio::sync::mpsc::UnboundedSender<()>);

#[async_trait::async_trait]
impl crate::git::Source for Counting {
    fn describe(&self) -> String {
        "counting".into()
    }

    async fn fetch(&self) -> Result<crate::git::Revision, crate::git::SourceError> {
        self.0.send(()).unwrap();
        Err(crate::git::SourceError::Deadline { remote: "counting".into(), limit: Duration::ZERO })
    }

    async fn history(
        &self,
        _: &crate::api::CommitId,
        _: &str,
        _: usize,
    ) -> Result<Vec<crate::git::FileVersion>, crate::git::SourceError> {
        Ok(Vec::new())
    }

    async fn descends_from(
        &self,
        _: &crate::api::CommitId,
        _: &crate::api::CommitId,
    ) -> Result<bool, crate::git::SourceError> {
        Ok(true)
    }
}

#[tokio::test]
async fn the_signature_comes_before_the_content() {
    let bench = bench(true, false);
    let mut request = push("d-1");
    request.headers_mut().remove("x-hub-signature-256");
    assert_eq!(bench.send(request).await.0, 401);
    let forged =
        Request::post("/webhook/github").header("x-hub-signature-256", EXAMPLE).body("not json".into());
    assert_eq!(bench.send(forged.unwrap()).await.0, 401, "not 400: it was not parsed");
    // A forged delivery must not use up the id of the real one.
    let mut forged = push("d-1");
    forged.headers_mut().insert("x-hub-signature-256", EXAMPLE.parse().unwrap());
    assert_eq!(bench.send(forged).await.0, 401);
    assert_eq!(bench.send(push("d-1")).await.0, 202);
    assert_eq!(bench.send(github_event("push", "d-2", "payload=%7B%7D".into())).await.0, 400);
}

#[tokio::test]
async fn pings_are_answered_and_other_events_do_nothing() {
    let bench = bench(true, false);
    assert_eq!(bench.send(github_event("ping", "d-1", r#"{"zen": "x"}"#.into())).await.1["message"], "pong");
    assert_eq!(bench.send(github_event("issues", "d-2", "{}".into())).await.0, 200);
    assert!(bench.counted("ping") && bench.counted("ignored"));
}

#[tokio::test]
async fn a_body_over_the_cap_is_refused_unread() {
    let bench = bench(true, true);
    let large = vec![b' '; MAX_BODY + 1];
    let request = Request::post("/webhook/github").body(Body::from(large.clone())).unwrap();
    assert_eq!(bench.send(request).await.0, 413, "without a length");
    let request = Request::post("/webhook/generic").header("content-length", large.len()).body(Body::empty());
    assert_eq!(bench.send(request.unwrap()).await.0, 413, "by its length alone");
    let fits = github_event("push", "d-1", format!("{{}}{}", " ".repeat(MAX_BODY - 2)));
    assert_eq!(bench.send(fits).await.0, 202);
}

#[tokio::test]
async fn a_generic_sender_brings_its_token() {
    let bench = bench(false, true);
    let delivery = |token: &str, id: Option<&str>| {
        let mut request =
            Request::post("/webhook/generic").header("authorization", format!("Bearer {token}"));
        if let Some(id) = id {
            request = request.header("x-delivery-id", id);
        }
        request.body(Body::empty()).unwrap()
    };
    assert_eq!(bench.send(delivery("wrong", None)).await.0, 401);
    assert_eq!(bench.send(delivery("sender-token", None)).await.0, 202);
    assert_eq!(bench.send(delivery("sender-token", None)).await.0, 202, "without ids nothing is a replay");
    assert_eq!(bench.send(delivery("sender-token", Some("1"))).await.0, 202);
    assert_eq!(bench.send(delivery("sender-token", Some("1"))).await.0, 200);
}

#[tokio::test]
async fn a_receiver_without_a_secret_does_not_exist() {
    let bench = bench(false, true);
    assert_eq!(bench.send(push("d-1")).await.0, 404);
    let request = Request::get("/webhook/generic").body(Body::empty()).unwrap();
    assert_eq!(bench.send(request).await.0, 405);
}

#[tokio::test]
async fn a_lost_secret_closes_the_receiver() {
    let mut bench = bench(true, false);
    bench.files.clear();
    assert_eq!(bench.send(push("d-1")).await.0, 503);
}

#[test]
fn the_memory_of_deliveries_is_bounded() {
    let mut deliveries = Deliveries::default();
    for number in 0..=REMEMBERED {
        assert!(deliveries.take(&number.to_string()));
    }
    assert_eq!((deliveries.order.len(), deliveries.known.len()), (REMEMBERED, REMEMBERED));
    assert!(!deliveries.take(&REMEMBERED.to_string()), "the newest is known");
    assert!(deliveries.take("0"), "the oldest is forgotten");
}
