//! One set of clients: one account, one Region, one role.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::batch::WINDOW;
use super::reads::Reads;
use super::watch::CredentialsWatch;
use super::{AwsError, ErrorClass};
use crate::api::{AccountId, Arn, Region};
use crate::clock::Clock;

/// How often a read that is in no hurry is made again while AWS throttles it, and the first wait.
const PATIENCE: (u32, Duration) = (5, Duration::from_secs(1));

/// Clients for one account and Region, with the credentials of one role.
#[derive(Debug, Clone)]
pub struct Session {
    account: AccountId,
    region: Region,
    role: Option<Arn>,
    ec2: aws_sdk_ec2::Client,
    eks: aws_sdk_eks::Client,
    iam: aws_sdk_iam::Client,
    reads: Arc<Reads>,
    clock: Clock,
}

impl Session {
    /// Builds the clients from one SDK configuration. The account must have been checked with
    /// GetCallerIdentity (decisions 12); `role` is absent for the daemon's own identity. Must be called inside
    /// a tokio runtime.
    pub fn new(
        config: &aws_config::SdkConfig,
        account: AccountId,
        region: Region,
        role: Option<Arn>,
    ) -> Self {
        Self::watched(config, account, region, role, &CredentialsWatch::default(), &Clock::real())
    }

    /// The same, with a watch over the credentials and a clock of its own.
    pub(super) fn watched(
        config: &aws_config::SdkConfig,
        account: AccountId,
        region: Region,
        role: Option<Arn>,
        watch: &CredentialsWatch,
        clock: &Clock,
    ) -> Self {
        let ec2 = aws_sdk_ec2::config::Builder::from(config).interceptor(watch.clone()).build();
        let eks = aws_sdk_eks::config::Builder::from(config).interceptor(watch.clone()).build();
        let iam = aws_sdk_iam::config::Builder::from(config).interceptor(watch.clone()).build();
        Self {
            account,
            region,
            role,
            ec2: aws_sdk_ec2::Client::from_conf(ec2),
            eks: aws_sdk_eks::Client::from_conf(eks),
            iam: aws_sdk_iam::Client::from_conf(iam),
            reads: Arc::new(Reads::new(clock.real_span(WINDOW))),
            clock: clock.clone(),
        }
    }

    /// The account that the credentials belong to.
    pub fn account(&self) -> &AccountId {
        &self.account
    }

    /// The session, when its credentials belong to the account that is meant.
    ///
    /// # Errors
    /// When they belong to another: the daemon's own credentials may have been exchanged.
    pub fn of_account(self, meant: &AccountId) -> Result<Self, AwsError> {
        if self.account == *meant { Ok(self) } else { Err(AwsError::other_account(&self.account, meant)) }
    }

    /// The Region of the regional services.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The role that was assumed.
    pub fn role(&self) -> Option<&Arn> {
        self.role.as_ref()
    }

    /// Amazon EC2 in this Region.
    pub fn ec2(&self) -> &aws_sdk_ec2::Client {
        &self.ec2
    }

    /// Amazon EKS in this Region.
    pub fn eks(&self) -> &aws_sdk_eks::Client {
        &self.eks
    }

    /// AWS IAM in this account.
    pub fn iam(&self) -> &aws_sdk_iam::Client {
        &self.iam
    }

    /// Reads that go out together with others of this session.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Makes one of the many reads of a sweep, and makes it again while AWS asks to slow down.
    ///
    /// # Errors
    /// Those of the read; throttling only after half a minute of it.
    pub async fn patiently<T, Read, Reading>(&self, read: Read) -> Result<T, AwsError>
    where
        Read: Fn() -> Reading,
        Reading: Future<Output = Result<T, AwsError>>,
    {
        let (tries, mut pause) = PATIENCE;
        for _ in 0..tries {
            match read().await {
                Err(error) if error.class == ErrorClass::Throttled => self.clock.sleep(pause).await,
                answer => return answer,
            }
            pause *= 2;
        }
        read().await
    }
}
