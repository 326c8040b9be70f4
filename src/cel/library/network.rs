//! IP addresses and networks, as Kubernetes has them in CEL.

use std::net::{IpAddr, Ipv6Addr};

use ::cel::common::types::{CelBool, CelInt, CelString, STRING_TYPE};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};
use ipnet::IpNet;

use super::opaque::opaque;
use super::{Arguments, failed, opaque_argument, text};

/// An address.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cel) struct Ip(pub(in crate::cel) IpAddr);
opaque!(Ip, IP, "net.IP");

/// A network, with the address it is written with.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cel) struct Cidr(pub(in crate::cel) IpNet);
opaque!(Cidr, CIDR, "net.CIDR");

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(IP.to_owned())?;
    env.add_type(CIDR.to_owned())?;
    let string = || vec![STRING_TYPE];
    env.add_overload("ip", "string_to_ip", string(), |args| {
        Ok(CowVal::owned(Ip(address("ip", text("ip", &args, 0)?)?)))
    })?;
    env.add_overload("isIP", "is_ip", string(), |args| {
        Ok(boolean(address("isIP", text("isIP", &args, 0)?).is_ok()))
    })?;
    env.add_overload("ip.isCanonical", "ip_is_canonical", string(), |args| {
        let written = text("ip.isCanonical", &args, 0)?;
        Ok(boolean(address("ip.isCanonical", written)?.to_string() == written))
    })?;
    env.add_overload("string", "ip_to_string", vec![IP.to_owned()], |args| {
        Ok(CowVal::owned(CelString::from(ip(&args)?.to_string())))
    })?;
    env.add_member_overload("family", "ip_family", IP.to_owned(), vec![], |args| {
        Ok(CowVal::owned(CelInt::from(if ip(&args)?.is_ipv4() { 4 } else { 6 })))
    })?;
    env.add_member_overload("isUnspecified", "ip_is_unspecified", IP.to_owned(), vec![], |args| {
        Ok(boolean(ip(&args)?.is_unspecified()))
    })?;
    env.add_member_overload("isLoopback", "ip_is_loopback", IP.to_owned(), vec![], |args| {
        Ok(boolean(ip(&args)?.is_loopback()))
    })?;
    let none = Vec::new;
    env.add_member_overload("isLinkLocalMulticast", "ip_link_multicast", IP.to_owned(), none(), |args| {
        Ok(boolean(is_link_local_multicast(ip(&args)?)))
    })?;
    env.add_member_overload("isLinkLocalUnicast", "ip_link_unicast", IP.to_owned(), none(), |args| {
        Ok(boolean(is_link_local_unicast(ip(&args)?)))
    })?;
    env.add_member_overload("isGlobalUnicast", "ip_global_unicast", IP.to_owned(), none(), |args| {
        Ok(boolean(is_global_unicast(ip(&args)?)))
    })?;
    register_networks(env)
}

fn register_networks(env: &mut Env) -> Result<(), DeclarationError> {
    let string = || vec![STRING_TYPE];
    env.add_overload("cidr", "string_to_cidr", string(), |args| {
        Ok(CowVal::owned(Cidr(network("cidr", text("cidr", &args, 0)?)?)))
    })?;
    env.add_overload("isCIDR", "is_cidr", string(), |args| {
        Ok(boolean(network("isCIDR", text("isCIDR", &args, 0)?).is_ok()))
    })?;
    env.add_overload("string", "cidr_to_string", vec![CIDR.to_owned()], |args| {
        Ok(CowVal::owned(CelString::from(cidr(&args, 0)?.to_string())))
    })?;
    env.add_member_overload(
        "containsIP",
        "cidr_contains_ip",
        CIDR.to_owned(),
        vec![IP.to_owned()],
        |args| {
            let wanted = opaque_argument::<Ip>("containsIP", &args, 1)?.0;
            Ok(boolean(cidr(&args, 0)?.contains(&wanted)))
        },
    )?;
    env.add_member_overload("containsIP", "cidr_contains_ip_text", CIDR.to_owned(), string(), |args| {
        let wanted = address("containsIP", text("containsIP", &args, 1)?)?;
        Ok(boolean(cidr(&args, 0)?.contains(&wanted)))
    })?;
    let network_type = || vec![CIDR.to_owned()];
    env.add_member_overload("containsCIDR", "cidr_contains", CIDR.to_owned(), network_type(), |args| {
        Ok(boolean(cidr(&args, 0)?.contains(&cidr(&args, 1)?)))
    })?;
    env.add_member_overload("containsCIDR", "cidr_contains_text", CIDR.to_owned(), string(), |args| {
        let wanted = network("containsCIDR", text("containsCIDR", &args, 1)?)?;
        Ok(boolean(cidr(&args, 0)?.contains(&wanted)))
    })?;
    env.add_member_overload("ip", "cidr_ip", CIDR.to_owned(), vec![], |args| {
        Ok(CowVal::owned(Ip(cidr(&args, 0)?.addr())))
    })?;
    env.add_member_overload("masked", "cidr_masked", CIDR.to_owned(), vec![], |args| {
        Ok(CowVal::owned(Cidr(cidr(&args, 0)?.trunc())))
    })?;
    env.add_member_overload("prefixLength", "cidr_prefix_length", CIDR.to_owned(), vec![], |args| {
        Ok(CowVal::owned(CelInt::from(i64::from(cidr(&args, 0)?.prefix_len()))))
    })
}

fn boolean<'b, 'v>(value: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelBool::from(value))
}

fn ip(args: &Arguments<'_, '_>) -> Result<IpAddr, ExecutionError> {
    Ok(opaque_argument::<Ip>("ip", args, 0)?.0)
}

fn cidr(args: &Arguments<'_, '_>, index: usize) -> Result<IpNet, ExecutionError> {
    Ok(opaque_argument::<Cidr>("cidr", args, index)?.0)
}

/// Zones and addresses of one family inside the other are refused: they would compare as something else.
fn address(function: &str, written: &str) -> Result<IpAddr, ExecutionError> {
    let address: IpAddr =
        written.parse().map_err(|_| failed(function, "the text is no IP address without a zone"))?;
    match address {
        IpAddr::V6(inner) if is_mapped(inner) => {
            Err(failed(function, "an IPv4 address inside of an IPv6 one is not allowed"))
        }
        address => Ok(address),
    }
}

fn network(function: &str, written: &str) -> Result<IpNet, ExecutionError> {
    let network: IpNet =
        written.parse().map_err(|_| failed(function, "the text is no network such as 10.0.0.0/16"))?;
    match network.addr() {
        IpAddr::V6(inner) if is_mapped(inner) => {
            Err(failed(function, "an IPv4 address inside of an IPv6 one is not allowed"))
        }
        _ => Ok(network),
    }
}

fn is_mapped(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        // The low half of the second byte is the scope.
        IpAddr::V6(address) => matches!(address.octets(), [0xff, second, ..] if second & 0x0f == 0x02),
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// As Go sees it: everything but broadcast, unspecified, loopback, multicast and link-local addresses.
fn is_global_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}
