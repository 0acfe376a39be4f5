//! Sends whatever request it is told to by wasi:http, as a language runtime would that knows nothing of the host.

use astrarium_sdk::{Context, Error, Output, Tool, tools};
use serde_json::json;
use wasi::http::outgoing_handler;
use wasi::http::types::{Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme};
use wasi::io::streams::StreamError;

/// Sends a request by wasi:http.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct WasiSend {
    /// Host and port.
    authority: String,
    /// Path and query, or whatever is put in their place.
    #[serde(default = "root")]
    path: String,
    /// `http`, `https` or another.
    #[serde(default = "http")]
    scheme: String,
    /// Its method.
    #[serde(default = "get")]
    method: String,
    /// Its headers.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Its body.
    #[serde(default)]
    body: String,
    /// Nanoseconds to the first byte.
    first_byte_ns: Option<u64>,
}

fn root() -> String {
    "/".into()
}

fn http() -> String {
    "http".into()
}

fn get() -> String {
    "GET".into()
}

impl Tool for WasiSend {
    const NAME: &'static str = "wasi_send";

    fn call(self, _: &Context) -> Result<Output, Error> {
        let refused = |what: &str| Error::failed(format!("wasi:http does not take the {what}"));
        let headers: Vec<_> = self.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        let headers = Fields::from_list(&headers).map_err(|error| Error::failed(format!("headers: {error:?}")))?;
        let request = OutgoingRequest::new(headers);
        let scheme = match self.scheme.as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => Scheme::Other(other.into()),
        };
        request.set_scheme(Some(&scheme)).map_err(|()| refused("scheme"))?;
        request.set_method(&Method::Other(self.method)).map_err(|()| refused("method"))?;
        request.set_authority(Some(&self.authority)).map_err(|()| refused("authority"))?;
        request.set_path_with_query(Some(&self.path)).map_err(|()| refused("path"))?;
        let options = RequestOptions::new();
        if let Some(time) = self.first_byte_ns {
            options.set_first_byte_timeout(Some(time)).map_err(|()| refused("time-out"))?;
        }
        let body = request.body().map_err(|()| refused("body"))?;
        let pending =
            outgoing_handler::handle(request, Some(options)).map_err(|error| Error::failed(format!("{error:?}")))?;
        if !self.body.is_empty() {
            let stream = body.write().map_err(|()| refused("stream"))?;
            let written = stream.blocking_write_and_flush(self.body.as_bytes());
            written.map_err(|error| Error::failed(format!("{error:?}")))?;
        }
        OutgoingBody::finish(body, None).map_err(|error| Error::failed(format!("{error:?}")))?;
        pending.subscribe().block();
        let answer = pending.get().ok_or_else(|| refused("wait"))?.map_err(|()| refused("second look"))?;
        show(&answer.map_err(|error| Error::failed(format!("{error:?}")))?)
    }
}

fn show(answer: &IncomingResponse) -> Result<Output, Error> {
    let headers = answer.headers().entries();
    let headers: Vec<_> =
        headers.into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
    let body = answer.consume().map_err(|()| Error::failed("there is no body"))?;
    let stream = body.stream().map_err(|()| Error::failed("the body has no stream"))?;
    let (mut bytes, mut broken) = (Vec::new(), None);
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(part) => bytes.extend(part),
            Err(StreamError::Closed) => break,
            Err(error) => {
                broken = Some(format!("{error:?}"));
                break;
            }
        }
    }
    let shown = json!({
        "status": answer.status(),
        "length": bytes.len(),
        "headers": headers,
        "broken": broken,
        "body": String::from_utf8_lossy(&bytes[..bytes.len().min(4_096)]),
    });
    Ok(shown.to_string().into())
}

tools!(WasiSend);
