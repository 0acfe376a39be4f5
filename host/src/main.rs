//! The `astrarium` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    astrarium::cli::main()
}
