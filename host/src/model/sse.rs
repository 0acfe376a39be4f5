//! Server-sent events over a byte stream: what the framing crate leaves open, which is a stall, a flood and a byte
//! order mark. It does not know what an event means, and never reconnects.
//!
//! Invariants: the idle clock runs on bytes, so that a comment or a ping keeps a slow answer alive; an event that the
//! stream did not finish is never handed on (HTML, section 9.2.6).

use super::wire::Limits;
use eventsource_stream::{EventStream, EventStreamError};
use futures::stream::{self, BoxStream, Stream, StreamExt};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its type; `message` where the server named none.
    pub event: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// Why a stream gives no further event. The words go into [`super::ModelError::Broken`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// Nothing came for too long.
    #[error("nothing came for {} s", .0.as_secs_f64())]
    Idle(Duration),
    /// One event outgrew its bound.
    #[error("one event is larger than {0} bytes")]
    TooLarge(usize),
    /// The answer outgrew its bound.
    #[error("the answer goes on past {0} bytes")]
    Endless(usize),
    /// The connection broke.
    #[error("the connection was lost ({0})")]
    Lost(String),
    /// The bytes are no text.
    #[error("the stream is not UTF-8")]
    NotText,
}

/// The events of `bytes`, in order. After an error the stream is over.
pub(super) fn events<S, B, E>(bytes: S, limits: Limits) -> BoxStream<'static, Result<Event, Fault>>
where
    S: Stream<Item = Result<B, E>> + Send + 'static,
    B: AsRef<[u8]> + Send + 'static,
    E: Display + Send + 'static,
{
    let unread = Arc::new(AtomicUsize::new(0));
    let guarded = guard(bytes.boxed(), limits, Arc::clone(&unread));
    EventStream::new(guarded)
        .map(move |event| {
            unread.store(0, Ordering::Relaxed);
            match event {
                Ok(event) => Ok(Event { event: event.event, data: event.data }),
                Err(EventStreamError::Transport(fault)) => Err(fault),
                Err(EventStreamError::Utf8(_) | EventStreamError::Parser(_)) => Err(Fault::NotText),
            }
        })
        .boxed()
}

/// The byte order mark, which a stream may begin with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What the guard remembers between two chunks.
struct Guard<B, E> {
    bytes: BoxStream<'static, Result<B, E>>,
    /// The first bytes, held back until it is known whether they are a byte order mark; `None` afterwards.
    head: Option<Vec<u8>>,
    over: bool,
    total: usize,
}

/// `bytes` with the idle clock, the bound on what belongs to no finished event yet, and without a byte order mark.
/// The framing crate cuts one byte off a mark of three and panics, so none may reach it.
fn guard<B, E>(
    bytes: BoxStream<'static, Result<B, E>>,
    limits: Limits,
    unread: Arc<AtomicUsize>,
) -> impl Stream<Item = Result<Vec<u8>, Fault>> + Send
where
    B: AsRef<[u8]> + Send + 'static,
    E: Display + Send + 'static,
{
    let state = Guard { bytes, head: Some(Vec::new()), over: false, total: 0 };
    stream::unfold((state, unread), move |(mut state, unread)| async move {
        if state.over {
            return None;
        }
        let item = match tokio::time::timeout(limits.idle, state.bytes.next()).await {
            Err(_) => Err(Fault::Idle(limits.idle)),
            Ok(None) => return None,
            Ok(Some(Err(error))) => Err(Fault::Lost(error.to_string())),
            Ok(Some(Ok(chunk))) => {
                let chunk = chunk.as_ref();
                let held = unread.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
                state.total = state.total.saturating_add(chunk.len());
                if held > limits.event_bytes {
                    Err(Fault::TooLarge(limits.event_bytes))
                } else if state.total > limits.answer_bytes {
                    Err(Fault::Endless(limits.answer_bytes))
                } else {
                    Ok(unmark(&mut state.head, chunk))
                }
            }
        };
        state.over = item.is_err();
        Some((item, (state, unread)))
    })
}

/// `chunk` without the byte order mark that the stream may begin with.
fn unmark(head: &mut Option<Vec<u8>>, chunk: &[u8]) -> Vec<u8> {
    let Some(mut bytes) = head.take() else { return chunk.to_vec() };
    bytes.extend_from_slice(chunk);
    if bytes.len() < BOM.len() && BOM.starts_with(&bytes) {
        *head = Some(bytes);
        return Vec::new();
    }
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits() -> Limits {
        Limits { idle: Duration::from_millis(200), event_bytes: 64, answer_bytes: 10_000, ..Limits::default() }
    }

    /// The events of these chunks; an error ends the list as its words.
    async fn read(chunks: Vec<Vec<u8>>) -> Vec<String> {
        let bytes = stream::iter(chunks.into_iter().map(Ok::<_, String>));
        let mut events = events(bytes, limits());
        let mut lines = Vec::new();
        while let Some(event) = events.next().await {
            lines.push(match event {
                Ok(Event { event, data }) => format!("{event}|{data}"),
                Err(fault) => fault.to_string(),
            });
        }
        lines
    }

    async fn one(text: &str) -> Vec<String> {
        read(vec![text.as_bytes().to_vec()]).await
    }

    #[tokio::test]
    async fn the_forms_that_servers_send() {
        assert_eq!(one("event: ping\ndata: {}\n\n").await, ["ping|{}"]);
        assert_eq!(one("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n").await, ["a|1", "message|2"]);
        assert_eq!(one("data:1\n\n").await, ["message|1"]);
        assert_eq!(one(": keep alive\n\n:\n\ndata: 1\n\n").await, ["message|1"]);
        assert_eq!(one("data: 1\ndata: 2\n\n").await, ["message|1\n2"]);
        assert_eq!(one("id: 7\nretry: 10\ndata: 1\nother: x\n\n").await, ["message|1"]);
    }

    #[tokio::test]
    async fn an_event_that_the_stream_did_not_finish_is_not_handed_on() {
        assert_eq!(one("data: 1\n\ndata: 2\n").await, ["message|1"]);
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_no_panic() {
        assert_eq!(one("\u{feff}data: 1\n\n").await, ["message|1"]);
        let chunks = [&b"\xef"[..], b"\xbb", b"\xbfdata: 1\n", b"\n"];
        assert_eq!(read(chunks.map(<[u8]>::to_vec).to_vec()).await, ["message|1"]);
    }

    #[tokio::test]
    async fn an_event_is_bounded_and_a_stream_far_beyond_it() {
        let flood = format!("data: {}", "x".repeat(100));
        assert_eq!(one(&flood).await, ["one event is larger than 64 bytes"]);
        let many: Vec<Vec<u8>> = (0..50).map(|n| format!("data: {n}\n\n").into_bytes()).collect();
        assert_eq!(read(many).await.len(), 50);
        let endless: Vec<Vec<u8>> = (0..2_000).map(|n| format!("data: {n}\n\n").into_bytes()).collect();
        assert_eq!(read(endless).await.pop().unwrap(), "the answer goes on past 10000 bytes");
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_an_error() {
        assert_eq!(read(vec![b"data: \xff\xfe\n\n".to_vec()]).await, ["the stream is not UTF-8"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_is_an_error_and_a_comment_is_not_a_stall() {
        let bytes = stream::unfold(0, |n| async move {
            tokio::time::sleep(Duration::from_millis(if n < 5 { 150 } else { 1000 })).await;
            Some((Ok::<_, String>(if n == 4 { &b"data: 1\n\n"[..] } else { &b": wait\n"[..] }), n + 1))
        });
        let events: Vec<_> = events(bytes, limits()).collect().await;
        assert_eq!(
            events,
            [Ok(Event { event: "message".into(), data: "1".into() }), Err(Fault::Idle(Duration::from_millis(200)))]
        );
    }

    proptest! {
        /// Where a network cuts the bytes, through characters and line ends too, changes nothing.
        #[test]
        fn cuts_change_nothing(cuts in proptest::collection::vec(0usize..70, 0..12)) {
            let text = "\u{feff}event: a\r\ndata: {\"é\":\"晴れ\"}\r\n\r\n: c\r\ndata:👍\n\n".as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| text[pair[0]..pair[1]].to_vec()).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let events = runtime.block_on(read(chunks));
            prop_assert_eq!(events, ["a|{\"é\":\"晴れ\"}", "message|👍"]);
        }
    }
}
