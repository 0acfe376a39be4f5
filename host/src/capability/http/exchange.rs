//! From a guest's request to an answer: hop by hop, each judged anew.

use super::connect::{self, Begun, deepest};
use super::{ANSWERS, Answer, Caller, Failure, Request, Times};
use crate::egress::{self, Hop, Refusal, Target};
use crate::grant::HttpRule;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::{BodyExt as _, Full};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Who is asking, where the guest does not say: servers turn nameless clients away.
const USER_AGENT: &str = concat!("astrarium/", env!("CARGO_PKG_VERSION"));

/// Addresses of one name that are looked at; who has more is no server that people use.
const ADDRESSES: usize = 32;

impl Caller {
    /// Sends a request and answers with the whole response, or with the reason why there is none.
    pub(super) async fn send(&self, request: Request) -> Result<Answer, Failure> {
        let shown = shown(&request);
        // It is never closed.
        let _turn = self.together.under_way.acquire().await;
        let outcome = self.judge_and_send(request).await.and_then(|answer| self.counted(answer));
        self.note(&outcome, &shown);
        outcome
    }

    /// The answer, where it and those before it are not too much together.
    fn counted(&self, answer: Answer) -> Result<Answer, Failure> {
        let size = answer.body.len() as u64;
        let most = self.sizes.response.saturating_mul(ANSWERS);
        let before = self.together.bytes.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > most {
            let words = format!(
                "http: the answers of one call are larger than {most} bytes together (limits: {ANSWERS} times \
                 http_response_bytes); ask for the rest in another call"
            );
            return Err(Refusal::TooLarge(words).into());
        }
        Ok(answer)
    }

    async fn judge_and_send(&self, request: Request) -> Result<Answer, Failure> {
        let Times { total, connect, first_byte, between_bytes } = request.times;
        if [total, connect, first_byte, between_bytes].contains(&Some(Duration::ZERO)) {
            return Err(Refusal::Invalid("http: a time-out of 0 is none; give at least 1 ms".into()).into());
        }
        let target = Target::parse(&request.url, self.sizes.bounds.url)?;
        // Methods are written in capitals; `get` is another method to a server.
        let method = request.method.to_ascii_uppercase();
        let rules = egress::judge(&self.env.plugin, &self.env.effective.http, &method, &target)?;
        // The most exact rule counts, as it does for all else.
        let time = rules.first().and_then(|rule| rule.timeout_ms).map(Duration::from_millis);
        let time = time.unwrap_or(self.sizes.total).min(self.sizes.total);
        let time = request.times.total.unwrap_or(time).min(time);
        let origin = target.origin();
        let first = Hop { target, method, with_body: request.body.is_some(), at_home: true };
        match tokio::time::timeout(time, self.hops(first, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Time(format!("{origin} did not answer in full within {} ms", time.as_millis()))),
        }
    }

    async fn hops(&self, mut hop: Hop, request: Request) -> Result<Answer, Failure> {
        for _ in 0..=self.sizes.redirects {
            let rules = egress::judge(&self.env.plugin, &self.env.effective.http, &hop.method, &hop.target)?;
            let addresses = self.addresses(&hop.target).await?;
            let rule = egress::judge_addresses(&rules, &hop.target, &addresses)?;
            let headers = egress::judge_headers(rule, &request.headers, self.sizes.bounds)?;
            let most = rule.request_bytes.unwrap_or(u64::MAX).min(self.sizes.request);
            let size = request.body.as_ref().map_or(0, Bytes::len) as u64;
            if size > most {
                let words = format!("http: a body of {size} bytes; at most {most} (limits: http_request_bytes)");
                return Err(Refusal::TooLarge(words).into());
            }
            let injecting = hop.at_home && !rule.inject.is_empty();
            let sent = self.dressed(rule, &hop, headers, &request.body).await?;
            self.record_first(&format!("{} {}", hop.method, hop.target.origin()), &rule.origin.to_string())?;
            let bytes = self.sizes.bounds.headers;
            let begun = connect::exchange(&self.web.tls, &hop.target, &addresses, sent, bytes, request.times).await?;
            let head = &begun.response;
            let location = head.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
            if location.is_some_and(|location| self.scrub().finds(location)) {
                let words = format!("http: {} redirects to a URL with an injected secret in it", hop.target.origin());
                return Err(Refusal::Denied(words).into());
            }
            let next = match request.follow {
                true => egress::next_hop(&hop, head.status().as_u16(), location, self.sizes.bounds.url)?,
                false => None,
            };
            match next {
                Some(next) => hop = next,
                None => return self.answer(rule, &hop, begun, request.times, injecting).await,
            }
        }
        Err(Refusal::TooLarge(format!("http: more than {} redirects (limits: http_redirects)", self.sizes.redirects))
            .into())
    }

    /// All addresses of a target.
    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Failure> {
        let addresses: Vec<IpAddr> = match &target.host {
            url::Host::Ipv4(address) => vec![(*address).into()],
            url::Host::Ipv6(address) => vec![(*address).into()],
            url::Host::Domain(name) => {
                let found = self.web.names.0.addresses(name).await;
                found.map_err(|error| Failure::Name(format!("the name {name} does not resolve: {error}")))?
            }
        };
        if addresses.is_empty() || addresses.len() > ADDRESSES {
            return Err(Failure::Name(format!("the name {} has {} addresses", target.host, addresses.len())));
        }
        Ok(addresses)
    }

    /// The request as it is sent, built from parts that were judged; the secrets come last.
    async fn dressed(
        &self,
        rule: &HttpRule,
        hop: &Hop,
        headers: HeaderMap,
        body: &Option<Bytes>,
    ) -> Result<http::Request<Full<Bytes>>, Failure> {
        let invalid = |what: &str| Failure::Refused(Refusal::Invalid(format!("http: {what}")));
        let mut headers = if hop.at_home { headers } else { egress::carried_across(&headers) };
        if !hop.with_body {
            headers.remove(header::CONTENT_TYPE);
        }
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        let authority = HeaderValue::from_str(&hop.target.authority()).map_err(|_| invalid("the host is no header"))?;
        headers.insert(header::HOST, authority);
        if hop.at_home {
            for (name, template) in &rule.inject {
                let secret = self.web.told.read(&template.secret, self.env.secrets.get(&template.secret)).await?;
                self.scrub().add(&template.secret, &secret);
                let name =
                    HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("an injected header has no name"))?;
                let mut value = HeaderValue::from_str(&template.fill(&secret))
                    .map_err(|_| invalid("an injected secret holds what no header can"))?;
                value.set_sensitive(true);
                headers.insert(name, value);
                // A secret that comes back compressed would not be found.
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
        }
        let body = body.clone().filter(|_| hop.with_body).unwrap_or_default();
        let mut sent = http::Request::new(Full::new(body));
        *sent.method_mut() =
            http::Method::from_bytes(hop.method.as_bytes()).map_err(|_| invalid("that is no method"))?;
        // A path alone, and the host in its header: an absolute form could name another.
        *sent.uri_mut() = hop.target.path.parse().map_err(|_| invalid("the path does not read"))?;
        *sent.headers_mut() = headers;
        Ok(sent)
    }

    /// Reads the body within its bounds, and takes the secrets out of everything.
    async fn answer(
        &self,
        rule: &HttpRule,
        hop: &Hop,
        begun: Begun,
        times: Times,
        injected: bool,
    ) -> Result<Answer, Failure> {
        let Begun { response, connection: _running } = begun;
        let origin = hop.target.origin();
        let (head, mut body) = response.into_parts();
        let encoded = head.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        if injected && encoded {
            return Err(Failure::Broken(format!(
                "{origin} compressed its answer, in which an injected secret could not be found"
            )));
        }
        let most = rule.response_bytes.unwrap_or(u64::MAX).min(self.sizes.response) as usize;
        // So far past the end that no secret is cut in two there.
        let read_on = most + self.scrub().longest();
        let mut bytes: Vec<u8> = Vec::new();
        while bytes.len() <= read_on {
            let frame = match times.between_bytes {
                None => body.frame().await,
                Some(patience) => tokio::time::timeout(patience, body.frame())
                    .await
                    .map_err(|_| Failure::Time(format!("{origin} stopped in the middle of its answer")))?,
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| {
                Failure::Broken(format!("{origin} broke off in the middle of its answer: {}", deepest(&error)))
            })?;
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(data);
            }
        }
        let longer = bytes.len() > most;
        let mut headers = head.headers;
        let mut url = hop.target.to_string();
        let scrub = self.scrub();
        if !scrub.is_empty() {
            bytes = scrub.bytes(&bytes);
            url = scrub.text(&url);
            headers = headers
                .iter()
                .filter_map(|(name, value)| {
                    let name = HeaderName::from_bytes(scrub.text(name.as_str()).as_bytes()).ok()?;
                    Some((name, HeaderValue::from_bytes(&scrub.bytes(value.as_bytes())).ok()?))
                })
                .collect();
            // It counted what has been taken out.
            headers.remove(header::CONTENT_LENGTH);
        }
        let truncated = longer || bytes.len() > most;
        bytes.truncate(most);
        Ok(Answer { status: head.status.as_u16(), headers, body: bytes, truncated, url })
    }
}

/// Method and origin, for the log: what follows may hold a key.
fn shown(request: &Request) -> String {
    let origin = Target::parse(&request.url, 64 << 10).map(|target| target.origin());
    format!("{} {}", request.method, origin.unwrap_or_else(|_| "what is no URL".into()))
}
