use super::*;

const SMALLEST: &str = "fleet: {id: demo}\nsource: {directory: {path: fleet}}\n";

fn valid(text: &str) -> Config {
    Config::parse("etc/fleetwright.yaml", text).unwrap_or_else(|findings| panic!("{}", lines(&findings)))
}

fn findings(text: &str) -> String {
    lines(&Config::parse("c.yaml", text).expect_err("the configuration is wrong"))
}

/// The smallest configuration with more lines at its end.
fn with(more: &str) -> String {
    format!("{SMALLEST}{more}\n")
}

#[test]
fn the_smallest_configuration_has_defaults_for_the_rest() {
    insta::assert_debug_snapshot!(valid(SMALLEST), @r"");
}

#[test]
fn every_key_is_read() {
    let config = valid(
        "fleet: {id: prod, defaultNamespace: clusters}
source:
  git:
    url: https://git.example.com/team/fleet.git
    revision: tag:v1
    path: /clusters/
    poll: 1m30s
    timeout: 500s
    auth: {usernameFile: user, tokenEnv: GIT_TOKEN}
data: {directory: /var/lib/fleetwright}
aws:
  endpointUrl: http://[::1]:4566/x
  defaultRegion: eu-central-1
  useOwnRoleIn: ['012345678901']
  roleSessionDuration: 15m
clock: {speed: 100}
mode: observe
unmanagedKinds: store
protection: {clusters: false, vpcs: false, keys: false}
guard: {maxRemovals: 1, maxPercent: 0}
resync: {interval: 1h}
webhook: {listen: '0.0.0.0:1', github: {secretEnv: HOOK}, generic: {tokenFile: /run/token}}
page: {listen: '0.0.0.0:2', tokenFile: page-token}
metrics: {listen: '[::]:3'}
kubernetes: {kubeconfig: kube, context: hub}
export: {directory: out}
log: {format: json, level: 'warn,fleetwright=debug'}
",
    );
    insta::assert_debug_snapshot!(config, @r"");
}

#[test]
fn revisions_say_what_they_are() {
    let revision = |text: &str| {
        let source = format!("fleet: {{id: a}}\nsource: {{git: {{url: /srv/fleet, revision: '{text}'}}}}\n");
        match Config::parse("c.yaml", &source).map(|config| config.source) {
            Ok(Source::Git(git)) => Ok(git.revision),
            Ok(Source::Directory(_)) => panic!("no directory was asked for"),
            Err(findings) => Err(lines(&findings)),
        }
    };
    assert_eq!(revision("main"), Ok(GitRevision::Branch("main".into())));
    assert_eq!(revision("branch:a/b"), Ok(GitRevision::Branch("a/b".into())));
    assert_eq!(revision("tag:v1"), Ok(GitRevision::Tag("v1".into())));
    assert_eq!(revision("ref:refs/pull/1/head"), Ok(GitRevision::Reference("refs/pull/1/head".into())));
    let commit = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(revision(&format!("commit:{commit}")), Ok(GitRevision::Commit(commit.parse().unwrap())));
    insta::assert_snapshot!(revision("commit:abc").unwrap_err(), @r"");
    insta::assert_snapshot!(revision("branch:a b").unwrap_err(), @r"");
    insta::assert_snapshot!(revision("head:x").unwrap_err(), @r"");
}

#[test]
fn mistakes_name_key_place_and_help() {
    insta::assert_snapshot!(findings(""), @r"");
    insta::assert_snapshot!(findings("[a]"), @r"");
    insta::assert_snapshot!(findings("fleet: [\n"), @r"");
    insta::assert_snapshot!(findings("fleet: {id: a, id: b}\n"), @r"");
    insta::assert_snapshot!(findings(&with("---\na: 1")), @r"");
    insta::assert_snapshot!(findings(&with("gard: {}\nelephant: 1")), @r"");
    insta::assert_snapshot!(findings(&with("guard: {maxRemoval: 3}")), @r"");
    insta::assert_snapshot!(findings(&with("guard: 3")), @r"");
    insta::assert_snapshot!(findings(&with("guard: {maxRemovals: -1, maxPercent: 101}")), @r"");
    insta::assert_snapshot!(findings(&with("resync: {interval: 10}")), @r"");
    insta::assert_snapshot!(findings(&with("resync: {interval: 10 minutes}")), @r"");
    insta::assert_snapshot!(findings(&with("resync: {interval: 1s}")), @r"");
    insta::assert_snapshot!(findings(&with("mode: obsrve")), @r"");
    insta::assert_snapshot!(findings(&with("protection: {vpcs: 'no'}")), @r"");
    insta::assert_snapshot!(findings(&with("aws: {useOwnRoleIn: [12345678901], endpointUrl: localhost}")), @r"");
    insta::assert_snapshot!(findings(&with("aws: {useOwnRoleIn: ['1'], defaultRegion: europe}")), @r"");
    insta::assert_snapshot!(findings(&with("aws: {useOwnRoleIn: '012345678901'}")), @r"");
    insta::assert_snapshot!(findings(&with("clock: {speed: 100}")), @r"");
    insta::assert_snapshot!(findings(&with("aws: {endpointUrl: 'https://ec2.amazonaws.com'}\nclock: {speed: 2}")), @r"");
    insta::assert_snapshot!(findings(&with("clock: {speed: 0}")), @r"");
    insta::assert_snapshot!(findings(&with("page: {listen: '0.0.0.0:8080'}")), @r"");
    insta::assert_snapshot!(findings(&with("page: {listen: 8080}")), @r"");
    insta::assert_snapshot!(findings(&with("page: {listen: 'localhost:8080'}")), @r"");
    insta::assert_snapshot!(findings(&with("metrics: {listen: '127.0.0.1:8080'}")), @r"");
    insta::assert_snapshot!(findings(&with("webhook: {github: {secret: x}}")), @r"");
    insta::assert_snapshot!(findings(&with("webhook: {generic: {tokenFile: a, tokenEnv: B}}")), @r"");
    insta::assert_snapshot!(findings(&with("kubernetes: {inCluster: true, kubeconfig: x, context: y}")), @r"");
    insta::assert_snapshot!(findings(&with("export: {directory: ''}")), @r"");
    insta::assert_snapshot!(findings(&with("log: {level: verbose, format: xml}")), @r"");
    insta::assert_snapshot!(findings("fleet: {id: Prod, defaultNamespace: A}\nsource: {}"), @r"");
    insta::assert_snapshot!(findings("fleet: {}\nsource: {git: {}, directory: {}}"), @r"");
}

#[test]
fn mistakes_about_git_never_repeat_a_secret() {
    let git = |fields: &str| {
        let findings = findings(&format!("fleet: {{id: a}}\nsource: {{git: {{{fields}}}}}\n"));
        assert!(!findings.contains("hunter2"), "{findings}");
        findings
    };
    insta::assert_snapshot!(git("url: 'https://me:hunter2@git.example.com/x'"), @r"");
    insta::assert_snapshot!(git("url: 'ssh://me:hunter2@git.example.com/x'"), @r"");
    insta::assert_snapshot!(git("url: 'hunter2'"), @r"");
    insta::assert_snapshot!(git("url: 'git@example.com:x', auth: {tokenFile: a}"), @r"");
    insta::assert_snapshot!(git("url: 'https://example.com/x', auth: {sshKeyFile: a, knownHostsFile: b}"), @r"");
    insta::assert_snapshot!(git("url: 'git@example.com:x', auth: {sshKeyFile: a}"), @r"");
    insta::assert_snapshot!(git("url: 'git@example.com:x', auth: {sshKeyFile: a, knownHostsFile: b, tokenFile: c}"), @r"");
    insta::assert_snapshot!(git("url: /srv/x, path: a/../../b, auth: {usernameFile: a}"), @r"");
}

#[test]
fn a_secret_never_shows_itself() {
    let secret = Secret::new("hunter2");
    assert_eq!((format!("{secret:?}"), secret.to_string()), ("<redacted>".into(), "<redacted>".into()));
    assert_eq!(secret.expose(), "hunter2");
}

#[test]
fn secrets_come_from_files_and_variables() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "s3cret\n").unwrap();
    assert_eq!(SecretSource::File(path.clone()).read().unwrap().expose(), "s3cret");
    std::fs::write(&path, "\n").unwrap();
    assert!(matches!(SecretSource::File(path).read(), Err(SecretError::Empty { .. })));
    assert!(matches!(
        SecretSource::File(directory.path().join("none")).read(),
        Err(SecretError::Read { .. })
    ));
    assert!(matches!(SecretSource::Env("FLEETWRIGHT_NO_SUCH".into()).read(), Err(SecretError::Unset { .. })));
}

#[test]
fn a_file_that_is_missing_or_wrong_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.yaml");
    let error = Config::load(&path).unwrap_err();
    assert!(error.to_string().contains("c.yaml"), "{error}");
    std::fs::write(&path, "fleet: {id: 7}\n").unwrap();
    let error = Config::load(&path).unwrap_err().to_string();
    assert!(error.contains("c.yaml:1:13: error[bad-config]: `fleet.id` must be a string"), "{error}");
    std::fs::write(&path, SMALLEST).unwrap();
    assert_eq!(Config::load(&path).unwrap().source, Source::Directory(directory.path().join("fleet")));
}

#[test]
fn durations_are_numbers_with_units() {
    let seconds = |text: &str| walk::parse_duration(text).map(|duration| duration.as_secs_f64());
    let table = [
        ("90s", Some(90.0)),
        ("1h30m", Some(5400.0)),
        ("250ms", Some(0.25)),
        ("", None),
        ("5", None),
        ("s", None),
        ("-5s", None),
        ("5d", None),
        ("1.5s", None),
        ("99999999999999999999s", None),
        ("9999999999999999999h", None),
    ];
    for (text, expected) in table {
        assert_eq!(seconds(text), expected, "{text:?}");
    }
}

/// The page for people and the code say the same keys, and its examples are valid.
#[test]
fn every_key_is_documented() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).unwrap();
    let documented: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut sorted: Vec<&str> = documented.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, Config::keys());
    let examples: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        valid(example);
    }
}
