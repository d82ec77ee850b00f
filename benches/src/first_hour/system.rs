//! Finds out which operating system and which Mac this is.

use std::process::Command;

/// The system's name and version.
pub(super) fn name() -> String {
    let version = match std::env::consts::OS {
        "macos" => printed("sw_vers", &["-productVersion"]),
        "windows" => printed("cmd", &["/C", "ver"]),
        _ => printed("uname", &["-sr"]),
    };
    let version = version.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    format!(
        "{} {}",
        std::env::consts::OS,
        version.unwrap_or_else(|| "of an unknown version".into())
    )
}

/// Lines about the machine, as macOS prints them; none on other systems.
pub(super) fn hardware() -> Vec<String> {
    if std::env::consts::OS != "macos" {
        return Vec::new();
    }
    let told = [
        printed("sysctl", &["hw.model", "hw.memsize", "machdep.cpu.brand_string"]),
        printed("system_profiler", &["SPDisplaysDataType"]),
        printed("pmset", &["-g"]),
    ];
    let wanted = [
        "hw.",
        "machdep.",
        "Chipset Model:",
        "Total Number of Cores:",
        "Metal Support:",
        "lowpowermode",
    ];
    let lines = told.iter().flatten().flat_map(|text| text.lines()).map(str::trim);
    lines
        .filter(|line| wanted.iter().any(|word| line.starts_with(word)))
        .map(str::to_owned)
        .collect()
}

/// The output of a program, if the program is there and succeeds.
fn printed(program: &str, args: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
