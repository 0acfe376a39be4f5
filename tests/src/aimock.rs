//! aimock from npm: a server of both model wires whose shapes and faults nobody here wrote.

use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// aimock on a free port; it stops when it is dropped.
#[derive(Debug)]
pub struct Aimock {
    _child: Child,
    _folder: TempDir,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
}

impl Aimock {
    /// Starts it with these fixtures.
    pub async fn start(fixtures: Vec<Value>) -> Self {
        let Ok(cli) = std::env::var("ASTRARIUM_AIMOCK") else {
            panic!(
                "ASTRARIUM_AIMOCK is unset; run the tests through `cargo xtask test`, which installs @copilotkit/aimock under \
                 target/js-tools and sets it to that package's dist/cli.js"
            )
        };
        let fixtures = json!({ "fixtures": fixtures });
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("fixtures.json");
        std::fs::write(&file, fixtures.to_string()).expect("the file can be written");
        let mut child = Command::new("node")
            .arg(cli)
            .args(["--port", "0", "--strict", "--validate-on-load", "--chunk-size", "3", "--fixtures"])
            .arg(&file)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("aimock needs node in PATH");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("its output is text") {
                if let Some((_, address)) = line.split_once("listening on ") {
                    return address.trim().to_owned();
                }
            }
            panic!("aimock ended before it listened; ASTRARIUM_AIMOCK names its dist/cli.js")
        };
        let address =
            tokio::time::timeout(Duration::from_secs(60), listening).await.expect("aimock starts in a minute");
        // Its log goes on; a full pipe would stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { _child: child, _folder: folder, address }
    }
}
