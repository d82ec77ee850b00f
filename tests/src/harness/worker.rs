//! Workers: processes that run kernels. Each thread keeps one for each mode, with lines in reports
//! and without, from launch to launch. A failure of a kernel ends its worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Failure, Kind, Lanes, Launch, Mode, Output, compile};

struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    /// Pieces of its standard output, until it ends.
    output: Receiver<Vec<u8>>,
    /// Bytes of the last piece that are not read yet.
    rest: Vec<u8>,
    errors: Option<JoinHandle<String>>,
}

thread_local! {
    static WORKERS: RefCell<HashMap<(Mode, bool), Worker>> = RefCell::new(HashMap::new());
}

impl Worker {
    fn start(mode: Mode, quick: bool) -> Worker {
        let program = compile::worker(mode);
        let mut command = Command::new(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let symbolizer = symbolizer();
        let lines = u32::from(!quick);
        let common = format!(
            "halt_on_error=1:symbolize={lines}:external_symbolizer_path={symbolizer}:\
             strip_path_prefix=./"
        );
        command.env(
            "TSAN_OPTIONS",
            format!(
                "{common}:exitcode=66:report_thread_leaks=0:detect_deadlocks=0:atexit_sleep_ms=0"
            ),
        );
        command.env(
            "ASAN_OPTIONS",
            format!(
                "{common}:detect_leaks=0:detect_stack_use_after_return=0:print_legend=0:\
                 quarantine_size_mb=16"
            ),
        );
        command.env("UBSAN_OPTIONS", format!("{common}:print_stacktrace=1"));
        let mut child = command.spawn().unwrap_or_else(|it| panic!("{}: {it}", program.display()));
        let (mut output, mut errors) =
            (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut piece = vec![0; 1 << 16];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            // If reading fails, the text before the error is the report.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Worker {
            input: child.stdin.take(),
            child,
            output: receiver,
            rest: Vec::new(),
            errors: Some(errors),
        }
    }

    /// The next `count` bytes of the worker's answer.
    fn take(&mut self, count: usize, deadline: Instant) -> Result<Vec<u8>, RecvTimeoutError> {
        while self.rest.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            self.rest.extend(self.output.recv_timeout(left)?);
        }
        let rest = self.rest.split_off(count);
        Ok(std::mem::replace(&mut self.rest, rest))
    }

    fn take_u32(&mut self, deadline: Instant) -> Result<u32, RecvTimeoutError> {
        let bytes = self.take(4, deadline)?;
        Ok(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    }

    fn send(&mut self, request: &[u8]) -> Result<(), RecvTimeoutError> {
        let sent = self
            .input
            .as_mut()
            .is_some_and(|it| it.write_all(request).and_then(|()| it.flush()).is_ok());
        if sent { Ok(()) } else { Err(RecvTimeoutError::Disconnected) }
    }

    /// The failure for which the worker ended.
    fn end(mut self, why: RecvTimeoutError, timeout: Duration) -> Failure {
        let late = why == RecvTimeoutError::Timeout;
        if late {
            let _ = self.child.kill();
        }
        drop(self.input.take());
        let status = self.child.wait().map_or_else(|it| it.to_string(), |it| it.to_string());
        let report = self.errors.take().and_then(|it| it.join().ok()).unwrap_or_default();
        let has = |words: &str| report.contains(words);
        let kind = match () {
            () if late => Kind::Timeout,
            () if has("tilewise: divergence") => Kind::Divergence,
            () if has("ThreadSanitizer: data race") => Kind::Race,
            // An index beyond an array: UndefinedBehaviorSanitizer sees it first.
            () if has("out of bounds for type") => Kind::Memory,
            () if has("runtime error:") => Kind::Undefined,
            () if has("ERROR: AddressSanitizer") => Kind::Memory,
            () => Kind::Crash,
        };
        let report = if late {
            format!("no end within {timeout:?}\n{report}")
        } else {
            format!("{report}{status}")
        };
        Failure { kind, report }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker ends by itself when its input is closed.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The program that names lines in reports; without it, reports have no lines.
fn symbolizer() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let output = Command::new(env!("TILEWISE_MSL_CLANG"))
            .arg("-print-prog-name=llvm-symbolizer")
            .output();
        output.map_or(String::new(), |it| String::from_utf8_lossy(&it.stdout).trim().into())
    })
}

fn with<T>(
    mode: Mode,
    quick: bool,
    timeout: Duration,
    ask: impl FnOnce(&mut Worker) -> Result<T, RecvTimeoutError>,
) -> Result<T, Failure> {
    WORKERS.with_borrow_mut(|workers| {
        let worker = workers.entry((mode, quick)).or_insert_with(|| Worker::start(mode, quick));
        ask(worker)
            .map_err(|why| workers.remove(&(mode, quick)).expect("there above").end(why, timeout))
    })
}

fn request(library: &Path, words: &[u32]) -> Vec<u8> {
    let path = library.as_os_str().as_encoded_bytes();
    let mut request = (path.len() as u32).to_ne_bytes().to_vec();
    request.extend(path);
    request.extend(words.iter().flat_map(|it| it.to_ne_bytes()));
    request
}

/// Bytes of each slot's element.
pub(crate) fn sizes(mode: Mode, quick: bool, library: &Path) -> Result<[u32; 32], Failure> {
    let timeout = Duration::from_secs(60);
    with(mode, quick, timeout, |worker| {
        let deadline = Instant::now() + timeout;
        let mut sizes = [0; 32];
        worker.send(&request(library, &[0]))?;
        for size in &mut sizes {
            *size = worker.take_u32(deadline)?;
        }
        Ok(sizes)
    })
}

pub(crate) fn run(
    mode: Mode,
    quick: bool,
    library: &Path,
    launch: &Launch,
) -> Result<Output, Failure> {
    let [x, y, z] = launch.grid;
    let mut request = request(library, &[1, x, y, z, launch.threads, launch.mutant]);
    request.extend(launch.seed.to_ne_bytes());
    request.extend(u32::from(launch.lanes == Lanes::Threads).to_ne_bytes());
    request.extend((launch.buffers.len() as u32).to_ne_bytes());
    for (slot, contents) in &launch.buffers {
        request.extend(slot.to_ne_bytes());
        request.extend((contents.len() as u64).to_ne_bytes());
        request.extend(contents);
    }
    with(mode, quick, launch.timeout, |worker| {
        let deadline = Instant::now() + launch.timeout;
        worker.send(&request)?;
        let threadgroup_bytes = worker.take_u32(deadline)?;
        let count = worker.take_u32(deadline)?;
        let reached = (0..count).map(|_| worker.take_u32(deadline)).collect::<Result<_, _>>()?;
        let mut buffers = Vec::new();
        for (slot, contents) in &launch.buffers {
            buffers.push((*slot, worker.take(contents.len(), deadline)?));
        }
        Ok(Output { buffers, threadgroup_bytes, reached })
    })
}
