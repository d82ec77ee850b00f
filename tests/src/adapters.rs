//! Every adapter of this machine, opened once per process. wgpu gives OpenGL to one thread at a
//! time, so tests on it run one after the other. Therefore OpenGL's adapters are left out if there
//! are others, unless `TILEWISE_ONLY` names `gl`.
//!
//! The words of `TILEWISE_REQUIRE`, separated by commas, name what must be there. If one is
//! missing, every test fails and none is skipped. `TILEWISE_ONLY` leaves out every adapter that
//! does not match all of its words, to keep it from slowing down the tests of another.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::OnceLock;
use tilewise::{AdapterDescription, Context, ContextOptions, Switch, wgpu};
use tilewise_core::CoopMatrix;

/// Words for what may be required: a backend, hardware in contrast to software, f16 in shaders,
/// matrix units, one of the software adapters.
const WORDS: [&str; 9] =
    ["vulkan", "metal", "dx12", "gl", "hardware", "f16", "coop", "lavapipe", "swiftshader"];

/// Words that are not about adapters: the harness of MSL kernels, and real models, look for them.
const ELSEWHERE: [&str; 2] = ["msl", "models"];

/// An adapter and the context that is open on it.
#[derive(Debug)]
pub struct Adapter {
    /// wgpu's description of it.
    pub description: AdapterDescription,
    /// A context without files, so that no run depends on an earlier one.
    pub context: Context,
}

impl Adapter {
    /// The adapter's name, for messages.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// The name that [`ContextOptions::adapter`] takes for this adapter alone: OpenGL may have an
    /// adapter of the same name.
    pub fn address(&self) -> String {
        format!("{}:{}", self.description.backend, self.name())
    }

    /// Whether it is this adapter's turn to run the case of this number. Software adapters compile
    /// slowly and take turns; hardware runs all cases.
    pub fn has_turn(&self, number: usize) -> bool {
        let software: Vec<_> =
            adapters().iter().filter(|adapter| !adapter.description.hardware).collect();
        let own = software.iter().position(|adapter| adapter.name() == self.name());
        own.is_none_or(|own| number % software.len() == own)
    }

    /// A second context on the same adapter, for tests that break theirs.
    pub fn another(&self) -> Context {
        open(&self.address()).unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    /// A context by [`Context::from_device`] on a device without features. `change` may lower the
    /// device's limits.
    pub fn with_limits(&self, change: impl FnOnce(&mut wgpu::Limits)) -> Context {
        let (device, queue) = self.device(change);
        Context::from_device(device, queue, &ContextOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    /// A device without features, like one that a caller brings. On DX12 it has the feature that
    /// shows that DXC compiles its shaders, if the adapter has it.
    pub fn device(&self, change: impl FnOnce(&mut wgpu::Limits)) -> (wgpu::Device, wgpu::Queue) {
        let adapter = self.found();
        let mut limits = adapter.limits();
        change(&mut limits);
        let dx12 = adapter.get_info().backend == wgpu::Backend::Dx12;
        let wanted = if dx12 { wgpu::Features::SUBGROUP } else { wgpu::Features::empty() };
        let descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features() & wanted,
            required_limits: limits,
            ..Default::default()
        };
        pollster::block_on(adapter.request_device(&descriptor))
            .unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    /// The adapter as wgpu gives it.
    pub fn found(&self) -> wgpu::Adapter {
        let ours = self.context.device().expect("a GPU").adapter_info();
        let backends = wgpu::Backends::from(ours.backend);
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
        descriptor.backends = backends;
        let all = pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends));
        let same = |adapter: &wgpu::Adapter| adapter.get_info().name == ours.name;
        all.into_iter().find(same).expect("it was there before")
    }
}

/// Makes an adapter usable as its context.
impl Deref for Adapter {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// One line: name, backend, driver, and the words that describe what the adapter can do.
impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AdapterDescription { name, backend, driver, .. } = &self.description;
        let caps = self.description.caps();
        write!(f, "{name} through {backend}, {driver}")?;
        for word in
            ["hardware", "f16", "coop"].into_iter().filter(|word| is(&self.description, word))
        {
            write!(f, ", {word}")?;
        }
        for product in &caps.coop {
            let CoopMatrix { size, operands, sums } = product;
            write!(f, " {size}x{size} {operands} to {sums}")?;
        }
        if self.description.msl { write!(f, ", MSL") } else { Ok(()) }
    }
}

fn is(adapter: &AdapterDescription, word: &str) -> bool {
    let name = adapter.name.to_lowercase();
    match word {
        "vulkan" | "metal" | "dx12" | "gl" => adapter.backend == word,
        "hardware" => adapter.hardware,
        "f16" => adapter.caps().f16,
        "coop" => !adapter.caps().coop.is_empty(),
        "lavapipe" => name.contains("llvmpipe"),
        "swiftshader" => name.contains("swiftshader"),
        _ => false,
    }
}

/// Opens an adapter by its name or address, as any user would.
pub fn open(name: &str) -> tilewise::Result<Context> {
    let mut options = ContextOptions::from_env()?.adapter(name).matrix_units(Switch::On);
    (options.pipeline_cache, options.tuned) = (None, None);
    Context::request_blocking(&options)
}

/// The context of every adapter, and the CPU executor.
pub fn contexts() -> Vec<Context> {
    adapters().iter().map(|adapter| adapter.context.clone()).chain([Context::cpu()]).collect()
}

/// The CPU executor with one thread, with two, and with more than most calls have work for.
pub fn by_threads() -> [Context; 3] {
    [1, 2, 7].map(|threads| {
        let options = ContextOptions::default().adapter("cpu");
        let threads = NonZeroUsize::new(threads).unwrap();
        Context::request_blocking(&options.threads(threads)).unwrap()
    })
}

static OPEN: OnceLock<Vec<Adapter>> = OnceLock::new();

/// Waits, when a test's thread ends, for the work that the test has submitted. lavapipe compiles in
/// a thread of its own when a dispatch begins. It was seen to crash if the process ended before the
/// compilation did.
struct Submitted;

impl Drop for Submitted {
    fn drop(&mut self) {
        // Windows runs this under a lock that a new thread needs, too.
        if cfg!(windows) {
            return;
        }
        // The wait runs in a new thread, whose thread-local variables still exist. It fails only if
        // a device is lost, and then there is nothing to wait for.
        let wait = || {
            OPEN.get()
                .into_iter()
                .flatten()
                .for_each(|adapter| drop(adapter.context.wait_blocking()))
        };
        let _ = std::thread::spawn(wait).join();
    }
}

thread_local! {
    static SUBMITTED: Submitted = const { Submitted };
}

/// Every adapter that can be opened. An adapter that cannot is printed with the reason.
///
/// # Panics
/// When no adapter has what `TILEWISE_REQUIRE` names, or one of the variables has an unknown word.
/// not known.
pub fn adapters() -> &'static [Adapter] {
    SUBMITTED.with(|_| ());
    OPEN.get_or_init(|| {
        let mut found: Vec<Adapter> = Vec::new();
        let only = words("TILEWISE_ONLY");
        let mut all = pollster::block_on(tilewise::adapters());
        all.sort_by_key(|description| description.backend == "gl");
        for mut description in all {
            // Wine gives a software driver the name and class of a GPU.
            description.hardware &= std::env::var_os("WINEPREFIX").is_none();
            let AdapterDescription { name, backend, .. } = &description;
            let why = if let Some(word) = only.iter().find(|word| !is(&description, word)) {
                format!("TILEWISE_ONLY wants {word}")
            } else if *backend == "gl" && !found.is_empty() && !only.iter().any(|word| word == "gl")
            {
                "there are others".to_owned()
            } else if found.iter().any(|other| other.description.name == *name) {
                "an adapter of that name is open already".to_owned()
            } else {
                match open(&format!("{backend}:{name}")) {
                    Ok(context) => {
                        found.push(Adapter { description, context });
                        continue;
                    }
                    Err(error) => error.to_string(),
                }
            };
            eprintln!("skipped: {name} through {backend}: {why}");
        }
        require(&found);
        if found.is_empty() {
            eprintln!("skipped: everything that needs a GPU: there is no adapter");
        }
        found
    })
}

/// The words of an environment variable.
fn words(variable: &str) -> Vec<String> {
    let value = std::env::var(variable).unwrap_or_default();
    let words: Vec<String> = value
        .split(',')
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    for word in &words {
        let known = WORDS.iter().chain(&ELSEWHERE).any(|known| known == word);
        assert!(known, "{variable}: {word:?} is none of {WORDS:?}, {ELSEWHERE:?}");
    }
    words
}

fn require(found: &[Adapter]) {
    let words = words("TILEWISE_REQUIRE").into_iter();
    for word in words.filter(|word| !ELSEWHERE.contains(&&**word)) {
        let names: Vec<_> =
            found.iter().map(|a| format!("{} ({})", a.name(), a.description.backend)).collect();
        assert!(
            found.iter().any(|adapter| is(&adapter.description, &word)),
            "TILEWISE_REQUIRE wants {word}; there are {names:?}"
        );
    }
}
