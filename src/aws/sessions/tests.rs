//! Sessions against a Security Token Service of a few lines.

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;

use super::*;
use crate::aws::ErrorClass;

/// Answers AssumeRole and GetCallerIdentity, and writes down what was asked.
#[derive(Debug, Clone, Default)]
struct Sts {
    calls: Arc<Mutex<Vec<BTreeMap<String, String>>>>,
    account: Option<&'static str>,
    /// Code and message with which DescribeVpcs is refused.
    refusal: &'static str,
}

impl HttpConnector for Sts {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let form: BTreeMap<String, String> =
            serde_urlencoded::from_bytes(request.body().bytes().unwrap_or_default()).unwrap();
        let account = self.account.unwrap_or("111122223333");
        if form["Action"] == "DescribeVpcs" {
            let body = format!("<Response><Errors><Error>{}</Error></Errors></Response>", self.refusal);
            return HttpConnectorFuture::ready(Ok(HttpResponse::new(
                400.try_into().unwrap(),
                SdkBody::from(body),
            )));
        }
        let body = match form["Action"].as_str() {
            "AssumeRole" => "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA1</AccessKeyId>\
                 <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
                 <Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
                .to_owned(),
            _ => format!(
                "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>{account}</Account>\
                 </GetCallerIdentityResult></GetCallerIdentityResponse>"
            ),
        };
        self.calls.lock().unwrap().push(form);
        HttpConnectorFuture::ready(Ok(HttpResponse::new(200.try_into().unwrap(), SdkBody::from(body))))
    }
}

impl Sts {
    fn sessions(&self) -> Sessions {
        self.sessions_of(LIFETIME)
    }

    fn sessions_of(&self, role_session: Duration) -> Sessions {
        let connector = SharedHttpConnector::new(self.clone());
        let settings = SessionSettings {
            endpoint: Some("http://127.0.0.1:1".into()),
            http_client: Some(http_client_fn(move |_, _| connector.clone())),
            credentials: BaseCredentials::Fixed(Credentials::new("AKIA1", "s", None, None, "test")),
            own_account: None,
            role_session,
        };
        Sessions::new(settings, Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0))
    }

    fn asked(&self, action: &str) -> Vec<BTreeMap<String, String>> {
        self.calls.lock().unwrap().iter().filter(|form| form["Action"] == action).cloned().collect()
    }
}

fn role() -> RoleChoice {
    RoleChoice::Assume {
        arn: "arn:aws:iam::111122223333:role/fleet".parse().unwrap(),
        external_id: Some("word".into()),
    }
}

fn region(name: &str) -> Region {
    name.parse().unwrap()
}

fn commit(digit: char) -> CommitId {
    digit.to_string().repeat(40).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_role_is_assumed_once_per_purpose_and_carries_the_commit() {
    let sts = Sts::default();
    let sessions = sts.sessions();
    let (frankfurt, dublin) = (region("eu-central-1"), region("eu-west-1"));
    let role_of = role();
    let both = tokio::join!(sessions.read(&role_of, &frankfurt), sessions.read(&role_of, &frankfurt));
    assert_eq!(both.0.unwrap().account().as_str(), "111122223333");
    both.1.unwrap();
    sessions.read(&role(), &dublin).await.unwrap();
    for _ in 0..2 {
        sessions.mutate(&role(), &frankfurt, Some(&commit('a'))).await.unwrap();
    }
    sessions.mutate(&role(), &frankfurt, Some(&commit('b'))).await.unwrap();
    let assumed = sts.asked("AssumeRole");
    let names: Vec<&str> = assumed.iter().map(|form| form["RoleSessionName"].as_str()).collect();
    assert_eq!(names, ["fleetwright-read", "fleetwright-aaaaaaa", "fleetwright-bbbbbbb"]);
    assert!(assumed.iter().all(|form| form["ExternalId"] == "word"));
}

#[tokio::test(start_paused = true)]
async fn the_own_identity_is_asked_once_for_every_purpose() {
    let sts = Sts::default();
    let sessions = sts.sessions();
    sessions.read(&RoleChoice::Own, &region("eu-central-1")).await.unwrap();
    sessions.mutate(&RoleChoice::Own, &region("eu-central-1"), Some(&commit('a'))).await.unwrap();
    assert_eq!(sts.asked("GetCallerIdentity").len(), 1);
    assert!(sts.asked("AssumeRole").is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_account_than_the_expected_one_blocks_and_is_asked_again() {
    let sts = Sts { account: Some("999900001111"), ..Sts::default() };
    let sessions = sts.sessions();
    for _ in 0..2 {
        let error = sessions.read(&role(), &region("eu-central-1")).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Blocked);
        assert!(error.message.contains("999900001111") && error.message.contains("111122223333"), "{error}");
    }
    assert_eq!(sts.asked("AssumeRole").len(), 2, "a wrong identity is not kept");
}

#[tokio::test(start_paused = true)]
async fn credentials_are_renewed_before_they_end() {
    let sts = Sts::default();
    let sessions = sts.sessions();
    for (sleep, assumed) in [(0, 1), (2940, 1), (120, 2)] {
        tokio::time::sleep(Duration::from_secs(sleep)).await;
        sessions.read(&role(), &region("eu-central-1")).await.unwrap();
        assert_eq!(sts.asked("AssumeRole").len(), assumed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_lasts_as_long_as_it_is_set_to() {
    // Of 15 minutes a third is kept as a reserve, of 12 hours ten minutes.
    for (minutes, fresh_after, over_after) in [(15, 9, 2), (720, 709, 2)] {
        let sts = Sts::default();
        let sessions = sts.sessions_of(Duration::from_secs(minutes * 60));
        for (sleep, assumed) in [(0, 1), (fresh_after, 1), (over_after, 2)] {
            tokio::time::sleep(Duration::from_secs(sleep * 60)).await;
            sessions.read(&role(), &region("eu-central-1")).await.unwrap();
            let asked = sts.asked("AssumeRole");
            assert_eq!(asked.len(), assumed, "{minutes}");
            assert_eq!(asked[0]["DurationSeconds"], (minutes * 60).to_string());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ended_credentials_are_replaced_once() {
    let sts = Sts::default();
    let sessions = sts.sessions();
    let tries = Mutex::new(0);
    let work = |_session: Session| {
        *tries.lock().unwrap() += 1;
        async {
            Err::<(), _>(AwsError {
                class: ErrorClass::Transient,
                operation: "DescribeVpcs",
                code: "ExpiredToken".into(),
                message: String::new(),
                request_id: None,
            })
        }
    };
    sessions.with(&role(), &region("eu-central-1"), &Purpose::Read, work).await.unwrap_err();
    assert_eq!(*tries.lock().unwrap(), 2);
    assert_eq!(sts.asked("AssumeRole").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_a_policy_denies_something_is_replaced_once_a_minute() {
    let refusal = "<Code>UnauthorizedOperation</Code><Message>not authorized to perform: ec2:DescribeVpcs with an \
                   explicit deny in an identity-based policy</Message>";
    let sts = Sts { refusal, ..Sts::default() };
    let sessions = sts.sessions();
    for (sleep, assumed) in [(0, 1), (30, 1), (30, 2), (1, 2), (60, 3)] {
        tokio::time::sleep(Duration::from_secs(sleep)).await;
        let session = sessions.read(&role(), &region("eu-central-1")).await.unwrap();
        assert_eq!(sts.asked("AssumeRole").len(), assumed);
        session.ec2().describe_vpcs().send().await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_a_service_refuses_are_not_handed_out_again() {
    let sts = Sts { refusal: "<Code>RequestExpired</Code><Message>over</Message>", ..Sts::default() };
    let sessions = sts.sessions();
    let session = sessions.read(&role(), &region("eu-central-1")).await.unwrap();
    session.ec2().describe_vpcs().send().await.unwrap_err();
    sessions.read(&role(), &region("eu-west-1")).await.unwrap();
    assert_eq!(sts.asked("AssumeRole").len(), 2);
    sessions.read(&role(), &region("eu-central-1")).await.unwrap();
    assert_eq!(sts.asked("AssumeRole").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn sessions_for_changes_are_bounded_and_reads_stay() {
    let sts = Sts::default();
    let sessions = sts.sessions();
    let here = region("eu-central-1");
    sessions.read(&role(), &here).await.unwrap();
    for number in 0..CHANGE_SESSIONS + 8 {
        let commit: CommitId = format!("{number:040x}").parse().unwrap();
        sessions.mutate(&role(), &here, Some(&commit)).await.unwrap();
    }
    let kept = sessions.slots.lock().unwrap().entries.len();
    assert_eq!(kept, CHANGE_SESSIONS + 1);
    sessions.read(&role(), &here).await.unwrap();
    let reads =
        sts.asked("AssumeRole").iter().filter(|form| form["RoleSessionName"] == "fleetwright-read").count();
    assert_eq!(reads, 1);
}
