//! Every adapter of this machine, opened once per process.
//!
//! The words of `TILEWISE_REQUIRE`, separated by commas, name what must be there; a missing one fails every test instead of being skipped.

use std::sync::OnceLock;
use tilewise::{AdapterDescription, Context, ContextOptions, wgpu};

/// What may be required.
const WORDS: [&str; 6] = ["vulkan", "metal", "dx12", "f16", "lavapipe", "swiftshader"];

/// An adapter and the context that is open on it.
#[derive(Debug)]
pub struct Adapter {
    /// What wgpu says of it.
    pub description: AdapterDescription,
    /// A context without files, so that no run depends on an earlier one.
    pub context: Context,
}

impl Adapter {
    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// A second context on the same adapter, for tests that break theirs.
    pub fn another(&self) -> Context {
        open(&self.description.name).unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    /// A context by [`Context::from_wgpu`] on a device without features, whose limits `change` may have lowered.
    pub fn with_limits(&self, change: impl FnOnce(&mut wgpu::Limits)) -> Context {
        let (device, queue) = self.device(change);
        Context::from_wgpu(device, queue)
    }

    /// A device without features, as a caller may bring it.
    pub fn device(&self, change: impl FnOnce(&mut wgpu::Limits)) -> (wgpu::Device, wgpu::Queue) {
        let backends = wgpu::Backends::all();
        let descriptor =
            wgpu::InstanceDescriptor { backends, ..wgpu::InstanceDescriptor::new_without_display_handle() };
        let all = pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends));
        let ours = self.context.device().expect("a GPU").adapter_info();
        let same = |adapter: &&wgpu::Adapter| {
            adapter.get_info().name == ours.name && adapter.get_info().backend == ours.backend
        };
        let adapter = all.iter().find(same).expect("it was there before");
        let mut limits = tilewise::required_limits(adapter);
        change(&mut limits);
        let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
        pollster::block_on(adapter.request_device(&descriptor))
            .unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    fn is(&self, word: &str) -> bool {
        let name = self.name().to_lowercase();
        match word {
            "vulkan" | "metal" | "dx12" => self.description.backend == word,
            "f16" => self.context.caps().f16,
            "lavapipe" => name.contains("llvmpipe"),
            "swiftshader" => name.contains("swiftshader"),
            _ => false,
        }
    }
}

/// Opens an adapter by name, as any user would.
pub fn open(name: &str) -> tilewise::Result<Context> {
    Context::with_options(&ContextOptions { pipeline_cache: None, tuned: None, ..ContextOptions::adapter(name) })
}

/// Every adapter that can be opened. Those that cannot are printed with the reason.
///
/// # Panics
/// When `TILEWISE_REQUIRE` names something that none of them is, or a word that is not known.
pub fn adapters() -> &'static [Adapter] {
    static OPEN: OnceLock<Vec<Adapter>> = OnceLock::new();
    OPEN.get_or_init(|| {
        let mut found: Vec<Adapter> = Vec::new();
        for description in pollster::block_on(tilewise::adapters()) {
            let name = &description.name;
            if found.iter().any(|other| other.description.name == *name) {
                eprintln!("skipped: {name} through {}: an adapter of that name is open already", description.backend);
                continue;
            }
            match open(name) {
                Ok(context) if context.backend_name() == description.backend => {
                    found.push(Adapter { description, context })
                }
                Ok(context) => {
                    eprintln!(
                        "skipped: {name} through {}: its name opens {}",
                        description.backend,
                        context.backend_name()
                    );
                }
                Err(error) => eprintln!("skipped: {name} through {}: {error}", description.backend),
            }
        }
        require(&found);
        if found.is_empty() {
            eprintln!("skipped: everything that needs a GPU: there is no adapter");
        }
        found
    })
}

fn require(found: &[Adapter]) {
    let required = std::env::var("TILEWISE_REQUIRE").unwrap_or_default();
    for word in required.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        assert!(WORDS.contains(&word), "TILEWISE_REQUIRE: {word:?} is none of {WORDS:?}");
        let names: Vec<_> = found.iter().map(|a| format!("{} ({})", a.name(), a.description.backend)).collect();
        assert!(found.iter().any(|adapter| adapter.is(word)), "TILEWISE_REQUIRE wants {word}; there are {names:?}");
    }
}
