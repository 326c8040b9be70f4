//! What an object of a kind stands on, made by somebody else, and its spec.

use std::time::Duration;

use fleetwright::simulator::{Drift, Service, Simulator};
use serde_json::{Value, json};

/// Where everything is.
pub const ACCOUNT: &str = "222222222222";
/// Where everything is.
pub const REGION: &str = "us-west-2";

/// AWS objects of others.
pub struct Ground<'a> {
    aws: &'a Simulator,
}

impl<'a> Ground<'a> {
    pub fn new(aws: &'a Simulator) -> Self {
        Self { aws }
    }

    /// The spec of an object of this kind, once what it needs is there.
    pub fn spec(&self, kind: &str) -> Value {
        let spec = self.prepare(kind);
        // All of it is settled and seen by everybody.
        self.aws.step(Duration::from_secs(3_600));
        spec
    }

    fn prepare(&self, kind: &str) -> Value {
        let tags = json!([{"key": "team", "value": "edge"}]);
        match kind {
            "ElasticIPAddress" => json!({"tags": tags}),
            "VPC" => json!({
                "cidrBlocks": ["10.0.0.0/16", "10.1.0.0/16"], "enableDNSHostnames": true, "tags": tags,
            }),
            "Policy" => {
                json!({"name": "it", "policyDocument": document("Allow", &json!({"Action": "s3:GetObject", "Resource": "*"}))})
            }
            "Role" => json!({
                "name": "it", "assumeRolePolicyDocument": trust("ec2.amazonaws.com"),
                "policies": ["arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy", "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"],
                "inlinePolicies": {"more": document("Allow", &json!({"Action": "s3:GetObject", "Resource": "*"}))},
            }),
            "InstanceProfile" => {
                self.role("nodes", "ec2.amazonaws.com", &[]);
                json!({"name": "it", "role": "nodes", "tags": tags})
            }
            "OpenIDConnectProvider" => json!({
                "url": "https://tokens.example.com/id/1", "clientIDs": ["sts.amazonaws.com"], "tags": tags,
            }),
            "InternetGateway" => json!({"vpc": self.vpc()}),
            "RouteTable" => {
                let vpc = self.vpc();
                let gateway = self.gateway(&vpc);
                json!({"vpcID": vpc, "routes": [{"destinationCIDRBlock": "0.0.0.0/0", "gatewayID": gateway}]})
            }
            "Subnet" => {
                let vpc = self.vpc();
                let table = self.made("CreateRouteTable", json!({"VpcId": vpc}), "/routeTable/routeTableId");
                json!({
                    "vpcID": vpc, "cidrBlock": "10.0.9.0/24", "availabilityZone": "us-west-2a",
                    "mapPublicIPOnLaunch": true, "routeTables": [table],
                })
            }
            "SecurityGroup" => json!({
                "name": "it", "description": "it", "vpcID": self.vpc(),
                "ingressRules": [{"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "ipRanges": [{"cidrIP": "10.0.0.0/8"}]}],
            }),
            "NATGateway" => {
                let vpc = self.vpc();
                self.gateway(&vpc);
                let address = self.made("AllocateAddress", json!({"Domain": "vpc"}), "/allocationId");
                json!({"subnetID": self.subnet(&vpc, "a", 0), "allocationID": address})
            }
            "Cluster" => {
                let (subnets, role) = self.cluster_ground();
                json!({
                    "name": "it", "version": "1.34", "roleARN": role,
                    "resourcesVPCConfig": {"subnetIDs": subnets, "endpointPrivateAccess": true, "endpointPublicAccess": false},
                    "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": false},
                })
            }
            "Nodegroup" => {
                let subnets = self.cluster();
                let role = self.role(
                    "nodes",
                    "ec2.amazonaws.com",
                    &[
                        "AmazonEKSWorkerNodePolicy",
                        "AmazonEC2ContainerRegistryPullOnly",
                        "AmazonEKS_CNI_Policy",
                    ],
                );
                json!({
                    "clusterName": "base", "name": "it", "nodeRole": role, "subnets": subnets,
                    "scalingConfig": {"minSize": 1, "maxSize": 2, "desiredSize": 1},
                })
            }
            "Capability" => {
                self.cluster();
                let role = self.role("argocd", "capabilities.eks.amazonaws.com", &[]);
                json!({
                    "clusterName": "base", "name": "it", "type": "ARGOCD", "roleARN": role,
                    "deletePropagationPolicy": "RETAIN",
                    "configuration": {"argoCD": {
                        "awsIDC": {"idcInstanceARN": "arn:aws:sso:::instance/ssoins-0123456789abcdef"},
                    }},
                })
            }
            "IdentityProviderConfig" => {
                self.cluster();
                json!({
                    "clusterName": "base",
                    "oidc": {
                        "identityProviderConfigName": "it", "issuerURL": "https://id.example.com", "clientID": "kubernetes",
                    },
                })
            }
            "FargateProfile" => {
                let subnets = self.cluster();
                let role = self.role(
                    "fargate",
                    "eks-fargate-pods.amazonaws.com",
                    &["AmazonEKSFargatePodExecutionRolePolicy"],
                );
                json!({
                    "clusterName": "base", "name": "it", "podExecutionRoleARN": role, "subnets": subnets,
                    "selectors": [{"namespace": "jobs"}],
                })
            }
            "Addon" => {
                self.cluster();
                json!({"clusterName": "base", "name": "kube-proxy"})
            }
            "AccessEntry" => {
                self.cluster();
                let role = self.role("people", "ec2.amazonaws.com", &[]);
                json!({
                    "clusterName": "base", "principalARN": role, "kubernetesGroups": ["people"],
                    "accessPolicies": [{
                        "policyARN": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
                        "accessScope": {"type": "cluster"},
                    }],
                })
            }
            "PodIdentityAssociation" => {
                self.cluster();
                let role = self.role("pods", "pods.eks.amazonaws.com", &[]);
                json!({"clusterName": "base", "namespace": "apps", "serviceAccount": "worker", "roleARN": role})
            }
            other => panic!("no ground for {other}"),
        }
    }

    fn call(&self, service: Service, operation: &str, parameters: Value) -> Value {
        let call = Drift::Call {
            service,
            operation: operation.into(),
            account: ACCOUNT.parse().unwrap(),
            region: REGION.parse().unwrap(),
            parameters,
        };
        self.aws.drift(call).unwrap()
    }

    fn made(&self, operation: &str, parameters: Value, id: &str) -> String {
        let answer = self.call(Service::Ec2, operation, parameters);
        answer.pointer(id).and_then(Value::as_str).unwrap_or_else(|| panic!("no {id} in {answer}")).to_owned()
    }

    fn vpc(&self) -> String {
        self.made("CreateVpc", json!({"CidrBlock": "10.0.0.0/16"}), "/vpc/vpcId")
    }

    fn subnet(&self, vpc: &str, zone: &str, block: u8) -> String {
        let parameters = json!({
            "VpcId": vpc, "CidrBlock": format!("10.0.{block}.0/24"), "AvailabilityZone": format!("{REGION}{zone}"),
        });
        self.made("CreateSubnet", parameters, "/subnet/subnetId")
    }

    fn gateway(&self, vpc: &str) -> String {
        let gateway = self.made("CreateInternetGateway", json!({}), "/internetGateway/internetGatewayId");
        self.call(Service::Ec2, "AttachInternetGateway", json!({"InternetGatewayId": gateway, "VpcId": vpc}));
        gateway
    }

    fn role(&self, name: &str, service: &str, policies: &[&str]) -> String {
        let parameters = json!({"RoleName": name, "AssumeRolePolicyDocument": trust(service)});
        self.call(Service::Iam, "CreateRole", parameters);
        for policy in policies {
            let policy = format!("arn:aws:iam::aws:policy/{policy}");
            self.call(Service::Iam, "AttachRolePolicy", json!({"RoleName": name, "PolicyArn": policy}));
        }
        format!("arn:aws:iam::{ACCOUNT}:role/{name}")
    }

    fn cluster_ground(&self) -> (Vec<String>, String) {
        let vpc = self.vpc();
        let role = self.role("control-plane", "eks.amazonaws.com", &["AmazonEKSClusterPolicy"]);
        (vec![self.subnet(&vpc, "a", 0), self.subnet(&vpc, "b", 1)], role)
    }

    /// A cluster `base`; its subnets.
    fn cluster(&self) -> Vec<String> {
        let (subnets, role) = self.cluster_ground();
        self.aws.step(Duration::from_secs(60));
        let parameters = json!({
            "name": "base", "version": "1.34", "roleArn": role,
            "resourcesVpcConfig": {"subnetIds": subnets, "endpointPrivateAccess": true, "endpointPublicAccess": false},
            "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": false},
        });
        self.call(Service::Eks, "CreateCluster", parameters);
        subnets
    }
}

fn document(effect: &str, rest: &Value) -> String {
    let mut statement = rest.clone();
    statement["Effect"] = effect.into();
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

fn trust(service: &str) -> String {
    document(
        "Allow",
        &json!({"Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]}),
    )
}
