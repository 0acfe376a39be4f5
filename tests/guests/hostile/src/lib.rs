//! Everything that a guest should not do, one tool each. The host must survive all of them and say what happened.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use astrarium_sdk::{Context, Error, Output, Part, Tool, log, tools};

/// A tool without arguments: a doc comment, a type, a name, and what it does.
macro_rules! hostile {
    ($($(#[$doc:meta])* $tool:ident $name:literal => $body:expr;)+) => { $(
        $(#[$doc])*
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $tool {}

        impl Tool for $tool {
            const NAME: &'static str = $name;

            fn call(self, _: &Context) -> Result<Output, Error> {
                $body
            }
        }
    )+ };
}

hostile! {
    /// Computes for ever.
    Spin "spin" => loop {
        black_box(());
    };

    /// Sleeps for an hour.
    Sleep "sleep" => {
        thread::sleep(Duration::from_secs(3600));
        Ok("awake".into())
    };

    /// Takes memory until it is refused.
    Allocate "allocate" => Ok(format!("refused after {} MiB", allocate()).into());

    /// Calls itself without end.
    Recurse "recurse" => Ok(recurse(0).to_string().into());

    /// Writes to standard output and standard error for ever.
    PrintForever "print_forever" => print_forever();

    /// Opens a file 20,000 times and keeps it open.
    OpenMany "open_many" => open_many();

    /// Sets 20,000 timers and keeps them.
    HoldTimers "hold_timers" => {
        let held: Vec<_> = (0..20_000).map(|_| wasi::clocks::monotonic_clock::subscribe_duration(1)).collect();
        Ok(format!("set {} timers", held.len()).into())
    };

    /// Makes 20,000 lists of headers and keeps them.
    HoldHeaders "hold_headers" => {
        let held: Vec<_> = (0..20_000).map(|_| wasi::http::types::Fields::new()).collect();
        Ok(format!("made {} lists", held.len()).into())
    };

    /// Opens a named pipe that nobody writes to.
    OpenFifo "open_fifo" => {
        let mut text = String::new();
        File::open("/workspace/fifo")?.read_to_string(&mut text)?;
        Ok(text.into())
    };

    /// Logs for ever.
    LogForever "log_forever" => loop {
        log::info("a line that says nothing, again and again, until somebody stops it");
    };

    /// Answers with a JSON part that is not JSON.
    BadJson "bad_json" => Ok(Output::default().and(Part::Json("{\"unfinished\": ".into())));

    /// Behaves.
    Fine "ok" => Ok("fine".into());
}

/// Panics.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Panic {
    /// The message.
    #[serde(default)]
    message: String,
}

impl Tool for Panic {
    const NAME: &'static str = "panic";

    fn call(self, _: &Context) -> Result<Output, Error> {
        panic!("boom: {}", self.message);
    }
}

/// Answers with a text that is far too long.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct BigOutput {
    /// Bytes of the text.
    #[serde(default = "hundred_megabytes")]
    bytes: u32,
}

fn hundred_megabytes() -> u32 {
    100_000_000
}

impl Tool for BigOutput {
    const NAME: &'static str = "big_output";

    fn call(self, _: &Context) -> Result<Output, Error> {
        Ok("x".repeat(self.bytes as usize).into())
    }
}

/// Waits, then answers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Milliseconds to wait.
    ms: u64,
    /// What to answer with.
    #[serde(default)]
    version: String,
}

impl Tool for Wait {
    const NAME: &'static str = "wait";

    fn call(self, _: &Context) -> Result<Output, Error> {
        thread::sleep(Duration::from_millis(self.ms));
        Ok(self.version.into())
    }
}

/// Writes a line at the end of a file and answers with it: its effects can be counted.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Append {
    /// The line.
    line: String,
    /// Answered with as well.
    #[serde(default)]
    more: String,
}

impl Tool for Append {
    const NAME: &'static str = "append";

    fn call(self, _: &Context) -> Result<Output, Error> {
        let mut file = File::options().append(true).create(true).open("/workspace/effects")?;
        file.write_all(format!("{}\n", self.line).as_bytes())?;
        Ok(format!("{} {}", self.line, self.more).into())
    }
}

tools!(
    Append,
    Spin,
    Sleep,
    Allocate,
    Recurse,
    PrintForever,
    OpenMany,
    OpenFifo,
    LogForever,
    BadJson,
    HoldTimers,
    HoldHeaders,
    Fine,
    Panic,
    BigOutput,
    Wait
);

/// Takes memory a mebibyte at a time and touches all of it; answers with the mebibytes that were granted.
fn allocate() -> usize {
    const MIB: usize = 1 << 20;
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut block = Vec::new();
        if block.try_reserve_exact(MIB).is_err() || held.try_reserve(1).is_err() {
            return held.len();
        }
        block.resize(MIB, 1);
        held.push(black_box(block));
    }
}

/// The frame is kept alive after the inner call, so that no optimiser turns this into a loop.
#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(black_box(depth + 1)) + black_box(&frame)[0]
}

/// Goes on when a write is refused: that is what a hostile guest would do.
fn print_forever() -> Result<Output, Error> {
    let line = [b'x'; 4096];
    loop {
        let _ = std::io::stdout().write_all(&line);
        let _ = std::io::stderr().write_all(&line);
    }
}

fn open_many() -> Result<Output, Error> {
    const PATH: &str = "/workspace/open_many";
    File::create(PATH)?;
    let mut held = Vec::new();
    for opened in 0..20_000 {
        match File::open(PATH) {
            Ok(file) => held.push(file),
            Err(error) => return Ok(format!("refused after {opened} files: {error}").into()),
        }
    }
    Ok(format!("opened {} files", held.len()).into())
}
