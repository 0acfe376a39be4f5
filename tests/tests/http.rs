//! The http door, from real guests to real servers on loopback: what leaves, what does not, and what comes back.

use astrarium::audit::Kind;
use astrarium::host::Host;
use astrarium::store::AuditFilter;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call};
use astrarium_tests::web::{Planned, Seen, Web, answer, redirect};
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// A host with both couriers, asking for `rules` and granted them. Names lead where `names` says.
async fn host(place: &Place, rules: &str, more: &str, names: &Planned) -> Host {
    for courier in ["courier", "courier-wasi"] {
        place.plugin(courier);
        let asked = rules.lines().map(|line| line.split(", inject:").next().unwrap_or(line));
        // A manifest cannot ask for secrets; the operator adds them.
        let asked: Vec<String> =
            asked
                .map(|line| {
                    if line.contains('{') && !line.trim_end().ends_with('}') {
                        format!("{line} }}")
                    } else {
                        line.into()
                    }
                })
                .collect();
        let manifest = format!("name: {courier}\nversion: 0.1.0\nrequests:\n  http:\n{}\n", asked.join("\n"));
        fs::write(place.plugins().join(courier).join("plugin.yaml"), manifest).unwrap();
    }
    let grants = ["courier", "courier-wasi"].map(|courier| format!("  - plugin: {courier}\n    http:\n{rules}\n"));
    place.config(&format!("language: en\n{more}\ngrants:\n{}", grants.concat()));
    let mut options = place.options();
    options.names = names.names();
    let host = Host::open(options).await.unwrap();
    assert!(host.problems.is_empty(), "{:?}", host.problems);
    host
}

async fn send(host: &Host, request: Value) -> (CallStatus, String) {
    let tool = if request.get("authority").is_some() { "wasi_send" } else { "send" };
    let finished = call(host, tool, request, &CancellationToken::new()).await;
    (finished.status, text_of(&finished.parts))
}

/// The answer of a request that must go through.
async fn sent(host: &Host, request: Value) -> Value {
    let (status, text) = send(host, request.clone()).await;
    assert_eq!(status, CallStatus::Ok, "{request}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Why a request did not go through, on one line.
async fn refused(host: &Host, request: Value, words: &str) -> String {
    let (status, text) = send(host, request.clone()).await;
    assert_eq!(status, CallStatus::Failed, "{request}: {text}");
    assert!(text.contains(words), "{request}: no {words:?} in: {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

const ANY: &str = "      - { origin: \"http://*:*\", methods: [GET, HEAD, POST, PUT], private: true }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_granted_request_goes_out_as_it_was_judged_and_comes_back_whole() {
    let place = Place::bare();
    let web =
        Web::start(|seen| answer("201 Made", &[("x-own", "a"), ("x-own", "b")], format!("got {}", seen.body))).await;
    let names = Planned::default().name("web.test", &["127.0.0.1"]);
    let host = host(&place, ANY, "", &names).await;
    let url = format!("{}/path/../a b?q=1#part", web.named("WEB.test."));
    let body =
        sent(&host, json!({ "url": url, "method": "POST", "headers": [["x-mine", "1"]], "body": "hello" })).await;
    assert_eq!((&body["status"], &body["body"]), (&json!(201), &json!("got hello")));
    assert_eq!(body["url"], format!("{}/a%20b?q=1", web.named("web.test")));
    assert_eq!(body["headers"].as_array().unwrap().iter().filter(|header| header[0] == "x-own").count(), 2);
    let wasi = sent(&host, json!({ "authority": format!("web.test:{}", web.address.port()), "path": "/w?x", "method": "PUT", "body": "hi" })).await;
    assert_eq!((&wasi["status"], &wasi["body"], &wasi["broken"]), (&json!(201), &json!("got hi"), &Value::Null));
    let [first, second] = &web.seen()[..] else { panic!("{:?}", web.seen()) };
    assert!(first.head.starts_with("POST /a%20b?q=1 HTTP/1.1"), "{}", first.head);
    assert_eq!(first.header("host"), Some(format!("web.test:{}", web.address.port()).as_str()));
    assert_eq!(first.header("x-mine"), Some("1"));
    assert!(first.header("user-agent").unwrap().starts_with("astrarium/"));
    assert!(
        second.head.starts_with("PUT /w?x HTTP/1.1") && second.header("content-length") == Some("2"),
        "{}",
        second.head
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_of_one_call_are_bounded_together() {
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "x".repeat(1_000))).await;
    let names = Planned::default().name("web.test", &["127.0.0.1"]);
    let host = host(&place, ANY, "limits: { http_response_bytes: 1000 }", &names).await;
    let url = web.named("web.test");
    assert_eq!(sent(&host, json!({ "url": url, "times": 16 })).await["length"], 1_000);
    refused(&host, json!({ "url": url, "times": 17 }), "larger than 16000 bytes together").await;
    assert_eq!(sent(&host, json!({ "url": url })).await["length"], 1_000, "another call has its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_without_a_rule_and_the_refusal_has_the_line() {
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "reached")).await;
    let rules = format!("      - {{ origin: \"{}\", private: true }}", web.named("web.test"));
    let names = Planned::default().name("web.test", &["127.0.0.1"]).name("other.test", &["127.0.0.1"]);
    let host = host(&place, &rules, "", &names).await;
    let (own, port) = (web.named("web.test"), web.address.port());
    assert_eq!(sent(&host, json!({ "url": own })).await["body"], "reached");
    let text = refused(&host, json!({ "url": web.named("other.test") }), "no rule of courier reaches").await;
    assert!(
        text.contains(&format!("{{ origin: \"http://other.test:{port}\" }}")) && text.contains("do not retry"),
        "{text}"
    );
    refused(&host, json!({ "url": own, "method": "POST" }), "allows GET and HEAD, not POST").await;
    refused(&host, json!({ "url": own, "method": "post" }), "not POST").await;
    refused(&host, json!({ "url": own, "method": "G ET" }), "not G ET").await;
    refused(&host, json!({ "url": format!("https://web.test:{port}") }), "no rule of").await;
    refused(&host, json!({ "url": "http://web.test" }), "no rule of").await;
    refused(&host, json!({ "url": "ftp://web.test" }), "none of http and https").await;
    for (authority, words) in [("other.test", "HttpRequestDenied"), ("web.test", "HttpRequestDenied")] {
        refused(&host, json!({ "authority": authority }), words).await;
    }
    assert_eq!(web.seen().len(), 1, "{:?}", web.seen());
    assert_eq!(names.asked("other.test"), 0, "what no rule reaches is not even resolved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_form_of_a_request_names_another_host_than_the_one_that_was_checked() {
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "")).await;
    let evil = Web::start(|_| answer("200 OK", &[], "")).await;
    let rules = format!("      - {{ origin: \"{}\", private: true }}", web.named("good.test"));
    let names = Planned::default().name("good.test", &["127.0.0.1"]).name("evil.test", &["127.0.0.1"]);
    let host = host(&place, &rules, "", &names).await;
    let (good, bad) = (format!("good.test:{}", web.address.port()), format!("evil.test:{}", evil.address.port()));
    for url in [
        format!("http://{good}@{bad}/"),
        format!("http://{bad}/http://{good}/"),
        format!("http://{bad}#{good}"),
        format!("http://{bad}\\@{good}/"),
    ] {
        let (status, text) = send(&host, json!({ "url": url })).await;
        assert_eq!(status, CallStatus::Failed, "{url}: {text}");
    }
    for (authority, path) in [
        (good.clone(), format!("http://{bad}/")),
        (format!("{good}@{bad}"), "/".into()),
        (format!("user@{good}"), "/".into()),
        (bad.clone(), format!("http://{good}/")),
    ] {
        let (status, text) = send(&host, json!({ "authority": authority, "path": path })).await;
        assert_eq!(status, CallStatus::Failed, "{authority} {path}: {text}");
    }
    for name in ["host", "Host", "transfer-encoding", "connection", "proxy-authorization"] {
        refused(&host, json!({ "url": format!("http://{good}"), "headers": [[name, bad]] }), "set by the host").await;
        let (status, _) = send(&host, json!({ "authority": good, "headers": [[name, bad]] })).await;
        assert_eq!(status, CallStatus::Failed, "{name}");
    }
    for value in ["a\r\nhost: evil.test", "a\nb"] {
        refused(&host, json!({ "url": format!("http://{good}"), "headers": [["x", value]] }), "control character")
            .await;
    }
    // A path that looks like a URL is a path, sent to the host that was judged.
    sent(&host, json!({ "url": format!("http://{good}//{bad}/http://{bad}") })).await;
    let seen = web.seen();
    assert_eq!((seen.len(), seen[0].target()), (1, format!("//{bad}/http://{bad}").as_str()));
    assert_eq!(seen[0].header("host"), Some(good.as_str()));
    assert!(evil.seen().is_empty(), "{:?}", evil.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_redirect_is_judged_like_a_first_request() {
    let place = Place::bare();
    let inside = Web::start(|_| answer("200 OK", &[], "inside")).await;
    let targets: Arc<OnceLock<Vec<String>>> = Arc::default();
    let told = targets.clone();
    let start = Web::start(move |seen: &Seen| {
        let at: Option<usize> = seen.target().strip_prefix("/to/").and_then(|at| at.parse().ok());
        match (at, told.get()) {
            (Some(at), Some(targets)) => redirect(&targets[at]),
            _ => answer("200 OK", &[], "home"),
        }
    })
    .await;
    let port = inside.address.port();
    let cases = [
        (format!("http://127.0.0.1:{port}/"), "127.0.0.1, an address of this machine"),
        (format!("http://localhost:{port}/"), "127.0.0.1, an address of this machine"),
        (format!("http://2130706433:{port}/"), "127.0.0.1, an address of this machine"),
        (format!("http://[::1]:{port}/"), "::1, an address of this machine"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "a translated address"),
        (format!("http://[::127.0.0.1]:{port}/"), "a translated address"),
        (format!("http://[2002:7f00:1::]:{port}/"), "a translated address"),
        (format!("http://[64:ff9b::7f00:1]:{port}/"), "a translated address"),
        (format!("http://0.0.0.0:{port}/"), "the unspecified address"),
        ("http://169.254.169.254/latest/meta-data/".into(), "169.254.169.254, a cloud's metadata service"),
        ("http://[::ffff:169.254.169.254]/".into(), "a translated address"),
        (format!("http://inside.test:{port}/"), "127.0.0.1, an address of this machine"),
        ("file:///etc/passwd".into(), "none of http and https"),
        (format!("http://user@127.0.0.1:{port}/"), "user name"),
        ("//".into(), "no URL"),
        (format!("https://127.0.0.1:{port}/"), "no rule of"),
        (format!("http://start.test:{}/{}", start.address.port(), "x".repeat(9_000)), "http_url_bytes"),
    ];
    targets.set(cases.iter().map(|(target, _)| target.clone()).collect()).unwrap();
    let rules = format!(
        "      - {{ origin: \"{}\", private: true }}\n      - {{ origin: \"http://*:*\" }}",
        start.named("start.test")
    );
    let names = Planned::default()
        .name("start.test", &["127.0.0.1"])
        .name("inside.test", &["127.0.0.1"])
        .name("localhost", &["127.0.0.1"]);
    let host = host(&place, &rules, "", &names).await;
    for (at, (_, words)) in cases.iter().enumerate() {
        refused(&host, json!({ "url": format!("{}/to/{at}", start.named("start.test")) }), words).await;
    }
    assert!(inside.seen().is_empty(), "{:?}", inside.seen());
    // wasi:http leaves redirects to the guest, whose next request comes to the same door.
    let authority = format!("start.test:{}", start.address.port());
    let first = sent(&host, json!({ "authority": authority, "path": "/to/0" })).await;
    assert_eq!(first["status"], 302);
    refused(&host, json!({ "authority": format!("127.0.0.1:{port}") }), "DestinationIpProhibited").await;
    assert!(inside.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_that_are_granted_are_followed_and_bounded() {
    let place = Place::bare();
    let web = Web::start(|seen: &Seen| match seen.target() {
        "/loop" => redirect("/loop"),
        "/post" => redirect("/end"),
        "/keep" => answer("307 Temporary", &[("location", "/end")], ""),
        _ => answer("200 OK", &[], format!("{} {}", seen.head.split(' ').next().unwrap_or_default(), seen.body)),
    })
    .await;
    let host = host(&place, ANY, "", &Planned::default()).await;
    let post = |path: &str| json!({ "url": format!("{}{path}", web.url()), "method": "POST", "body": "b", "headers": [["content-type", "text/plain"]] });
    let ended = sent(&host, post("/post")).await;
    assert_eq!((&ended["body"], &ended["url"]), (&json!("GET "), &json!(format!("{}/end", web.url()))));
    assert_eq!(web.seen().last().unwrap().header("content-type"), None, "there is no body any more");
    assert_eq!(sent(&host, post("/keep")).await["body"], "POST b");
    refused(&host, json!({ "url": format!("{}/loop", web.url()) }), "more than 5 redirects (limits: http_redirects)")
        .await;
    assert_eq!(web.seen().iter().filter(|seen| seen.target() == "/loop").count(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hop_is_on_the_audit_before_it_leaves_and_what_cannot_be_recorded_does_not_leave() {
    let place = Place::bare();
    let web = Web::start(|seen: &Seen| match seen.target() {
        "/moved" => redirect("/end"),
        _ => answer("200 OK", &[], "end"),
    })
    .await;
    let host = host(&place, ANY, "", &Planned::default()).await;
    let told = |host: &Host| -> Vec<String> {
        let rows = host.store.audit_rows(&AuditFilter::default()).unwrap().into_iter().map(|row| row.entry);
        let http = rows.filter(|entry| entry.what == "http" && entry.kind == Kind::Capability);
        http.map(|entry| format!("{} {} {} {}", entry.plugin, entry.target, entry.outcome, entry.rule)).collect()
    };
    sent(&host, json!({ "url": format!("{}/moved", web.url()) })).await;
    let hop = format!("courier GET {} allowed http://*:*", web.url());
    assert_eq!(told(&host), [hop.clone(), hop.clone()]);
    refused(&host, json!({ "url": web.url(), "method": "DELETE" }), "not DELETE").await;
    assert_eq!(told(&host)[2..], [format!("courier DELETE {} refused no rule allows it", web.url())]);
    let authority = format!("127.0.0.1:{}", web.address.port());
    sent(&host, json!({ "authority": authority, "path": "/w" })).await;
    assert_eq!(told(&host)[3..], [hop.replace("courier", "courier-wasi")]);
    let before = web.seen().len();
    rusqlite::Connection::open(place.home().join("astrarium.db"))
        .unwrap()
        .execute_batch(
            "create trigger full before insert on audit when new.entry ->> 'what' = 'http'
             begin select raise(abort, 'disk is full'); end",
        )
        .unwrap();
    refused(&host, json!({ "url": web.url() }), "every use must be recorded, and this one cannot be").await;
    assert_eq!(web.seen().len(), before, "nothing left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_with_a_public_and_a_private_address_is_refused_whole() {
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "inside")).await;
    let names = Planned::default()
        .name("both.test", &["93.184.216.34 127.0.0.1"])
        .name("turned.test", &["127.0.0.1 93.184.216.34"])
        .name("mapped.test", &["::ffff:127.0.0.1"])
        .name("many.test", &["127.0.0.1 ".repeat(40).as_str()])
        .name("none.test", &[""]);
    let host = host(&place, "      - { origin: \"http://*:*\" }", "", &names).await;
    for name in ["both.test", "turned.test"] {
        refused(&host, json!({ "url": web.named(name) }), "leads to 127.0.0.1, an address of this machine").await;
        refused(&host, json!({ "authority": format!("{name}:{}", web.address.port()) }), "DestinationIpProhibited")
            .await;
    }
    refused(&host, json!({ "url": web.named("mapped.test") }), "a translated address").await;
    refused(&host, json!({ "url": web.named("many.test") }), "40 addresses").await;
    refused(&host, json!({ "url": web.named("none.test") }), "0 addresses").await;
    refused(&host, json!({ "url": web.named("unknown.test") }), "does not resolve").await;
    assert!(web.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_changes_after_the_check_changes_nothing() {
    let place = Place::bare();
    let checked = Web::start(|seen: &Seen| match seen.target() {
        "/again" => redirect("/there"),
        _ => answer("200 OK", &[], "checked"),
    })
    .await;
    let port = checked.address.port();
    // Another address of this machine, on the same port: where the name leads when it is asked a second time.
    let other = Web::at(format!("127.0.0.2:{port}").parse().unwrap(), |_| answer("200 OK", &[], "other")).await;
    let names = Planned::default()
        .name("turns.test", &["127.0.0.1", "127.0.0.2"])
        .name("hops.test", &["127.0.0.1", "169.254.169.254"]);
    let host = host(&place, ANY, "", &names).await;
    assert_eq!(sent(&host, json!({ "url": checked.named("turns.test") })).await["body"], "checked");
    assert_eq!(names.asked("turns.test"), 1, "what was checked is what is connected to");
    assert!(other.seen().is_empty());
    let again = format!("{}/again", checked.named("hops.test"));
    refused(&host, json!({ "url": again }), "leads to 169.254.169.254, a cloud's metadata service").await;
    assert_eq!(names.asked("hops.test"), 2, "each hop is checked anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_headers_and_bytes_are_bounded_both_ways() {
    let place = Place::bare();
    let web = Web::start(|seen: &Seen| match seen.target() {
        "/many" => [b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-a: b\r\n".repeat(10_000), b"\r\n".to_vec()].concat(),
        "/long" => [b"HTTP/1.1 200 OK\r\nx-a: ".to_vec(), vec![b'v'; 4 << 20], b"\r\n\r\n".to_vec()].concat(),
        "/body" => answer("200 OK", &[], vec![b'x'; 300_000]),
        "/lies" => b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort".to_vec(),
        "/noise" => b"\x00\x01\x02 no http at all".to_vec(),
        _ => answer("200 OK", &[], ""),
    })
    .await;
    let more = "limits: { http_response_bytes: 100000, http_request_bytes: 1000, http_header_bytes: 5000, http_url_bytes: 400 }";
    let host = host(&place, ANY, more, &Planned::default()).await;
    let url = |path: &str| json!({ "url": format!("{}{path}", web.url()) });
    refused(&host, url("/many"), "broke off").await;
    refused(&host, url("/long"), "broke off").await;
    refused(&host, url("/lies"), "broke off in the middle").await;
    refused(&host, url("/noise"), "broke off").await;
    let cut = sent(&host, url("/body")).await;
    assert_eq!((&cut["length"], &cut["truncated"]), (&json!(100_000), &json!(true)));
    let wasi = sent(&host, json!({ "authority": web.address.to_string(), "path": "/body" })).await;
    assert_eq!(wasi["length"], 100_000);
    assert!(wasi["broken"].is_string(), "a part is not taken for the whole: {wasi}");
    let reached = web.seen().len();
    refused(&host, json!({ "url": web.url(), "headers": vec![["x", "v"]; 65] }), "65 headers").await;
    refused(&host, json!({ "url": web.url(), "headers": [["x", "v".repeat(6_000)]] }), "http_header_bytes").await;
    refused(&host, json!({ "url": format!("{}/{}", web.url(), "x".repeat(400)) }), "http_url_bytes").await;
    let big = "b".repeat(1_001);
    refused(&host, json!({ "url": web.url(), "method": "POST", "body": big }), "http_request_bytes").await;
    refused(&host, json!({ "authority": web.address.to_string(), "method": "POST", "body": big }), "").await;
    refused(
        &host,
        json!({ "authority": web.address.to_string(), "path": format!("/{}", "x".repeat(400)) }),
        "http_url_bytes",
    )
    .await;
    assert_eq!(web.seen().len(), reached, "none of these left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_waits_for_ever_and_a_time_out_of_nothing_is_refused() {
    let place = Place::bare();
    let silent = Web::start(|_| Vec::new()).await;
    let host = host(&place, ANY, "limits: { http_ms: 400 }", &Planned::default()).await;
    refused(&host, json!({ "url": silent.url(), "timeout_ms": 0 }), "at least 1 ms").await;
    refused(&host, json!({ "authority": silent.address.to_string(), "first_byte_ns": 0 }), "at least 1 ms").await;
    assert!(silent.seen().is_empty());
    refused(&host, json!({ "url": silent.url() }), "did not answer in full within 400 ms").await;
    refused(&host, json!({ "url": silent.url(), "timeout_ms": 50 }), "within 50 ms").await;
    refused(&host, json!({ "url": silent.url(), "timeout_ms": 4_000_000 }), "within 400 ms").await;
    refused(&host, json!({ "authority": silent.address.to_string() }), "Timeout").await;
    refused(&host, json!({ "authority": silent.address.to_string(), "first_byte_ns": 50_000_000 }), "Timeout").await;
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    refused(&host, json!({ "url": format!("http://{closed}") }), "cannot connect").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_a_request_under_way() {
    let place = Place::bare();
    let silent = Web::start(|_| Vec::new()).await;
    let host = Arc::new(host(&place, ANY, "", &Planned::default()).await);
    for request in [json!({ "url": silent.url() }), json!({ "authority": silent.address.to_string() })] {
        let (before, cancel) = (silent.seen().len(), CancellationToken::new());
        let tool = if request.get("authority").is_some() { "wasi_send" } else { "send" };
        let running = tokio::spawn({
            let (host, cancel) = (host.clone(), cancel.clone());
            async move { call(&host, tool, request, &cancel).await }
        });
        while silent.seen().len() == before {
            assert!(!running.is_finished(), "it ended before it was cancelled");
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        let finished = running.await.unwrap();
        assert!(text_of(&finished.parts).contains("cancel"), "{finished:?}");
    }
}

/// A secret that JSON and URLs write in other ways than it is.
const SECRET: &str = "s3cr+t/\"key\"=42";

async fn with_secret(place: &Place, rules: &str, names: &Planned) -> Host {
    let path = place.home().join("token");
    fs::write(&path, format!("{SECRET}\n")).unwrap();
    host(place, rules, &format!("secrets: {{ token: {{ file: {} }} }}", path.display()), names).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_injected_secret_goes_out_and_never_comes_back() {
    let place = Place::bare();
    let web = Web::start(|seen: &Seen| {
        let authorization = seen.header("authorization").unwrap_or_default();
        let secret = authorization.strip_prefix("Bearer ").unwrap_or_default();
        match seen.target() {
            "/leak" => redirect(&format!("/end?key={}", secret.replace('+', "%2B").replace('/', "%2F"))),
            "/packed" => answer("200 OK", &[("content-encoding", "gzip")], "…"),
            // Cut so that the end of what the host takes in lies in the middle of the secret.
            "/edge" => answer("200 OK", &[], format!("{}{secret}{}", "x".repeat(95), "y".repeat(50))),
            _ => answer("200 OK", &[("x-echo", secret)], format!("{secret} and {}", json!(secret))),
        }
    })
    .await;
    let rules = format!(
        "      - {{ origin: \"{}\", private: true, response_bytes: 100, inject: {{ authorization: \"Bearer ${{token}}\" }} }}",
        web.named("api.test")
    );
    let host = with_secret(&place, &rules, &Planned::default().name("api.test", &["127.0.0.1"])).await;
    let (url, authority) = (web.named("api.test"), format!("api.test:{}", web.address.port()));
    for request in [json!({ "url": url }), json!({ "authority": authority })] {
        let shown = sent(&host, request).await.to_string();
        assert!(shown.contains("[secret token] and "), "{shown}");
        assert!(!shown.contains("s3cr"), "{shown}");
    }
    for seen in web.seen() {
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
    }
    for then in ["fail", "panic"] {
        let (status, text) = send(&host, json!({ "url": url, "then": then })).await;
        assert_eq!(status, CallStatus::Failed);
        assert!(text.contains("[secret token]") && !text.contains("s3cr"), "{then}: {text}");
    }
    let edge = sent(&host, json!({ "url": format!("{url}/edge") })).await;
    assert_eq!((&edge["truncated"], &edge["length"]), (&json!(true), &json!(100)));
    assert_eq!(edge["body"], format!("{}[secr", "x".repeat(95)));
    refused(&host, json!({ "url": format!("{url}/packed") }), "compressed").await;
    let leak = refused(&host, json!({ "url": format!("{url}/leak") }), "injected secret in it").await;
    assert!(!leak.contains("s3cr"), "{leak}");
    let reached = web.seen().len();
    refused(&host, json!({ "url": url, "headers": [["Authorization", "mine"]] }), "is injected by the rule").await;
    assert_eq!(web.seen().len(), reached);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_stay_with_the_origin_that_they_are_for() {
    let place = Place::bare();
    let other = Web::start(|_| answer("200 OK", &[], "other")).await;
    let away = other.named("other.test");
    let api = Web::start(move |seen: &Seen| match seen.target() {
        "/away" => redirect(&away),
        "/near" => redirect("/end"),
        _ => answer("200 OK", &[], "home"),
    })
    .await;
    let rules = format!(
        "      - {{ origin: \"http://*:*\", private: true }}\n      - {{ origin: \"{}\", private: true, inject: {{ x-token: \"${{token}}\" }} }}\n      \
         - {{ origin: \"{}\", private: true, inject: {{ x-token: \"${{token}}\" }} }}",
        api.named("api.test"),
        other.named("other.test")
    );
    let names = Planned::default().name("api.test", &["127.0.0.1"]).name("other.test", &["127.0.0.1"]);
    let host = with_secret(&place, &rules, &names).await;
    let request = |path: &str| json!({ "url": format!("{}{path}", api.named("api.test")), "headers": [["authorization", "mine"], ["cookie", "mine"], ["x-api-key", "mine"], ["accept", "text/plain"]] });
    assert_eq!(sent(&host, request("/away")).await["body"], "other");
    let seen = other.seen();
    for name in ["authorization", "cookie", "x-api-key", "x-token"] {
        assert_eq!(seen[0].header(name), None, "{name} went to another origin");
    }
    assert_eq!(seen[0].header("accept"), Some("text/plain"));
    assert_eq!(sent(&host, request("/near")).await["body"], "home");
    let near = api.seen().into_iter().find(|seen| seen.target() == "/end").unwrap();
    assert_eq!((near.header("authorization"), near.header("x-token")), (Some("mine"), Some(SECRET)));
    // Asked for by the guest itself, the other origin gets its own secret.
    sent(&host, json!({ "url": other.named("other.test") })).await;
    assert_eq!(other.seen()[1].header("x-token"), Some(SECRET));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_cannot_be_had_refuses_the_request() {
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "")).await;
    let rules =
        format!("      - {{ origin: \"{}\", private: true, inject: {{ authorization: \"${{token}}\" }} }}", web.url());
    let host = with_secret(&place, &rules, &Planned::default()).await;
    fs::write(place.home().join("token"), "short").unwrap();
    refused(&host, json!({ "url": web.url() }), "the secret token cannot be had").await;
    fs::remove_file(place.home().join("token")).unwrap();
    refused(&host, json!({ "url": web.url() }), "the secret token cannot be had").await;
    assert!(web.seen().is_empty(), "nothing is sent without it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_proxy_of_the_environment_is_used() {
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "direct")).await;
    let proxy = Web::start(|_| answer("200 OK", &[], "proxy")).await;
    place.plugin("courier").config(&format!(
        "grants:\n  - plugin: courier\n    http:\n{}\n{}",
        ANY,
        ANY.replace("http:", "https:")
    ));
    let arguments = json!({ "url": web.url() }).to_string();
    let mut command = place.command(&["tool", "call", "send", &arguments]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, proxy.url());
    }
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("direct"), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(proxy.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_takes_no_certificate_but_one_of_the_name_that_the_system_trusts() {
    let place = Place::bare();
    let (web, certificate) = Web::tls("localhost", |_| answer("200 OK", &[], "over TLS")).await;
    let (own, other) = (place.home().join("own.pem"), place.home().join("other.pem"));
    fs::write(&own, certificate).unwrap();
    fs::write(&other, Web::tls("localhost", |_| Vec::new()).await.1).unwrap();
    place.plugin("courier").config(&format!(
        "grants:\n  - plugin: courier\n    http:\n{}\n{}",
        ANY,
        ANY.replace("http:", "https:")
    ));
    let port = web.address.port();
    for (host, trusted, words) in [
        ("localhost", &own, "over TLS"),
        ("localhost", &other, "does not speak TLS as it should: invalid peer certificate"),
        ("127.0.0.1", &own, "does not speak TLS as it should: invalid peer certificate"),
    ] {
        let arguments = json!({ "url": format!("https://{host}:{port}") }).to_string();
        let mut command = place.command(&["tool", "call", "send", &arguments]);
        command.env("SSL_CERT_FILE", trusted);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let shown = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(shown.contains(words), "{host}: {shown}");
    }
    assert_eq!(web.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_fetch_ships_for_public_hosts_and_shows_a_page_as_markdown() {
    let place = Place::new();
    let web = Web::start(|seen: &Seen| match seen.target() {
        "/lost" => answer("404 Not Found", &[("content-type", "text/html")], "<p>Nothing here</p>"),
        _ => answer(
            "200 OK",
            &[("content-type", "text/html; charset=gbk")],
            b"<title>Page</title><nav>menu</nav><main><h1>\xd0\xc7\xcf\xb5</h1><p>See <a href=/b>this</a>.</main>",
        ),
    })
    .await;
    let names = Planned::default().name("web.test", &["127.0.0.1"]);
    place.config("language: en\n");
    let mut options = place.options();
    options.names = names.names();
    let shipped = Host::open(options).await.unwrap();
    let never = CancellationToken::new();
    for url in [web.url(), format!("http://localhost:{}", web.address.port()), "http://169.254.169.254/latest".into()] {
        let finished = call(&shipped, "web_fetch", json!({ "url": url }), &never).await;
        assert_eq!(finished.status, CallStatus::Failed, "{url}: {finished:?}");
        assert!(text_of(&finished.parts).contains("do not retry"), "{url}: {finished:?}");
    }
    let finished = call(&shipped, "web_fetch", json!({ "url": "http://web.test" }), &never).await;
    assert!(text_of(&finished.parts).contains("an address of this machine"), "{finished:?}");
    assert!(web.seen().is_empty());
    drop(shipped);
    // The same component, asking for what a test can reach.
    let place = Place::bare();
    let folder = place.plugins().join("web-fetch");
    astrarium_tests::place::copy(&astrarium_tests::place::share().join("plugins/web-fetch"), &folder);
    let rules = format!("[{{ origin: \"{}\", private: true }}]", web.named("web.test"));
    fs::write(folder.join("plugin.yaml"), format!("name: web-fetch\nversion: 0.1.0\nrequests:\n  http: {rules}\n"))
        .unwrap();
    place.config(&format!("grants:\n  - plugin: web-fetch\n    http: {rules}\n"));
    let mut options = place.options();
    options.names = names.names();
    let host = Host::open(options).await.unwrap();
    let finished = call(&host, "web_fetch", json!({ "url": web.named("web.test") }), &never).await;
    assert_eq!(
        text_of(&finished.parts),
        format!("{0}/\nTitle: Page\n\n# 星系\n\nSee [this]({0}/b).", web.named("web.test"))
    );
    let finished = call(&host, "web_fetch", json!({ "url": format!("{}/lost", web.named("web.test")) }), &never).await;
    assert_eq!(finished.status, CallStatus::Failed);
    assert!(text_of(&finished.parts).contains("answered with status 404\n\nNothing here"), "{finished:?}");
}

#[test]
fn what_is_wrong_in_grants_and_secrets_is_said_with_its_file_and_line() {
    let place = Place::bare();
    place.plugin("courier");
    for (config, words) in [
        ("grants:\n  - { plugin: courier, http: [{ origin: 'example.org' }] }\n", "must begin with https://"),
        ("grants:\n  - { plugin: courier, http: [{ origin: 'https://a*.org' }] }\n", "no whole first label"),
        ("grants:\n  - { plugin: courier, http: [{ origin: 'https://a', timeout_ms: 0 }] }\n", "at least 1"),
        (
            "grants:\n  - { plugin: courier, http: [{ origin: 'https://a', inject: { x: '${t}' } }] }\n",
            "names the secret t",
        ),
        ("secrets:\n  t: { file: relative }\n", "not absolute"),
        ("secrets:\n  t: { vault: x }\n", "unknown"),
        ("secrets:\n  't t': { env: X }\n", "no name"),
        ("limits: { http_ms: 0 }\n", "http_ms: must be from 1"),
    ] {
        place.config(config);
        let ran = place.run(&["plugin", "list"]);
        assert_eq!(ran.status, 2, "{config}: {ran:?}");
        let line = ran.stderr.lines().find(|line| line.contains("astrarium.yaml")).unwrap_or_default();
        assert!(line.contains(words), "{config}: {ran:?}");
    }
    place.config("");
    let manifest =
        "name: courier\nversion: 0.1.0\nrequests:\n  http: [{ origin: 'https://a', inject: { x: '${t}' } }]\n";
    fs::write(place.plugins().join("courier/plugin.yaml"), manifest).unwrap();
    let ran = place.run(&["plugin", "list"]);
    assert!(ran.stdout.contains("inject is for the operator's grants"), "{ran:?}");
}
