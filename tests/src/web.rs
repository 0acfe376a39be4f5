//! A server on loopback for the guests' http door, written on the bare socket, so that it can answer as no server should;
//! and a resolver whose names lead where a test wants.

use astrarium::capability::http::{Names, Resolve};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A request as it arrived.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The request line, and a line for each header.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Seen {
    /// The request line's target.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// A running server; it stops when it is dropped.
pub struct Web {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

/// What is sent back, byte for byte. An empty answer keeps the connection open and says nothing.
pub type Answer = Vec<u8>;

/// An answer with a length.
pub fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}

/// A redirect.
pub fn redirect(location: &str) -> Answer {
    answer("302 Found", &[("location", location)], "")
}

impl Web {
    /// Starts a server on a free port of 127.0.0.1.
    pub async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"), answer).await
    }

    /// Starts a server at an address of loopback.
    pub async fn at(address: SocketAddr, answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(address, None, answer).await
    }

    /// Starts a server of TLS on a free port, with a certificate for `name`; answers also with that certificate, as PEM.
    pub async fn tls(name: &str, answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate can be made");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("its key reads");
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("the certificate fits its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let address = "127.0.0.1:0".parse().expect("an address");
        (Self::with(address, Some(acceptor), answer).await, made.cert.pem())
    }

    async fn with(
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (answer, kept) = (Arc::new(answer), seen.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, kept, tls) = (answer.clone(), kept.clone(), tls.clone());
                tokio::spawn(async move {
                    // A client that hangs up is part of many tests.
                    let _ = match tls {
                        None => serve(stream, &*answer, &kept).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &*answer, &kept).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self { address, seen, task }
    }

    /// `http://HOST:PORT` by another name.
    pub fn named(&self, host: &str) -> String {
        format!("http://{host}:{}", self.address.port())
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: impl Fn(&Seen) -> Answer,
    kept: &Mutex<Vec<Seen>>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let mut seen = Seen { head: String::from_utf8_lossy(&bytes[..end]).into_owned(), body: String::new() };
    let length = seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    seen.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    let answer = answer(&seen);
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    if answer.is_empty() {
        std::future::pending::<()>().await;
    }
    stream.write_all(&answer).await?;
    stream.shutdown().await
}

/// A resolver of a test's own. Each name has a list of answers, used one after another; the last one stays.
#[derive(Clone, Default)]
pub struct Planned(Arc<Mutex<HashMap<String, Plan>>>);

#[derive(Default)]
struct Plan {
    answers: Vec<Vec<IpAddr>>,
    asked: usize,
}

impl Planned {
    /// Plans the answers of a name: addresses separated by blanks, one text for each time it is asked.
    pub fn name(self, name: &str, answers: &[&str]) -> Self {
        let read = |text: &&str| text.split_whitespace().map(|address| address.parse().expect("an address")).collect();
        let plan = Plan { answers: answers.iter().map(read).collect(), asked: 0 };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), plan);
        self
    }

    /// How often a name was asked for.
    pub fn asked(&self, name: &str) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).map_or(0, |plan| plan.asked)
    }

    /// For the host's options.
    pub fn names(&self) -> Names {
        Names::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Resolve for Planned {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plans.get_mut(name).ok_or_else(|| io::Error::other("no such name"))?;
        let at = plan.asked.min(plan.answers.len() - 1);
        plan.asked += 1;
        Ok(plan.answers[at].clone())
    }
}
