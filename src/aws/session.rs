//! One set of clients: one account, one Region, one role.

use super::watch::CredentialsWatch;
use crate::api::{AccountId, Arn, Region};

/// Clients for one account and Region, with the credentials of one role.
#[derive(Debug, Clone)]
pub struct Session {
    account: AccountId,
    region: Region,
    role: Option<Arn>,
    ec2: aws_sdk_ec2::Client,
    eks: aws_sdk_eks::Client,
    iam: aws_sdk_iam::Client,
}

impl Session {
    /// Builds the clients from one SDK configuration. The account must have been checked with
    /// GetCallerIdentity (decisions 12); `role` is absent for the daemon's own identity.
    pub fn new(
        config: &aws_config::SdkConfig,
        account: AccountId,
        region: Region,
        role: Option<Arn>,
    ) -> Self {
        Self::watched(config, account, region, role, &CredentialsWatch::default())
    }

    /// The same, with a watch over the credentials.
    pub(super) fn watched(
        config: &aws_config::SdkConfig,
        account: AccountId,
        region: Region,
        role: Option<Arn>,
        watch: &CredentialsWatch,
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
        }
    }

    /// The account that the credentials belong to.
    pub fn account(&self) -> &AccountId {
        &self.account
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
}
