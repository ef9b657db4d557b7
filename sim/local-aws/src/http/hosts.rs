//! The host names of the server, as requests give them.
//!
//! A web page may let its own name point to this machine, and would then be a page of this server (DNS rebinding). Such
//! a request names the page's host, not a host of this server. A page of another origin may send requests, too; its
//! `Origin` header names the other origin.

use super::service::Refusal;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{StatusCode, Uri};
use std::net::{IpAddr, Ipv6Addr};

/// Accepts any name.
const ANY: &str = "*";

/// The names of this server.
#[derive(Debug)]
pub(super) struct Hosts {
    more: Vec<String>,
}

impl Hosts {
    /// Adds these names to the server's address and `localhost`.
    pub(super) fn new(more: &[String]) -> Self {
        Self { more: more.to_vec() }
    }

    /// Refuses a request for another host, or from a page of another host.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let named = headers.get_all(HOST).iter().map(text);
        // HTTP/2, and clients that take this server for a proxy, put the host into the URI.
        let asked = uri.authority().map(|authority| authority.as_str().to_owned());
        for host in named.chain(asked) {
            let name = name_of(&host);
            if !name.is_some_and(|name| self.is_ours(name)) {
                let way_out = match name {
                    Some(name) => format!(
                        " If programs reach the server by this name, start it with --allow-host {}.",
                        shown(name)
                    ),
                    None => String::new(),
                };
                let message = format!(
                    "Expected a Host header that names this server, and a port at most: localhost, an IP \
                     address, or a name that the server was given; found {}.{way_out}",
                    shown(&host)
                );
                let status = StatusCode::MISDIRECTED_REQUEST;
                return Err(Refusal::new("MisdirectedRequestException", status, &message));
            }
        }
        for origin in headers.get_all(ORIGIN).iter().map(text) {
            let host = origin.split_once("://").and_then(|(_, host)| name_of(host));
            if !host.is_some_and(|host| self.is_ours(host)) {
                let message = format!(
                    "Expected a request of a program, or of a page of this machine, found one of a page of {}. \
                     If that page may use the server, start it with --allow-host and the page's host.",
                    shown(&origin)
                );
                return Err(Refusal::new("ForbiddenOriginException", StatusCode::FORBIDDEN, &message));
            }
        }
        Ok(())
    }

    fn is_ours(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        let local = |name: &str| name.eq_ignore_ascii_case("localhost");
        // For every browser, a name below `localhost` is this machine. A page can have an address for its name only on
        // the server of this address.
        local(name)
            || name.rsplit_once('.').is_some_and(|(_, last)| local(last))
            || name.parse::<IpAddr>().is_ok()
            || self.more.iter().any(|more| more == ANY || more.eq_ignore_ascii_case(name))
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The name of a host, or its address, without a port and without the brackets of an IPv6 address. Absent: the text is
/// not a name or address with an optional port of digits. Browsers and proxies take the part behind an `@` for the
/// host, so a text with further parts names no host.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (address, port)
        }
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            name.bytes().all(plain).then_some((name, port))?
        }
    };
    let digits = |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let good = port.is_empty() || port.strip_prefix(':').is_some_and(digits);
    (good && !name.is_empty()).then_some(name)
}

/// A client's text as part of a sentence.
fn shown(text: &str) -> String {
    let clean = |c: char| match leasehold_engine::shown::is_hidden(c) {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    match text {
        "" => "none".to_owned(),
        text => text.chars().take(255).map(clean).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(more: &[&str], uri: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let more: Vec<String> = more.iter().map(ToString::to_string).collect();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        let checked = Hosts::new(&more).check(&uri.parse().expect("a URI"), &map);
        checked.err().map(|stranger| stranger.status.as_u16())
    }

    #[test]
    fn this_machine_and_addresses_are_ours() {
        for host in [
            "localhost",
            "LocalHost:4567",
            "localhost.:4567",
            "kinesis.localhost:4567",
            "127.0.0.1",
            "127.0.0.1:4567",
            "[::1]:4567",
            "192.168.1.2:4567",
        ] {
            assert_eq!(check(&[], "/", &[("host", host)]), None, "{host}");
        }
        assert_eq!(check(&[], "/", &[]), None, "a program of the last century");
        assert_eq!(check(&[], "http://127.0.0.1:4567/", &[]), None);
    }

    #[test]
    fn other_names_are_misdirected_unless_they_were_given() {
        for host in [
            "evil.example",
            "evil.example:4567",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "notlocalhost",
            "",
            "a b",
            // A text with more than a name and a port names no host.
            "localhost:1@evil.example",
            "localhost@evil.example",
            "localhost:",
            "localhost:80:80",
            "localhost:-1",
            "localhost:123456",
            "localhost/evil.example",
            "localhost, evil.example",
            "127.0.0.1:4567#@evil.example",
            "[::1]evil.example",
            "[::1]:4567@evil.example",
            "[localhost]",
            "[::1",
            "::1",
        ] {
            assert_eq!(check(&[], "/", &[("host", host)]), Some(421), "{host}");
        }
        assert_eq!(check(&["*"], "/", &[("host", "localhost:1@evil.example")]), Some(421), "no name at all");
        assert_eq!(check(&[], "http://evil.example/", &[]), Some(421));
        assert_eq!(check(&[], "/", &[("host", "localhost"), ("host", "evil.example")]), Some(421));
        let named = ["host.docker.internal", "leasehold"];
        assert_eq!(check(&named, "/", &[("host", "Host.Docker.Internal:4567")]), None);
        assert_eq!(check(&named, "/", &[("host", "leasehold:4567")]), None);
        assert_eq!(check(&named, "/", &[("host", "evil.example")]), Some(421));
        assert_eq!(check(&["*"], "/", &[("host", "evil.example")]), None);
    }

    #[test]
    fn pages_of_others_are_forbidden() {
        let host = ("host", "localhost:4567");
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://app.localhost"] {
            assert_eq!(check(&[], "/", &[host, ("origin", origin)]), None, "{origin}");
        }
        for origin in [
            "https://evil.example",
            "null",
            "",
            "http://localhost.evil.example",
            "http://localhost:1@evil.example",
            "http://localhost@evil.example",
            "http://localhost/evil.example",
        ] {
            assert_eq!(check(&[], "/", &[host, ("origin", origin)]), Some(403), "{origin}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do_and_repeats_no_control_character() {
        let mut headers = HeaderMap::new();
        let mut said = |host: &[u8]| {
            headers.insert(HOST, HeaderValue::from_bytes(host).expect("a value"));
            let stranger = Hosts::new(&[]).check(&Uri::from_static("/"), &headers);
            stranger.expect_err("a stranger").body["message"].as_str().unwrap_or_default().to_owned()
        };
        let message = said(b"a\xc2\x9bb:1");
        assert!(message.ends_with("found a\u{fffd}b:1."), "{message}");
        let message = said(b"named:1");
        assert!(message.ends_with("start it with --allow-host named."), "{message}");
    }
}
