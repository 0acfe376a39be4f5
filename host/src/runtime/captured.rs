//! Standard output and error of a guest: the first bytes are kept, the rest is counted, too much is a trap.

use bytes::Bytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// A guest that prints this many times what is kept does nothing else any more.
const FLOOD: usize = 64;

/// Where a guest prints to.
#[derive(Clone)]
pub struct Captured {
    keep: usize,
    state: Arc<Mutex<(Vec<u8>, usize)>>,
}

impl Captured {
    pub(super) fn new(keep: usize) -> Self {
        Self { keep, state: Arc::default() }
    }

    /// The kept bytes as text.
    pub(super) fn text(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&state.0).into_owned()
    }

    fn push(&self, bytes: &[u8]) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.keep.saturating_sub(state.0.len());
        state.0.extend_from_slice(&bytes[..room.min(bytes.len())]);
        state.1 = state.1.saturating_add(bytes.len());
        if state.1 > self.keep.saturating_mul(FLOOD) {
            return Err(format!("printed more than {} bytes (limits: captured_bytes × {FLOOD})", self.keep * FLOOD));
        }
        Ok(())
    }
}

impl IsTerminal for Captured {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Captured {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Captured {
    async fn ready(&mut self) {}
}

impl OutputStream for Captured {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes).map_err(|reason| StreamError::Trap(wasmtime::Error::msg(reason)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

impl AsyncWrite for Captured {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(self.push(bytes).map(|()| bytes.len()).map_err(std::io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
