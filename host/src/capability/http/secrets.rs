//! Values of secrets, read where the operator's config says they are, at the moment they are needed.

use super::Failure;
use crate::files;
use crate::grant::SecretSource;
use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that a secret has at least: a shorter one could not be told from ordinary words when it comes back.
const LEAST: usize = 8;
/// Bytes of a secret's file or program's output that are looked at.
const MOST: u64 = 16 << 10;
/// How long a keyring may take to answer: it may ask its user.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a program's answer is kept, so that not every request runs it.
const KEPT: Duration = Duration::from_secs(300);

/// Secrets that programs told.
#[derive(Default)]
pub(super) struct Told(Mutex<HashMap<Vec<String>, (Instant, String)>>);

impl Told {
    /// The value of the secret `name`.
    pub(super) async fn read(&self, name: &str, source: Option<&SecretSource>) -> Result<String, Failure> {
        let failed = |reason: String| Failure::Secret(format!("the secret {name} cannot be had: {reason}"));
        let value = match source {
            None => Err("it is not under secrets: in astrarium.yaml".into()),
            Some(SecretSource::Env(variable)) => {
                std::env::var(variable).map_err(|_| format!("the variable {variable} is not set, or no text"))
            }
            Some(SecretSource::File(path)) => from_file(path),
            Some(SecretSource::Command(words)) => self.run_command(words).await,
        };
        let value = value.map_err(failed)?;
        let value = value.trim_end_matches(['\r', '\n']);
        match value.len() < LEAST || !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            true => Err(failed(format!("it is shorter than {LEAST} bytes, or holds what no header can"))),
            false => Ok(value.to_owned()),
        }
    }

    async fn run_command(&self, words: &[String]) -> Result<String, String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(words).cloned();
        if let Some((_, value)) = kept.filter(|(when, _)| when.elapsed() < KEPT) {
            return Ok(value);
        }
        let value = ask(words).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(words.to_vec(), (Instant::now(), value.clone()));
        Ok(value)
    }
}

fn from_file(path: &Path) -> Result<String, String> {
    files::text(path, MOST).map_err(|error| format!("{} {error}", path.display()))
}

/// What a program of the operator's prints. It is killed when it takes too long.
async fn ask(words: &[String]) -> Result<String, String> {
    let [program, arguments @ ..] = words else { return Err("its command is empty".into()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
    let Some(output) = child.stdout.take() else { return Err(format!("{program} has no output")) };
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        output.take(MOST).read_to_string(&mut text).map(|_| text)
    });
    let read = tokio::time::timeout(PATIENCE, reading).await;
    if read.is_err() {
        let _ = child.kill();
    }
    let status = tokio::task::spawn_blocking(move || child.wait()).await;
    match (read, status) {
        (Ok(Ok(Ok(text))), Ok(Ok(status))) if status.success() => Ok(text),
        (Err(_), _) => Err(format!("{program} did not answer within {} s", PATIENCE.as_secs())),
        (_, Ok(Ok(status))) => Err(format!("{program} ended with {status}")),
        _ => Err(format!("{program} could not be waited for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(source: SecretSource) -> Result<String, String> {
        Told::default().read("t", Some(&source)).await.map_err(|failure| failure.to_string())
    }

    #[tokio::test]
    async fn a_secret_comes_from_a_file_or_a_program_without_its_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "abcdefgh1\n").unwrap();
        assert_eq!(read(SecretSource::File(path)).await.as_deref(), Ok("abcdefgh1"));
        let words = ["sh", "-c", "echo abcdefgh2"].map(str::to_owned).to_vec();
        assert_eq!(read(SecretSource::Command(words)).await.as_deref(), Ok("abcdefgh2"));
    }

    #[tokio::test]
    async fn what_cannot_be_had_is_said_without_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "short").unwrap();
        for (source, words) in [
            (SecretSource::Env("ASTRARIUM_TEST_NO_SUCH".into()), "is not set"),
            (SecretSource::File(path), "shorter than 8"),
            (SecretSource::File(folder.path().to_owned()), "no regular file"),
            (SecretSource::Command(vec!["false".into()]), "ended with"),
            (SecretSource::Command(vec!["no-such-program-here".into()]), "cannot run"),
        ] {
            let error = read(source).await.unwrap_err();
            assert!(error.contains(words) && !error.contains("short\n"), "{error}");
        }
    }
}
