//! Amazon EC2: networks, as ACK's ec2-controller names them.

mod elastic_ip_address;
mod internet_gateway;
mod nat_gateway;
mod route_table;
mod security_group;
mod subnet;
mod vpc;

pub use elastic_ip_address::*;
pub use internet_gateway::*;
pub use nat_gateway::*;
pub use route_table::*;
pub use security_group::*;
pub use subnet::*;
pub use vpc::*;
