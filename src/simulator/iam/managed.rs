//! AWS's own managed policies, as far as EKS fleets attach them.
//!
//! The documents are shortened: the services and verbs of the originals without their conditions. They answer
//! "may this role do that" about right; they are no reference for what AWS publishes.

use serde_json::json;
use sha2::{Digest, Sha256};

/// When all of them were created, as far as the simulator is concerned.
pub(super) const CREATED: &str = "2018-05-27T21:07:14Z";

/// One of AWS's policies: its path and name, and the actions it allows.
pub(super) struct AwsPolicy(&'static str, &'static [&'static str]);

impl AwsPolicy {
    pub(super) fn arn(&self) -> String {
        format!("arn:aws:iam::aws:policy/{}", self.0)
    }

    pub(super) fn name(&self) -> &'static str {
        self.0.rsplit('/').next().unwrap_or(self.0)
    }

    pub(super) fn path(&self) -> String {
        match self.0.rsplit_once('/') {
            Some((path, _)) => format!("/{path}/"),
            None => "/".to_owned(),
        }
    }

    pub(super) fn id(&self) -> String {
        let digest = Sha256::digest(self.0);
        let tail: String = digest.iter().take(17).map(|byte| char::from(b'A' + byte % 26)).collect();
        format!("ANPA{tail}")
    }

    pub(super) fn document(&self) -> String {
        json!({
            "Version": "2012-10-17",
            "Statement": [{ "Effect": "Allow", "Action": self.1, "Resource": "*" }],
        })
        .to_string()
    }
}

/// Every policy known here.
pub(super) fn all() -> impl Iterator<Item = &'static AwsPolicy> {
    POLICIES.iter()
}

/// The policy with this ARN, in whatever partition.
pub(super) fn find(arn: &str) -> Option<&'static AwsPolicy> {
    let (head, path) = arn.split_once(":iam::aws:policy/")?;
    if !matches!(head, "arn:aws" | "arn:aws-cn" | "arn:aws-us-gov") {
        return None;
    }
    POLICIES.iter().find(|policy| policy.0 == path)
}

const POLICIES: &[AwsPolicy] = &[
    AwsPolicy("AdministratorAccess", &["*"]),
    AwsPolicy(
        "ReadOnlyAccess",
        &["ec2:Describe*", "eks:Describe*", "eks:List*", "iam:Get*", "iam:List*", "sts:GetCallerIdentity"],
    ),
    AwsPolicy(
        "PowerUserAccess",
        &["ec2:*", "eks:*", "kms:*", "sts:*", "iam:CreateServiceLinkedRole", "iam:ListRoles"],
    ),
    AwsPolicy(
        "AmazonEKSClusterPolicy",
        &[
            "autoscaling:Describe*",
            "autoscaling:UpdateAutoScalingGroup",
            "ec2:AttachVolume",
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:CreateRoute",
            "ec2:CreateSecurityGroup",
            "ec2:CreateTags",
            "ec2:CreateVolume",
            "ec2:DeleteRoute",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteVolume",
            "ec2:Describe*",
            "ec2:DetachVolume",
            "ec2:ModifyInstanceAttribute",
            "ec2:RevokeSecurityGroupIngress",
            "elasticloadbalancing:*",
            "iam:CreateServiceLinkedRole",
            "kms:DescribeKey",
        ],
    ),
    AwsPolicy(
        "AmazonEKSServicePolicy",
        &[
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:Describe*",
            "eks:UpdateClusterVersion",
            "iam:ListAttachedRolePolicies",
            "logs:*",
        ],
    ),
    AwsPolicy(
        "AmazonEKSVPCResourceController",
        &[
            "ec2:AssignPrivateIpAddresses",
            "ec2:AttachNetworkInterface",
            "ec2:CreateNetworkInterface",
            "ec2:CreateNetworkInterfacePermission",
            "ec2:DeleteNetworkInterface",
            "ec2:DetachNetworkInterface",
            "ec2:ModifyNetworkInterfaceAttribute",
            "ec2:UnassignPrivateIpAddresses",
        ],
    ),
    AwsPolicy(
        "AmazonEKSWorkerNodePolicy",
        &[
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeRouteTables",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVolumes",
            "ec2:DescribeVpcs",
            "eks:DescribeCluster",
            "eks-auth:AssumeRoleForPodIdentity",
        ],
    ),
    AwsPolicy("AmazonEKSWorkerNodeMinimalPolicy", &["eks-auth:AssumeRoleForPodIdentity"]),
    AwsPolicy(
        "AmazonEKS_CNI_Policy",
        &[
            "ec2:AssignPrivateIpAddresses",
            "ec2:AttachNetworkInterface",
            "ec2:CreateNetworkInterface",
            "ec2:CreateTags",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:DescribeTags",
            "ec2:DetachNetworkInterface",
            "ec2:ModifyNetworkInterfaceAttribute",
            "ec2:UnassignPrivateIpAddresses",
        ],
    ),
    AwsPolicy(
        "AmazonEKSComputePolicy",
        &[
            "ec2:CreateFleet",
            "ec2:CreateLaunchTemplate",
            "ec2:CreateTags",
            "ec2:DeleteLaunchTemplate",
            "ec2:RunInstances",
            "ec2:TerminateInstances",
            "iam:AddRoleToInstanceProfile",
            "iam:CreateInstanceProfile",
            "iam:DeleteInstanceProfile",
            "iam:PassRole",
            "iam:TagInstanceProfile",
        ],
    ),
    AwsPolicy(
        "AmazonEKSBlockStoragePolicy",
        &[
            "ec2:AttachVolume",
            "ec2:CreateSnapshot",
            "ec2:CreateTags",
            "ec2:CreateVolume",
            "ec2:DeleteSnapshot",
            "ec2:DeleteVolume",
            "ec2:Describe*",
            "ec2:DetachVolume",
            "ec2:ModifyVolume",
        ],
    ),
    AwsPolicy(
        "AmazonEKSLoadBalancingPolicy",
        &[
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:CreateSecurityGroup",
            "ec2:CreateTags",
            "ec2:DeleteSecurityGroup",
            "ec2:Describe*",
            "ec2:RevokeSecurityGroupIngress",
            "elasticloadbalancing:*",
        ],
    ),
    AwsPolicy(
        "AmazonEKSNetworkingPolicy",
        &[
            "ec2:AssignPrivateIpAddresses",
            "ec2:AttachNetworkInterface",
            "ec2:CreateNetworkInterface",
            "ec2:CreateTags",
            "ec2:DeleteNetworkInterface",
            "ec2:Describe*",
            "ec2:DetachNetworkInterface",
            "ec2:UnassignPrivateIpAddresses",
        ],
    ),
    AwsPolicy(
        "AmazonEKSFargatePodExecutionRolePolicy",
        &[
            "ecr:BatchCheckLayerAvailability",
            "ecr:BatchGetImage",
            "ecr:GetAuthorizationToken",
            "ecr:GetDownloadUrlForLayer",
        ],
    ),
    AwsPolicy(
        "AmazonEKSLocalOutpostClusterPolicy",
        &["ec2:Describe*", "ecr:GetAuthorizationToken", "ssm:UpdateInstanceInformation"],
    ),
    AwsPolicy(
        "AmazonEC2ContainerRegistryReadOnly",
        &["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:Describe*", "ecr:Get*", "ecr:List*"],
    ),
    AwsPolicy(
        "AmazonEC2ContainerRegistryPullOnly",
        &[
            "ecr:BatchGetImage",
            "ecr:BatchImportUpstreamImage",
            "ecr:GetAuthorizationToken",
            "ecr:GetDownloadUrlForLayer",
        ],
    ),
    AwsPolicy(
        "AmazonEC2ContainerRegistryPowerUser",
        &[
            "ecr:Batch*",
            "ecr:CompleteLayerUpload",
            "ecr:Describe*",
            "ecr:Get*",
            "ecr:InitiateLayerUpload",
            "ecr:List*",
            "ecr:PutImage",
            "ecr:UploadLayerPart",
        ],
    ),
    AwsPolicy(
        "AmazonSSMManagedInstanceCore",
        &[
            "ec2messages:*",
            "ssm:DescribeAssociation",
            "ssm:GetDocument",
            "ssm:PutInventory",
            "ssm:UpdateInstanceInformation",
            "ssmmessages:*",
        ],
    ),
    AwsPolicy("AmazonVPCFullAccess", &["ec2:*"]),
    AwsPolicy(
        "AmazonEC2FullAccess",
        &["autoscaling:*", "cloudwatch:*", "ec2:*", "elasticloadbalancing:*", "iam:CreateServiceLinkedRole"],
    ),
    AwsPolicy(
        "AmazonEC2ReadOnlyAccess",
        &["autoscaling:Describe*", "ec2:Describe*", "elasticloadbalancing:Describe*"],
    ),
    AwsPolicy("IAMFullAccess", &["iam:*", "organizations:Describe*"]),
    AwsPolicy("IAMReadOnlyAccess", &["iam:Generate*", "iam:Get*", "iam:List*", "iam:Simulate*"]),
    AwsPolicy(
        "SecretsManagerReadWrite",
        &["kms:DescribeKey", "kms:ListAliases", "kms:ListKeys", "secretsmanager:*"],
    ),
    AwsPolicy("AmazonSSMReadOnlyAccess", &["ssm:Describe*", "ssm:Get*", "ssm:List*"]),
    AwsPolicy("AmazonS3ReadOnlyAccess", &["s3:Describe*", "s3:Get*", "s3:List*"]),
    AwsPolicy(
        "CloudWatchAgentServerPolicy",
        &[
            "cloudwatch:PutMetricData",
            "ec2:DescribeTags",
            "ec2:DescribeVolumes",
            "logs:CreateLogGroup",
            "logs:CreateLogStream",
            "logs:Describe*",
            "logs:PutLogEvents",
            "ssm:GetParameter",
        ],
    ),
    AwsPolicy("CloudWatchLogsFullAccess", &["cloudwatch:GenerateQuery", "logs:*"]),
    AwsPolicy("AWSXrayWriteOnlyAccess", &["xray:Get*", "xray:Put*"]),
    AwsPolicy("AmazonPrometheusRemoteWriteAccess", &["aps:RemoteWrite"]),
    AwsPolicy("AmazonRoute53FullAccess", &["route53:*", "route53domains:*"]),
    AwsPolicy(
        "service-role/AmazonEBSCSIDriverPolicy",
        &[
            "ec2:AttachVolume",
            "ec2:CreateSnapshot",
            "ec2:CreateTags",
            "ec2:CreateVolume",
            "ec2:DeleteSnapshot",
            "ec2:DeleteTags",
            "ec2:DeleteVolume",
            "ec2:Describe*",
            "ec2:DetachVolume",
            "ec2:ModifyVolume",
        ],
    ),
    AwsPolicy(
        "service-role/AmazonEFSCSIDriverPolicy",
        &[
            "ec2:DescribeAvailabilityZones",
            "elasticfilesystem:CreateAccessPoint",
            "elasticfilesystem:DeleteAccessPoint",
            "elasticfilesystem:Describe*",
            "elasticfilesystem:TagResource",
        ],
    ),
    AwsPolicy("service-role/AmazonFSxReadOnlyAccess", &["fsx:Describe*", "fsx:List*"]),
    AwsPolicy(
        "service-role/AWSBackupServiceRolePolicyForBackup",
        &["backup:*", "ec2:CreateSnapshot", "ec2:Describe*"],
    ),
    AwsPolicy(
        "aws-service-role/AmazonEKSServiceRolePolicy",
        &[
            "ec2:CreateNetworkInterface",
            "ec2:CreateSecurityGroup",
            "ec2:CreateTags",
            "ec2:Delete*",
            "ec2:Describe*",
            "route53:AssociateVPCWithHostedZone",
        ],
    ),
    AwsPolicy(
        "aws-service-role/AWSServiceRoleForAmazonEKSNodegroup",
        &["autoscaling:*", "ec2:*", "eks:Describe*", "iam:GetInstanceProfile", "iam:PassRole"],
    ),
    AwsPolicy(
        "aws-service-role/AmazonEKSForFargateServiceRolePolicy",
        &[
            "ec2:CreateNetworkInterface",
            "ec2:CreateNetworkInterfacePermission",
            "ec2:DeleteNetworkInterface",
            "ec2:Describe*",
        ],
    ),
    AwsPolicy(
        "aws-service-role/AutoScalingServiceRolePolicy",
        &["ec2:*", "elasticloadbalancing:*", "iam:PassRole"],
    ),
    AwsPolicy(
        "aws-service-role/AWSElasticLoadBalancingServiceRolePolicy",
        &["ec2:*NetworkInterface*", "ec2:Describe*"],
    ),
    AwsPolicy(
        "aws-service-role/AWSEC2SpotServiceRolePolicy",
        &["ec2:Describe*", "ec2:RunInstances", "ec2:StartInstances", "ec2:StopInstances"],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulator::iam::document::{self, Use};

    #[test]
    fn every_document_is_one_and_every_name_is_unique() {
        let mut names = BTreeSet::new();
        for policy in all() {
            document::parse(&policy.document(), Use::Identity)
                .unwrap_or_else(|error| panic!("{}: {error}", policy.0));
            assert!(names.insert(policy.name()), "{} twice", policy.0);
            assert_eq!(find(&policy.arn()).map(AwsPolicy::name), Some(policy.name()));
        }
        assert!(find("arn:aws:iam::aws:policy/NoSuchAwsPolicy").is_none());
    }
}
