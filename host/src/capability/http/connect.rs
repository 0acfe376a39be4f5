//! One connection for one request: to an address that was judged, with TLS where the scheme asks for it, in HTTP/1.1.

use super::{Failure, Times};
use crate::egress::Target;
use crate::grant::Scheme;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use rustls_platform_verifier::ConfigVerifierExt as _;
use std::error::Error as StdError;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::io::TokioIo;

/// How long one address may take to answer before the next is tried, where the guest says nothing: a handshake over a
/// slow satellite takes two seconds.
const CONNECT: Duration = Duration::from_secs(8);

/// Header lines of an answer; servers send a few dozen.
const ANSWER_HEADERS: usize = 128;

/// TLS with the system's certificates, set up when it is first needed: reading them takes some milliseconds.
#[derive(Default)]
pub(super) struct Tls(OnceLock<Result<Arc<rustls::ClientConfig>, String>>);

impl Tls {
    fn config(&self) -> Result<Arc<rustls::ClientConfig>, Failure> {
        let made = self.0.get_or_init(|| {
            // An error only says that another part of this process installed a provider first.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let mut config = rustls::ClientConfig::with_platform_verifier().map_err(|error| error.to_string())?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(Arc::new(config))
        });
        made.clone().map_err(|error| {
            Failure::Tls(format!(
                "no TLS, since the system's certificates do not load ({error}); install ca-certificates"
            ))
        })
    }
}

/// An answer that has begun. The connection ends when it is dropped.
pub(super) struct Begun {
    pub(super) response: http::Response<Incoming>,
    pub(super) connection: JoinSet<()>,
}

/// Sends `request`, whose URI is a path alone, to the first of `addresses` that takes a connection.
pub(super) async fn exchange(
    tls: &Tls,
    target: &Target,
    addresses: &[IpAddr],
    request: http::Request<Full<Bytes>>,
    header_bytes: usize,
    times: Times,
) -> Result<Begun, Failure> {
    let patience = times.connect.unwrap_or(CONNECT).min(CONNECT);
    let stream = reach(target, addresses, patience).await?;
    match target.scheme {
        Scheme::Http => speak(target, stream, request, header_bytes, times).await,
        Scheme::Https => {
            let connector = TlsConnector::from(tls.config()?);
            let name = match &target.host {
                url::Host::Domain(name) => rustls::pki_types::ServerName::try_from(name.clone())
                    .map_err(|_| Failure::Tls(format!("{name} is no name that a certificate can hold")))?,
                url::Host::Ipv4(address) => IpAddr::from(*address).into(),
                url::Host::Ipv6(address) => IpAddr::from(*address).into(),
            };
            let stream = tokio::time::timeout(patience, connector.connect(name, stream)).await;
            let stream = stream
                .map_err(|_| Failure::Time(format!("{} did not finish the TLS handshake in time", target.origin())))?
                .map_err(|error| {
                    Failure::Tls(format!("{} does not speak TLS as it should: {error}", target.origin()))
                })?;
            speak(target, stream, request, header_bytes, times).await
        }
    }
}

async fn reach(target: &Target, addresses: &[IpAddr], patience: Duration) -> Result<TcpStream, Failure> {
    let mut last = Failure::Name(format!("{} has no address", target.host));
    for address in addresses {
        let address = SocketAddr::new(*address, target.port);
        last = match tokio::time::timeout(patience, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small requests leave at once; a failure costs a few milliseconds.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => Failure::Connect(format!("cannot connect to {} ({address}): {error}", target.origin())),
            Err(_) => Failure::Time(format!("{} ({address}) did not take the connection in time", target.origin())),
        };
    }
    Err(last)
}

async fn speak(
    target: &Target,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: http::Request<Full<Bytes>>,
    header_bytes: usize,
    times: Times,
) -> Result<Begun, Failure> {
    let broken = |error: hyper::Error| Failure::Broken(format!("{} broke off: {}", target.origin(), deepest(&error)));
    let mut builder = http1::Builder::new();
    builder.max_headers(ANSWER_HEADERS).max_header_size(header_bytes);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut running = JoinSet::new();
    running.spawn(async move {
        // What goes wrong here is told to whoever waits for the answer or its body.
        let _ = connection.await;
    });
    let answer = sender.send_request(request);
    let response = match times.first_byte {
        None => answer.await,
        Some(patience) => tokio::time::timeout(patience, answer)
            .await
            .map_err(|_| Failure::Time(format!("{} did not begin to answer in time", target.origin())))?,
    };
    Ok(Begun { response: response.map_err(broken)?, connection: running })
}

/// The last cause, which is the plain one.
pub(super) fn deepest(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
