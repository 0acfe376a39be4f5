//! Which addresses are public, and which of the others a rule grants. After the registries of special-purpose addresses
//! (RFC 6890 and what came after it), and the places where clouds keep what a machine knows about itself.

use super::{Refusal, Target};
use crate::grant::{HostPattern, HttpRule};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// What an address is, when it is not a public one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This machine.
    Loopback,
    /// A network of its owner's own.
    Private,
    /// Shared behind a carrier's translation (RFC 6598).
    Shared,
    /// This link only.
    LinkLocal,
    /// For measuring devices (RFC 2544, RFC 5180).
    Benchmarking,
    /// A cloud's own service, which hands out keys to whoever asks.
    Metadata,
    /// An IPv6 address that stands for this IPv4 one, or whose inside cannot be told.
    Translated(Option<Ipv4Addr>),
    /// No address at all; systems take it for this machine.
    Unspecified,
    /// Many machines at once.
    Multicast,
    /// For examples in writing.
    Documentation,
    /// For nobody, today.
    Reserved,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Loopback => "an address of this machine",
            Kind::Private => "a private address",
            Kind::Shared => "a shared address",
            Kind::LinkLocal => "a link-local address",
            Kind::Benchmarking => "a benchmarking address",
            Kind::Metadata => "a cloud's metadata service",
            Kind::Translated(_) => "a translated address",
            Kind::Unspecified => "the unspecified address",
            Kind::Multicast => "a multicast address",
            Kind::Documentation => "an address of documentation",
            Kind::Reserved => "a reserved address",
        }
    }
}

/// The first of the rules that allowed a request to `target` under which every address of its name may be connected to.
/// One address that is refused refuses the rule: a name that has both kinds is how a public name reaches inside.
pub fn judge_addresses<'a>(
    rules: &[&'a HttpRule],
    target: &Target,
    addresses: &[IpAddr],
) -> Result<&'a HttpRule, Refusal> {
    let judged = |rule| addresses.iter().try_for_each(|address| judge_address(rule, target, *address));
    let refusal = match rules.iter().find(|rule| judged(rule).is_ok()) {
        Some(rule) => return Ok(rule),
        None => rules.first().and_then(|rule| judged(rule).err()),
    };
    Err(refusal.unwrap_or_else(|| Refusal::Denied(format!("http: no rule reaches {}", target.origin()))))
}

/// Whether a connection to `address` may be made under `rule`.
fn judge_address(rule: &HttpRule, target: &Target, address: IpAddr) -> Result<(), Refusal> {
    let Some(kind) = kind(address) else { return Ok(()) };
    let named = || match (&rule.origin.host, address) {
        (HostPattern::One(Host::Ipv4(own)), IpAddr::V4(address)) => *own == address,
        (HostPattern::One(Host::Ipv6(own)), IpAddr::V6(address)) => *own == address,
        _ => false,
    };
    let (granted, cure) = match kind {
        Kind::Loopback | Kind::Private | Kind::Shared | Kind::LinkLocal | Kind::Benchmarking => {
            (rule.private, "an operator grants those with private: true in the rule")
        }
        Kind::Metadata => {
            (rule.private && named(), "an operator grants it by a rule for this very address, with private: true")
        }
        Kind::Translated(inside) => {
            let inside = inside.is_some_and(|inside| judge_address(rule, target, inside.into()).is_ok());
            (rule.private && inside, "an operator grants those with private: true in the rule")
        }
        Kind::Unspecified | Kind::Multicast | Kind::Documentation | Kind::Reserved => (false, "nothing grants those"),
    };
    if granted {
        return Ok(());
    }
    Err(Refusal::Address(format!(
        "http: {} leads to {address}, {}, and the rule {} does not reach those; do not retry; {cure}",
        target.origin(),
        kind.words(),
        rule.origin
    )))
}

/// What an address is; none when it is public.
pub fn kind(address: IpAddr) -> Option<Kind> {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Option<Kind> {
    Some(match address.octets() {
        // AWS, Google, Azure and most others; then Alibaba, Oracle, and Azure's second.
        [169, 254, 169, 254] | [169, 254, 170, 2] | [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => {
            Kind::Metadata
        }
        [0, ..] => Kind::Unspecified,
        [127, ..] => Kind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Kind::Private,
        [100, 64..=127, ..] => Kind::Shared,
        [169, 254, ..] => Kind::LinkLocal,
        [198, 18..=19, ..] => Kind::Benchmarking,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Kind::Documentation,
        // Protocol assignments, and the relay of 6to4.
        [192, 0, 0, _] | [192, 88, 99, _] => Kind::Reserved,
        [224..=239, ..] => Kind::Multicast,
        [240..=255, ..] => Kind::Reserved,
        _ => return None,
    })
}

fn kind_v6(address: Ipv6Addr) -> Option<Kind> {
    let low = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Kind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Loopback,
        // Amazon, and Google.
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => Kind::Metadata,
        // IPv4-compatible, IPv4-mapped, SIIT, NAT64.
        [0, 0, 0, 0, 0, 0, a, b]
        | [0, 0, 0, 0, 0, 0xffff, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x0064, 0xff9b, 0, 0, 0, 0, a, b] => Kind::Translated(Some(low(a, b))),
        // NAT64 with a prefix of its own; where the IPv4 address lies is the network's choice.
        [0x0064, 0xff9b, ..] => Kind::Translated(None),
        // 6to4, and Teredo, which hides the client's address by turning its bits.
        [0x2002, a, b, ..] => Kind::Translated(Some(low(a, b))),
        [0x2001, 0, _, _, _, _, a, b] => Kind::Translated(Some(low(!a, !b))),
        // ISATAP, under whatever prefix.
        [_, _, _, _, 0x0000 | 0x0200, 0x5efe, a, b] => Kind::Translated(Some(low(a, b))),
        [0xfe80..=0xfebf, ..] => Kind::LinkLocal,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Kind::Private,
        [0xff00..=0xffff, ..] => Kind::Multicast,
        [0x2001, 0x0002, 0, ..] => Kind::Benchmarking,
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Kind::Documentation,
        // Protocol assignments.
        [0x2001, 0..=0x01ff, ..] => Kind::Reserved,
        [0x2000..=0x3fff, ..] => return None,
        // Only 2000::/3 has been given out as global unicast.
        _ => Kind::Reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::rules;
    use super::*;
    use proptest::prelude::*;

    fn judged(rule: &str, address: IpAddr) -> bool {
        let target = Target::parse("https://a.org", 100).unwrap();
        judge_address(&rules(rule)[0], &target, address).is_ok()
    }

    const PUBLIC: &str = "[{ origin: 'https://*' }]";
    const PRIVATE: &str = "[{ origin: 'https://*', private: true }]";

    #[test]
    fn every_special_range_is_refused_at_both_ends() {
        for text in
            "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 \
             169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 \
             192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.7 \
             224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 100.100.100.200 :: ::1 ::127.0.0.1 \
             ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:10.0.0.1 64:ff9b::10.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 \
             100::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe::1 3fff::1 \
             3fff:fff::1 5f00::1 fc00::1 fdff::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1 \
             2600::5efe:10.0.0.1 2600::200:5efe:8.8.8.8 4000::1 1::1"
                .split(' ')
        {
            let address: IpAddr = text.parse().unwrap();
            assert!(!judged(PUBLIC, address), "{text}");
        }
        for text in "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
             169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 \
             198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 2001:4860:4860::8888 2606:4700::1111 2a00::1 \
             3ffe:ffff::1 3fff:1000::1"
            .split(' ')
        {
            let address: IpAddr = text.parse().unwrap();
            assert!(judged(PUBLIC, address), "{text} is {:?}", kind(address));
        }
    }

    #[test]
    fn a_rule_for_private_addresses_reaches_neither_metadata_nor_what_is_no_host() {
        for text in
            ["127.0.0.1", "10.1.2.3", "::1", "fd12::1", "fe80::1", "100.64.0.1", "::ffff:10.0.0.1", "2002:a00:1::1"]
        {
            assert!(judged(PRIVATE, text.parse().unwrap()), "{text}");
        }
        for text in "169.254.169.254 fd00:ec2::254 ::ffff:169.254.169.254 2002:a9fe:a9fe:: 64:ff9b::169.254.169.254 \
             0.0.0.0 :: 224.0.0.1 255.255.255.255 203.0.113.1 64:ff9b:1::1"
            .split(' ')
        {
            assert!(!judged(PRIVATE, text.parse().unwrap()), "{text}");
        }
        let metadata = "[{ origin: 'http://169.254.169.254', private: true }]";
        assert!(judged(metadata, "169.254.169.254".parse().unwrap()), "where it is named itself");
        assert!(!judged("[{ origin: 'http://169.254.169.254' }]", "169.254.169.254".parse().unwrap()));
    }

    #[test]
    fn the_refusal_says_what_the_address_is_and_what_would_grant_it() {
        let target = Target::parse("https://intra.example:8443/key", 100).unwrap();
        let refusal = judge_address(&rules(PUBLIC)[0], &target, "10.0.0.7".parse().unwrap()).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "http: https://intra.example:8443 leads to 10.0.0.7, a private address, and the rule https://* does not reach \
             those; do not retry; an operator grants those with private: true in the rule"
        );
    }

    proptest! {
        /// However an IPv4 address is wrapped, it is no better than it was, and a public rule takes no wrapped one at all.
        #[test]
        fn a_wrapped_address_is_no_way_around(inner: u32, low: u64) {
            let v4 = Ipv4Addr::from(inner);
            let [a, b] = [(inner >> 16) as u16, inner as u16];
            let [c, d, e, f] = [(low >> 48) as u16, (low >> 32) as u16, (low >> 16) as u16, low as u16];
            let wrapped = [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, a, b),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
                Ipv6Addr::new(0x2002, a, b, c, d, e, f, 1),
                Ipv6Addr::new(0x2001, 0, c, d, e, f, !a, !b),
                Ipv6Addr::new(0x2600, c, d, e, 0, 0x5efe, a, b),
            ];
            for address in wrapped {
                prop_assert!(!judged(PUBLIC, address.into()), "{address}");
                prop_assert!(!judged(PRIVATE, address.into()) || judged(PRIVATE, v4.into()), "{address}");
            }
        }

        #[test]
        fn what_a_public_rule_reaches_is_global(bits: u128, short: u32) {
            let v6 = Ipv6Addr::from(bits);
            if judged(PUBLIC, v6.into()) {
                prop_assert_eq!(bits >> 125, 1, "{}", v6);
            }
            let v4 = Ipv4Addr::from(short);
            if judged(PUBLIC, v4.into()) {
                prop_assert!(!v4.is_private() && !v4.is_loopback() && !v4.is_link_local() && !v4.is_multicast());
                prop_assert!(!v4.is_broadcast() && !v4.is_documentation() && !v4.is_unspecified());
            }
        }
    }
}
