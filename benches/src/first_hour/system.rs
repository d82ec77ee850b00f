//! Which operating system this is.

use std::process::Command;

/// Its name and version.
pub(super) fn name() -> String {
    let printed = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let version = match std::env::consts::OS {
        "macos" => printed("sw_vers", &["-productVersion"]),
        "windows" => printed("cmd", &["/C", "ver"]),
        _ => printed("uname", &["-sr"]),
    };
    format!("{} {}", std::env::consts::OS, version.unwrap_or_else(|| "of an unknown version".into()))
}
