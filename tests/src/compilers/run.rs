//! Runs a compiler over many texts, in as many processes as there are processors.

use super::{Compiler, Tools};
use crate::texts::Text;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A compiler's answer to a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It takes the text.
    Taken,
    /// It refuses the text, in these words.
    Refused(String),
    /// The compiler had not ended when its time was over.
    Slow,
}

/// A text that a compiler has met.
pub struct Met<'a> {
    /// The text.
    pub text: &'a Text,
    /// The file that the compiler read.
    pub path: PathBuf,
    /// The compiler's answer.
    pub outcome: Outcome,
    /// The time that it took, if its program tells it.
    pub seconds: f64,
}

/// A text, the file that is written for it, and the line for the compiler's program.
type Written<'a> = (&'a Text, PathBuf, String);

/// The most texts that one process is given.
const AT_ONCE: usize = 24;

impl Compiler {
    /// Compiles texts. They are written into a folder of which nothing else is kept.
    ///
    /// # Errors
    /// A file cannot be written, or the compiler cannot be run.
    pub fn compile<'a>(
        self,
        tools: &Tools,
        texts: &[&'a Text],
        folder: &Path,
    ) -> Result<Vec<Met<'a>>, String> {
        let said = |error: io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(said)?;
        }
        std::fs::create_dir_all(folder).map_err(said)?;
        self.refuses_what_it_must(tools, &folder.join("planted"))?;
        let waiting = Mutex::new(texts.iter().copied().enumerate());
        let met = Mutex::new(Vec::with_capacity(texts.len()));
        let work = || -> Result<(), String> {
            loop {
                let some: Vec<_> = {
                    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    waiting.by_ref().take(AT_ONCE).collect()
                };
                if some.is_empty() {
                    return Ok(());
                }
                let write = |(number, text): (usize, &'a Text)| {
                    let name = text.name.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
                    let stem = folder.join(format!("{number:04}-{name}"));
                    let written = self.write(text, &stem);
                    let (path, line) = written.map_err(|why| format!("{}: {why}", text.name))?;
                    Ok((text, path, line))
                };
                let mut written = some.into_iter().map(write).collect::<Result<_, String>>()?;
                while let Some(some) = self.one_process(tools, &mut written)? {
                    met.lock().unwrap_or_else(PoisonError::into_inner).extend(some);
                }
            }
        };
        thread::scope(|scope| {
            let count = thread::available_parallelism().map_or(2, usize::from);
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("nobody panics"))
        })?;
        let mut met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
        met.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(met)
    }

    /// Checks that the compiler refuses a bad text. A compiler that takes everything would prove
    /// nothing.
    fn refuses_what_it_must(self, tools: &Tools, stem: &Path) -> Result<(), String> {
        let (bad, objection) = self.bad();
        let planted = Text::planted(bad);
        let (path, line) = self.write(&planted, stem)?;
        if self == Compiler::SpirvVal {
            let words = std::fs::read(&path).map_err(|error| error.to_string())?;
            std::fs::write(&path, &words[..words.len() - 4]).map_err(|error| error.to_string())?;
        }
        let mut texts = VecDeque::from([(&planted, path, line)]);
        let met = self.one_process(tools, &mut texts)?.unwrap_or_default();
        match met.first().map(|own| &own.outcome) {
            Some(Outcome::Refused(words)) if words.contains(objection) => Ok(()),
            other => Err(format!("{} on a text that it must refuse: {other:?}", self.name())),
        }
    }

    /// Runs one process, with as many of the texts as it answers; none if no text is left.
    fn one_process<'a>(
        self,
        tools: &Tools,
        texts: &mut VecDeque<Written<'a>>,
    ) -> Result<Option<Vec<Met<'a>>>, String> {
        if texts.is_empty() {
            return Ok(None);
        }
        let list: String = texts.iter().map(|(_, _, line)| format!("{line}\n")).collect();
        let output = fed(&mut self.command(tools), &list)?;
        let (mut met, mut said) = (Vec::new(), String::new());
        let mut next = |outcome, seconds| {
            let (text, path, _) = texts.pop_front().ok_or("more answers than texts")?;
            met.push(Met { text, path, outcome, seconds });
            Ok::<_, String>(())
        };
        let mut ended = false;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let mut words = line.split(' ');
            let outcome = match (words.next(), words.next()) {
                (Some("@"), Some("taken")) => Outcome::Taken,
                (Some("@"), Some("refused")) => Outcome::Refused(std::mem::take(&mut said)),
                (Some("@"), Some("slow")) => Outcome::Slow,
                _ => {
                    said = said + line + "\n";
                    continue;
                }
            };
            ended = outcome == Outcome::Slow;
            next(outcome, words.next().and_then(|it| it.parse().ok()).unwrap_or(0.0))?;
        }
        if !ended && !texts.is_empty() {
            let why = String::from_utf8_lossy(&output.stderr);
            let outcome = Outcome::Refused(format!("it ended ({}): {said}{why}", output.status));
            let (text, path, _) = texts.pop_front().expect("some are left");
            met.push(Met { text, path, outcome, seconds: 0.0 });
        }
        Ok(Some(met))
    }
}

/// Runs a command with an input that it reads while it writes.
fn fed(command: &mut Command, input: &str) -> Result<Output, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = format!("{command:?}");
    let said = |error: io::Error| format!("{program}: {error}");
    let mut child = command.spawn().map_err(said)?;
    let mut stdin = child.stdin.take().expect("it is piped");
    thread::scope(|scope| {
        // A program that ends early breaks the pipe.
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })
    .map_err(said)
}
