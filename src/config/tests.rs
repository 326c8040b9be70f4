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
    insta::assert_debug_snapshot!(valid(SMALLEST), @r#"
    Config {
        fleet: Fleet {
            id: FleetId(
                "demo",
            ),
            default_namespace: "default",
        },
        source: Directory(
            "etc/fleet",
        ),
        data_directory: "etc/.fleetwright",
        aws: Aws {
            endpoint_url: None,
            default_region: None,
            use_own_role_in: [],
            sweep_regions: [],
            role_session_duration: 3600s,
        },
        clock_speed: 1.0,
        mode: Reconcile,
        observe: Observe {
            accounts: [],
            paths: [],
        },
        unmanaged_kinds: Hold,
        protection: Protection {
            clusters: true,
            vpcs: true,
            keys: true,
        },
        guard: Guard {
            max_removals: 5,
            max_percent: 20,
        },
        resync_interval: 600s,
        webhook: Webhook {
            listen: 127.0.0.1:9080,
            github: None,
            generic: None,
        },
        page: Page {
            listen: 127.0.0.1:8080,
            token: None,
        },
        metrics_listen: 127.0.0.1:9090,
        kubernetes: None,
        export_directory: None,
        log: Log {
            format: Auto,
            level: "info",
        },
    }
    "#);
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
  sweepRegions: [eu-west-2]
  roleSessionDuration: 15m
clock: {speed: 100}
mode: observe
observe: {accounts: ['012345678901'], paths: [/clusters/dev/]}
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
    insta::assert_debug_snapshot!(config, @r#"
    Config {
        fleet: Fleet {
            id: FleetId(
                "prod",
            ),
            default_namespace: "clusters",
        },
        source: Git(
            Git {
                url: "https://git.example.com/team/fleet.git",
                revision: Tag(
                    "v1",
                ),
                path: "clusters",
                poll: 90s,
                timeout: 500s,
                auth: Token {
                    username: Some(
                        File(
                            "etc/user",
                        ),
                    ),
                    token: Env(
                        "GIT_TOKEN",
                    ),
                },
            },
        ),
        data_directory: "/var/lib/fleetwright",
        aws: Aws {
            endpoint_url: Some(
                "http://[::1]:4566/x",
            ),
            default_region: Some(
                Region(
                    "eu-central-1",
                ),
            ),
            use_own_role_in: [
                AccountId(
                    "012345678901",
                ),
            ],
            sweep_regions: [
                Region(
                    "eu-west-2",
                ),
            ],
            role_session_duration: 900s,
        },
        clock_speed: 100.0,
        mode: Observe,
        observe: Observe {
            accounts: [
                AccountId(
                    "012345678901",
                ),
            ],
            paths: [
                "clusters/dev",
            ],
        },
        unmanaged_kinds: Store,
        protection: Protection {
            clusters: false,
            vpcs: false,
            keys: false,
        },
        guard: Guard {
            max_removals: 1,
            max_percent: 0,
        },
        resync_interval: 3600s,
        webhook: Webhook {
            listen: 0.0.0.0:1,
            github: Some(
                Env(
                    "HOOK",
                ),
            ),
            generic: Some(
                File(
                    "/run/token",
                ),
            ),
        },
        page: Page {
            listen: 0.0.0.0:2,
            token: Some(
                File(
                    "etc/page-token",
                ),
            ),
        },
        metrics_listen: [::]:3,
        kubernetes: Some(
            Kubeconfig {
                path: "etc/kube",
                context: Some(
                    "hub",
                ),
            },
        ),
        export_directory: Some(
            "etc/out",
        ),
        log: Log {
            format: Json,
            level: "warn,fleetwright=debug",
        },
    }
    "#);
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
    insta::assert_snapshot!(revision("commit:abc").unwrap_err(), @r#"
    c.yaml:2:43: error[bad-config]: `source.git.revision`: "abc" is not a Git commit id (forty hexadecimal digits)
      help: write branch:main, tag:v1, commit:<forty hexadecimal digits> or ref:refs/heads/main
    "#);
    insta::assert_snapshot!(revision("branch:a b").unwrap_err(), @r"
    c.yaml:2:43: error[bad-config]: `source.git.revision`: `a b` is no name that Git allows
      help: write branch:main, tag:v1, commit:<forty hexadecimal digits> or ref:refs/heads/main
    ");
    insta::assert_snapshot!(revision("head:x").unwrap_err(), @r"
    c.yaml:2:43: error[bad-config]: `source.git.revision`: there is no kind `head`
      help: write branch:main, tag:v1, commit:<forty hexadecimal digits> or ref:refs/heads/main
    ");
}

#[test]
fn mistakes_name_key_place_and_help() {
    insta::assert_snapshot!(findings(""), @r"
    c.yaml:1:1: error[bad-config]: `fleet.id` is missing
      help: add `fleet:` with an `id:` below it
    c.yaml:1:1: error[bad-config]: `source` is missing
      help: add `source:` with `git:` or `directory:` below it
    ");
    insta::assert_snapshot!(findings("[a]"), @r"c.yaml:1:1: error[bad-config]: the configuration must be a map");
    insta::assert_snapshot!(findings("fleet: [\n"), @r"c.yaml:1:8: error[yaml-syntax]: unclosed bracket '['");
    insta::assert_snapshot!(findings("fleet: {id: a, id: b}\n"), @r"
    c.yaml:1:16: error[yaml-duplicate-key]: the key `id` is already set at line 1, column 9
      help: keep one of the two
    ");
    insta::assert_snapshot!(findings(&with("---\na: 1")), @r"
    c.yaml:4:1: error[bad-config]: the configuration is one document, and this is a second
      help: remove the `---`
    ");
    insta::assert_snapshot!(findings(&with("gard: {}\nelephant: 1")), @r"
    c.yaml:3:1: error[unknown-key]: there is no key `gard`
      help: did you mean `guard`?
    c.yaml:4:1: error[unknown-key]: there is no key `elephant`
      help: one of fleet, source, data, aws, clock, mode, observe, unmanagedKinds, protection, guard, resync, webhook, page, metrics, kubernetes, export, log may stand here
    ");
    insta::assert_snapshot!(findings(&with("guard: {maxRemoval: 3}")), @r"
    c.yaml:3:9: error[unknown-key]: there is no key `guard.maxRemoval`
      help: did you mean `maxRemovals`?
    ");
    insta::assert_snapshot!(findings(&with("guard: 3")), @r"
    c.yaml:3:8: error[bad-config]: `guard` must be a map
      help: write its keys below it, indented
    ");
    insta::assert_snapshot!(findings(&with("guard: {maxRemovals: -1, maxPercent: 101}")), @r"
    c.yaml:3:22: error[bad-config]: `guard.maxRemovals` must be a whole number from 0 to 1000000
      help: correct the value
    c.yaml:3:38: error[bad-config]: `guard.maxPercent` must be a whole number from 0 to 100
      help: correct the value
    ");
    insta::assert_snapshot!(findings(&with("resync: {interval: 10}")), @r"
    c.yaml:3:20: error[bad-config]: `resync.interval` is no duration: 10
      help: write a number with its unit: 30s, 10m, 1h30m or 500ms
    ");
    insta::assert_snapshot!(findings(&with("resync: {interval: 10 minutes}")), @r#"
    c.yaml:3:20: error[bad-config]: `resync.interval` is no duration: "10 minutes"
      help: write a number with its unit: 30s, 10m, 1h30m or 500ms
    "#);
    insta::assert_snapshot!(findings(&with("resync: {interval: 1s}")), @r"
    c.yaml:3:20: error[bad-config]: `resync.interval` must be from 10s to 24h
      help: correct the value
    ");
    insta::assert_snapshot!(findings(&with("mode: obsrve")), @r"
    c.yaml:3:7: error[bad-config]: `mode` must be one of reconcile, observe
      help: did you mean `observe`?
    ");
    for path in ["", "/", "a//b", "../a", "./a"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(findings(&with(&format!("observe: {{paths: ['{path}']}}"))), @r"
            c.yaml:3:18: error[bad-config]: `observe.paths` names no directory or file of the repository
              help: write it as findings do, e.g. clusters/dev or clusters/dev/orders.yaml
            ");
        }
    }
    insta::assert_snapshot!(findings(&with("protection: {vpcs: 'no'}")), @r"
    c.yaml:3:20: error[bad-config]: `protection.vpcs` must be true or false
      help: write one of the two, without quotes
    ");
    insta::assert_snapshot!(findings(&with("aws: {useOwnRoleIn: [12345678901], endpointUrl: localhost}")), @r"
    c.yaml:3:22: error[bad-config]: `aws.useOwnRoleIn` must be a list of strings
      help: correct the value, in quotes
    c.yaml:3:49: error[bad-config]: `aws.endpointUrl` is no address
      help: write http://host:port or https://host:port
    ");
    insta::assert_snapshot!(findings(&with("aws: {useOwnRoleIn: ['1'], defaultRegion: europe}")), @r#"
    c.yaml:3:22: error[bad-config]: `aws.useOwnRoleIn`: "1" is not an AWS account id (twelve digits, quoted in YAML)
      help: correct the value, in quotes
    c.yaml:3:43: error[bad-config]: `aws.defaultRegion`: "europe" is not an AWS Region such as eu-central-1
      help: correct the value
    "#);
    insta::assert_snapshot!(findings(&with("aws: {useOwnRoleIn: '012345678901'}")), @r"
    c.yaml:3:21: error[bad-config]: `aws.useOwnRoleIn` must be a list
      help: write `- value` below it
    ");
    insta::assert_snapshot!(findings(&with("clock: {speed: 100}")), @r"
    c.yaml:3:16: error[bad-config]: `clock.speed` other than 1 is for a simulated AWS only
      help: remove it, or point `aws.endpointUrl` at a simulated AWS on this machine
    ");
    insta::assert_snapshot!(findings(&with("aws: {endpointUrl: 'https://ec2.amazonaws.com'}\nclock: {speed: 2}")), @r"
    c.yaml:4:16: error[bad-config]: `clock.speed` other than 1 is for a simulated AWS only
      help: remove it, or point `aws.endpointUrl` at a simulated AWS on this machine
    ");
    insta::assert_snapshot!(findings(&with("clock: {speed: 0}")), @r"
    c.yaml:3:16: error[bad-config]: `clock.speed` must be a number from 0.001 to 100000
      help: correct the value
    ");
    insta::assert_snapshot!(findings(&with("page: {listen: '0.0.0.0:8080'}")), @r"
    c.yaml:3:16: error[bad-config]: `page.listen` on 0.0.0.0:8080 would show the fleet to everybody
      help: add `tokenFile` or `tokenEnv`, or listen on 127.0.0.1
    ");
    insta::assert_snapshot!(findings(&with("page: {listen: 8080}")), @r"
    c.yaml:3:16: error[bad-config]: `page.listen` must be a string
      help: put it in quotes
    ");
    insta::assert_snapshot!(findings(&with("page: {listen: 'localhost:8080'}")), @r"
    c.yaml:3:16: error[bad-config]: `page.listen` is no address: `localhost:8080`
      help: write 127.0.0.1:8080
    ");
    insta::assert_snapshot!(findings(&with("metrics: {listen: '127.0.0.1:8080'}")), @r"
    c.yaml:3:10: error[bad-config]: `metrics.listen` and `page.listen` are both 127.0.0.1:8080
      help: give each a port of its own
    ");
    insta::assert_snapshot!(findings(&with("webhook: {github: {secret: x}}")), @r"
    c.yaml:3:19: error[bad-config]: `webhook.github.secretFile` is missing
      help: add `secretFile`
    c.yaml:3:20: error[unknown-key]: there is no key `webhook.github.secret`
      help: did you mean `secretEnv`?
    ");
    insta::assert_snapshot!(findings(&with("webhook: {generic: {tokenFile: a, tokenEnv: B}}")), @r"
    c.yaml:3:45: error[bad-config]: `webhook.generic.tokenEnv` stands beside `tokenFile`
      help: keep one of the two
    ");
    insta::assert_snapshot!(findings(&with("kubernetes: {inCluster: true, kubeconfig: x, context: y}")), @r"
    c.yaml:3:43: error[bad-config]: `kubernetes` holds both `inCluster` and `kubeconfig`
      help: keep one of the two
    c.yaml:3:55: error[bad-config]: `kubernetes.context` must be a string
      help: put it in quotes
    ");
    insta::assert_snapshot!(findings(&with("export: {directory: ''}")), @r"
    c.yaml:3:21: error[bad-config]: `export.directory` is empty
      help: write a path, or remove the key
    ");
    insta::assert_snapshot!(findings(&with("log: {level: verbose, format: xml}")), @r"
    c.yaml:3:14: error[bad-config]: `log.level` is no level: `verbose`
      help: write error, warn, info, debug or trace, or directives such as info,fleetwright::aws=debug
    c.yaml:3:31: error[bad-config]: `log.format` must be one of auto, human, json
      help: correct the value
    ");
    insta::assert_snapshot!(findings("fleet: {id: Prod, defaultNamespace: A}\nsource: {}"), @r#"
    c.yaml:1:13: error[bad-config]: `fleet.id`: "Prod" is not a fleet id (1 to 63 of a-z, 0-9 and '-', starting with a letter)
      help: correct the value
    c.yaml:1:37: error[bad-config]: `fleet.defaultNamespace` is no name of a namespace
      help: use up to 63 of a-z, 0-9 and `-`, with a letter or digit at both ends
    c.yaml:2:9: error[bad-config]: `source` must hold either `git` or `directory`
      help: keep one of the two
    "#);
    insta::assert_snapshot!(findings("fleet: {}\nsource: {git: {}, directory: {}}"), @r"
    c.yaml:1:8: error[bad-config]: `fleet.id` is missing
      help: add `id`
    c.yaml:2:9: error[bad-config]: `source` must hold either `git` or `directory`
      help: keep one of the two
    c.yaml:2:15: error[bad-config]: `source.git.url` is missing
      help: add `url`
    c.yaml:2:30: error[bad-config]: `source.directory.path` is missing
      help: add `path`
    ");
}

#[test]
fn mistakes_about_git_never_repeat_a_secret() {
    let git = |fields: &str| {
        let findings = findings(&format!("fleet: {{id: a}}\nsource: {{git: {{{fields}}}}}\n"));
        assert!(!findings.contains("hunter2"), "{findings}");
        findings
    };
    insta::assert_snapshot!(git("url: 'https://me:hunter2@git.example.com/x'"), @r"
    c.yaml:2:21: error[bad-config]: `source.git.url` holds credentials, which would end up in logs
      help: remove them, and name a file or variable in `source.git.auth`
    ");
    insta::assert_snapshot!(git("url: 'ssh://me:hunter2@git.example.com/x'"), @r"
    c.yaml:2:21: error[bad-config]: `source.git.url` holds credentials, which would end up in logs
      help: remove them, and name a file or variable in `source.git.auth`
    ");
    insta::assert_snapshot!(git("url: 'hunter2'"), @r"
    c.yaml:2:21: error[bad-config]: `source.git.url` is no address of a Git remote
      help: write https://host/path, ssh://user@host/path, user@host:path or file:///path
    ");
    insta::assert_snapshot!(git("url: 'git@example.com:x', auth: {tokenFile: a}"), @r"
    c.yaml:2:48: error[bad-config]: a token in `source.git.auth` works with an https:// address only
      help: use an https:// address, or `sshKeyFile`
    ");
    insta::assert_snapshot!(git("url: 'https://example.com/x', auth: {sshKeyFile: a, knownHostsFile: b}"), @r"
    c.yaml:2:65: error[bad-config]: `source.git.auth.sshKeyFile` works with an ssh:// address only
      help: use an ssh:// address, or a token
    ");
    insta::assert_snapshot!(git("url: 'git@example.com:x', auth: {sshKeyFile: a}"), @r"
    c.yaml:2:48: error[bad-config]: `source.git.auth.knownHostsFile` is missing
      help: add `knownHostsFile`
    ");
    insta::assert_snapshot!(git("url: 'git@example.com:x', auth: {sshKeyFile: a, knownHostsFile: b, tokenFile: c}"), @r"
    c.yaml:2:61: error[bad-config]: `source.git.auth` holds both a token and an SSH key
      help: use a token with https:// and a key with ssh://
    ");
    insta::assert_snapshot!(git("url: /srv/x, path: a/../../b, auth: {usernameFile: a}"), @r"
    c.yaml:2:35: error[bad-config]: `source.git.path` leads out of the repository
      help: write a path below its root
    c.yaml:2:67: error[bad-config]: `source.git.auth.usernameFile` stands without a token
      help: add `tokenFile`
    ");
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
