//! wasi:http through the same door: language runtimes import it, and whoever uses it is judged like everybody else.

use super::{Answer, Caller, Failure, Request, Times};
use crate::egress::Refusal;
use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::Frame;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// The door as wasi:http finds it.
pub(crate) struct Hooks(pub(crate) Caller);

type Sent = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let caller = self.0.clone();
        Box::new(async move {
            let request = taken(request, options, caller.sizes.request).await?;
            let answer = caller.send(request).await.map_err(|failure| told(&caller, failure))?;
            let done: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(async { Ok(()) });
            Ok((given(answer)?, done))
        })
    }
}

/// The guest's request, with its body read to the end. The URL is taken as text and read again by the judgement: what
/// wasi:http made of it does not count.
async fn taken(
    request: http::Request<WasiBody>,
    options: Option<RequestOptions>,
    limit: u64,
) -> Result<Request, Error> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, limit as usize).collect().await.map_err(|error| match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(_) => Error::HttpRequestBodySize(Some(limit)),
    })?;
    let body = body.to_bytes();
    let own = |name: &str| matches!(name, "host" | "content-length");
    let headers = head.headers.iter().filter(|(name, _)| !own(name.as_str()));
    let options = options.unwrap_or_default();
    Ok(Request {
        method: head.method.to_string(),
        url: head.uri.to_string(),
        headers: headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
        body: (!body.is_empty()).then_some(body),
        times: Times {
            total: None,
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            between_bytes: options.between_bytes_timeout,
        },
        follow: false,
    })
}

/// A body that was cut ends in an error: the guest must not take a part for the whole.
fn given(answer: Answer) -> Result<http::Response<WasiBody>, Error> {
    let size = answer.body.len() as u64;
    let mut frames = vec![Ok(Frame::data(Bytes::from(answer.body)))];
    if answer.truncated {
        frames.push(Err(Error::HttpResponseBodySize(Some(size))));
    }
    let mut response = http::Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(answer.status).map_err(|_| Error::HttpProtocolError)?;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

/// The nearest of the errors that wasi:http knows; those that have words carry ours.
fn told(caller: &Caller, failure: Failure) -> Error {
    match failure {
        Failure::Refused(Refusal::Denied(_)) => Error::HttpRequestDenied,
        Failure::Refused(Refusal::Address(_)) => Error::DestinationIpProhibited,
        Failure::Refused(Refusal::Invalid(words) | Refusal::TooLarge(words))
        | Failure::Secret(words)
        | Failure::Unrecorded(words) => Error::InternalError(Some(caller.scrubbed(words))),
        Failure::Time(_) => Error::HttpResponseTimeout,
        Failure::Name(_) => Error::DnsError { rcode: None, info_code: None },
        Failure::Connect(_) => Error::ConnectionRefused,
        Failure::Tls(_) => Error::TlsProtocolError,
        Failure::Broken(_) => Error::HttpProtocolError,
    }
}
