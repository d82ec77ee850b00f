//! Runs other programs: their commands are shown, their output is streamed, and failures name the
//! command.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

/// The result of a command of this crate: the error is the sentence to print.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// Work that takes too long for every run is done by turns. The commit decides whose turn it is,
/// through a number in this variable.
pub(crate) const TURN: &str = "TILEWISE_TURN";

/// The command as one would type it, with the environment it adds.
pub(crate) fn shown(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| {
        let value = value?;
        Some(format!("{}={:?}", name.to_string_lossy(), value))
    });
    let program = command.get_program();
    let program = if env::var_os("CARGO").is_some_and(|own| own == program) {
        OsStr::new("cargo")
    } else {
        program
    };
    let words = std::iter::once(program).chain(command.get_args());
    let words = words.map(|word| match word.to_string_lossy() {
        word if word.is_empty() || word.contains([' ', '$', '|']) => format!("'{word}'"),
        word => word.into_owned(),
    });
    environment.chain(words).collect::<Vec<_>>().join(" ")
}

/// Runs `command` with this process's input and output; a non-zero exit is an error. Commands are
/// shown on stderr, so that stdout is the answer alone.
pub(crate) fn run(command: &mut Command) -> Result {
    eprintln!("$ {}", shown(command));
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    check(command, status)
}

/// Runs `command` quietly and returns what it wrote to stdout.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| cannot_start(command, &error))?;
    check(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command`, shows its output line by line as it comes, and returns all of it as well.
pub(crate) fn tee(command: &mut Command) -> Result<String> {
    println!("$ {}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // One thread per pipe: a child that fills one while we wait on the other would block for ever.
    let (mut text, errors) = thread::scope(|scope| {
        let errors =
            scope.spawn(|| stderr.map(|pipe| copy_lines(pipe, io::stderr())).unwrap_or_default());
        let text = stdout.map(|pipe| copy_lines(pipe, io::stdout())).unwrap_or_default();
        (text, errors.join().unwrap_or_default())
    });
    text.push_str(&errors);
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    check(command, status)?;
    Ok(text)
}

/// A command that runs beside others, on processors that are idle otherwise. Its output is kept
/// until its end. Dropping it breaks the pipe, and the command ends at its next line.
pub(crate) struct Beside {
    command: Command,
    child: Child,
    output: JoinHandle<String>,
}

impl Beside {
    /// Starts a command of this program.
    pub(crate) fn start(args: &[&str]) -> Result<Self> {
        let program = own_path()?;
        let mut command = match find_program("nice") {
            Some(nice) => {
                let mut command = Command::new(nice);
                command.args(["-n", "19"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(args).stdin(Stdio::null());
        println!("$ {} &", shown(&command));
        let (reader, writer) = io::pipe().map_err(|error| cannot_start(&command, &error))?;
        let copy = writer.try_clone().map_err(|error| cannot_start(&command, &error))?;
        let child = command
            .stdout(copy)
            .stderr(writer)
            .spawn()
            .map_err(|error| cannot_start(&command, &error))?;
        // This drops the command's copies of the pipe's writing end: now the pipe ends with the
        // child.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let output = thread::spawn(move || copy_lines(reader, io::sink()));
        Ok(Beside { command, child, output })
    }

    /// Waits for the end of the command, and returns its output.
    pub(crate) fn finish(mut self) -> Result<String> {
        let status = self.child.wait().map_err(|error| cannot_start(&self.command, &error))?;
        let output = self.output.join().unwrap_or_default();
        print!("{output}");
        check(&self.command, status)?;
        Ok(output)
    }
}

fn copy_lines(from: impl Read, mut to: impl Write) -> String {
    let mut from = BufReader::new(from);
    let (mut all, mut line) = (String::new(), Vec::new());
    while from.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        // A closed terminal must not stop the command that we are watching.
        let _ = to.write_all(&line);
        all.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    all
}

fn check(command: &Command, status: ExitStatus) -> Result {
    if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", shown(command))) }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` cannot be started: {error}", shown(command))
}

/// Builds a program of the workspace and returns its path. A test is built with it; the build of
/// the tests has made that one as well. Without a test, cargo would leave out those features of
/// dependencies that only tests need: it would build these crates, and all that use them, once
/// more.
pub(crate) fn build_program(name: &str) -> Result<String> {
    let mut build =
        cargo(["build", "--workspace", "--all-features", "--bin", name, "--test", "vectors"]);
    let messages = capture(build.args(["--message-format", "json-render-diagnostics"]))?;
    executable(&messages, "bin", name)
        .ok_or(format!("cargo build names no executable for the program {name}"))
}

/// The path of a program, by cargo's messages.
pub(crate) fn executable(messages: &str, kind: &str, name: &str) -> Option<String> {
    messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?;
        (message["target"]["name"] == name && message["target"]["kind"][0] == kind)
            .then(|| path.to_owned())
    })
}

/// Whether `TILEWISE_REQUIRE` has a word: what the word names must not be skipped.
pub(crate) fn is_required(word: &str) -> bool {
    let required = env::var("TILEWISE_REQUIRE").unwrap_or_default();
    required.split(',').any(|required| required.trim() == word)
}

/// This program's path.
pub(crate) fn own_path() -> Result<PathBuf> {
    env::current_exe().map_err(|error| format!("this program does not know its path: {error}"))
}

/// The first program of that name on PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// The cargo that runs this program, so that a `+toolchain` given to it holds for its children too.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn a_program_among_other_targets() {
        let message = |kind: &str, name: &str, path: &str| {
            format!(r#"{{"target":{{"kind":["{kind}"],"name":"{name}"}},"executable":{path}}}"#)
        };
        let messages = [
            message("lib", "a", "null"),
            message("bin", "b", r#""/b""#),
            message("test", "a", r#""/test""#),
            "no message".to_owned(),
            message("bin", "a", r#""/a""#),
        ];
        let found = |kind, name| executable(&messages.join("\n"), kind, name);
        assert_eq!(found("bin", "a").as_deref(), Some("/a"));
        assert_eq!(found("test", "a").as_deref(), Some("/test"));
        assert_eq!(found("bin", "c"), None);
    }
}
