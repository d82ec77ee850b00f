//! The winners of the tuner, in memory and in a file: one per adapter, lines of text.
//!
//! ```text
//! tilewise tuned kernels<TAB>1<TAB>vulkan NVIDIA H200<TAB>NVIDIA 580.159.04<TAB>5f0c…
//! f32/8 f32/8 f32/8 NN 512x512x512 batch 1<TAB>simt/64x64x16+k2
//! f32/8 f32/8 f32/8 NN 4096x4096x4096 batch 1<TAB>planner
//! checksum<TAB>83ab…
//! ```
//!
//! The first line holds the version of this format, the adapter, its driver, and a hash of the
//! kernels. (A context that uses kernels in MSL has a file of its own, `tuned-…-msl.txt`.) A file
//! that is not as expected in any of this is ignored as a whole, with a warning, and replaced by
//! the next winner. It is written by renaming, so that it is always whole, and under a lock, so
//! that processes that tune at the same time keep each other's winners.

mod class;

pub(crate) use class::class;

use crate::adapter;
use crate::cache::lock;
#[cfg(not(target_family = "wasm"))]
use crate::files;
use crate::msl;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use tilewise_core::kernel::Library;
use tilewise_core::plan::Forced;
use tilewise_core::{Caps, DType, Problem};
use tilewise_shaders::FILES;

/// The winner of each problem class; none where that is the planner.
type Entries = BTreeMap<String, Option<Forced>>;

const MAGIC: &str = "tilewise tuned kernels";
const VERSION: &str = "1";
const PLANNER: &str = "planner";
const CHECKSUM: &str = "checksum\t";
#[cfg(not(target_family = "wasm"))]
const NO_FOLDER: &str =
    "there is no folder for it (ContextOptions::tuned, TILEWISE_TUNED, TILEWISE_CACHE_DIR)";

/// The tuner's results on a device, and where they are kept.
#[derive(Default)]
pub(crate) struct Winners {
    known: Mutex<Entries>,
    #[cfg_attr(
        target_family = "wasm",
        expect(dead_code, reason = "nothing is tuned, and so nothing saved, in the browser")
    )]
    file: Option<Kept>,
}

impl Winners {
    /// The winners that the folder holds for this adapter among these kernels.
    pub(crate) fn open(folder: &Path, info: &wgpu::AdapterInfo, library: &Library) -> Self {
        let file = Kept::new(folder, info, library);
        let known = file.read().unwrap_or_else(|why| {
            log::warn!("the tuned kernels in {} are ignored: {why}", file.path.display());
            Entries::new()
        });
        Winners { known: Mutex::new(known), file: Some(file) }
    }

    /// The kernel that won the problem's class, if that was tuned and is not the planner's choice.
    pub(crate) fn of(&self, problem: &Problem, caps: &Caps) -> Option<Forced> {
        let known = lock(&self.known);
        if known.is_empty() {
            return None;
        }
        known.get(&class(problem, caps).ok()?)?.clone()
    }

    pub(crate) fn add(&self, class: &str, winner: Option<Forced>) {
        lock(&self.known).insert(class.to_owned(), winner);
    }

    /// Adds a winner to the file, and gives its path. Else it says why not: there is no file, or it
    /// cannot be written, which is a warning too.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn save(&self, class: &str, winner: Option<Forced>) -> Result<PathBuf, String> {
        let file = self.file.as_ref().ok_or(NO_FOLDER)?;
        let failed = |why| format!("{} was not written: {why}", file.path.display());
        file.add(class, winner).map_err(failed).inspect_err(|why| log::warn!("{why}"))?;
        Ok(file.path.clone())
    }
}

/// A file of winners and what its first line must say: adapter, driver, kernels.
struct Kept {
    path: PathBuf,
    header: [String; 3],
}

impl Kept {
    /// Where there are kernels in MSL, who wins is another question, and answered in another file.
    fn new(folder: &Path, info: &wgpu::AdapterInfo, library: &Library) -> Self {
        let adapter = format!("{} {}", adapter::backend_name(info.backend), info.name);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let languages = if msl::has_msl(library) { "-msl" } else { "" };
        let name: String = adapter.chars().map(plain).collect();
        let path = folder.join(format!("tuned-{name}{languages}.txt"));
        let one_line = |text: String| text.replace(char::is_control, " ");
        Kept {
            path,
            header: [
                one_line(adapter),
                one_line(adapter::driver(info)),
                format!("{:016x}", kernels(library)),
            ],
        }
    }

    /// The entries; none when there is no file.
    fn read(&self) -> Result<Entries, String> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => self.parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Entries::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    fn add(&self, class: &str, winner: Option<Forced>) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Held until the end of the function; a file of its own, because the other is replaced.
        let guard = std::fs::File::create(self.path.with_extension("lock"))?;
        guard.lock()?;
        let mut entries = self.read().unwrap_or_default();
        entries.insert(class.to_owned(), winner);
        files::replace(&self.path, self.text(&entries).as_bytes())
    }

    #[cfg(not(target_family = "wasm"))]
    fn text(&self, entries: &Entries) -> String {
        let mut text = format!("{MAGIC}\t{VERSION}\t{}\n", self.header.join("\t"));
        for (class, winner) in entries {
            let winner = winner.as_ref().map_or_else(|| PLANNER.to_owned(), Forced::to_string);
            text.push_str(&format!("{class}\t{winner}\n"));
        }
        let sum = Fnv::of(&text);
        format!("{text}{CHECKSUM}{sum:016x}\n")
    }

    fn parse(&self, text: &str) -> Result<Entries, String> {
        let (first, _) = text.split_once('\n').unwrap_or_default();
        let mut fields = first.split('\t');
        if fields.next() != Some(MAGIC) {
            return Err("it is not a file of tuned kernels".into());
        }
        let version = fields.next().unwrap_or_default();
        if version != VERSION {
            return Err(format!("its format is {version:?}, this is {VERSION}"));
        }
        let (body, sum) = text.rsplit_once(CHECKSUM).ok_or("its end is missing")?;
        if sum != format!("{:016x}\n", Fnv::of(body)) {
            return Err("its checksum is wrong".into());
        }
        for (what, ours) in ["adapter", "driver", "hash of kernels"].iter().zip(&self.header) {
            let theirs = fields.next().unwrap_or_default();
            if theirs != ours {
                return Err(format!("its {what} is {theirs:?}, this is {ours:?}"));
            }
        }
        let entry = |line: &str| {
            let (class, winner) = line.split_once('\t')?;
            let winner = if winner == PLANNER { None } else { Some(winner.parse().ok()?) };
            Some((class.to_owned(), winner))
        };
        body.lines()
            .skip(1)
            .map(|line| entry(line).ok_or_else(|| format!("a line of it is {line:?}")))
            .collect()
    }
}

/// A hash of everything that a winner depends on besides the device: the kernels, their variants
/// with constants and costs (which decide what the planner chooses), and the text of every file in
/// their languages.
fn kernels(library: &Library) -> u64 {
    static HASHES: [OnceLock<u64>; 2] = [const { OnceLock::new() }; 2];
    let msl = msl::has_msl(library);
    *HASHES[usize::from(msl)].get_or_init(|| {
        let mut hash = Fnv::default();
        for kernel in library.kernels {
            let (problem, caps) = (Problem::dense(DType::F32, 1, 1, 1), Caps::webgpu_default());
            let of = |variant| (kernel.constants)(variant, &problem, &caps);
            let constants: Vec<_> = kernel.variants.iter().map(of).collect();
            hash.add(&format!(
                "{:?}",
                (
                    kernel.name,
                    kernel.file,
                    kernel.operand_files,
                    kernel.variants,
                    constants,
                    kernel.splits
                )
            ));
        }
        for (path, text) in FILES.iter().chain(if msl { msl::FILES } else { &[] }) {
            hash.add(path);
            hash.add(text);
        }
        hash.0
    })
}

/// FNV-1a: unlike the standard library's hashes the same in every build and run.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn of(text: &str) -> u64 {
        let mut hash = Fnv::default();
        hash.add(text);
        hash.0
    }

    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        Kept {
            path: "tuned.txt".into(),
            header: ["vulkan X", "driver 1", "0123456789abcdef"].map(str::to_owned),
        }
    }

    fn entries() -> Entries {
        let entry = |class: &str, winner: Option<&str>| {
            (class.to_owned(), winner.map(|name| name.parse().unwrap()))
        };
        [
            entry("f32/8 NN 1x2x3", Some("simt/64x64x16+k4")),
            entry("f16/1 NT", None),
            entry("z", Some("gemv")),
        ]
        .into()
    }

    #[test]
    fn known_hashes() {
        // From the list of Fowler, Noll and Vo.
        assert_eq!(Fnv::of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::of("foobar"), 0x8594_4171_f739_67e8);
    }

    #[cfg(feature = "msl")]
    #[test]
    fn kernels_in_msl_are_another_file_and_another_hash() {
        let info = |library| {
            let info =
                wgpu::AdapterInfo::new(wgpu::DeviceType::IntegratedGpu, wgpu::Backend::Metal);
            Kept::new(Path::new("cache"), &info, library)
        };
        let [wgsl, all] = [msl::WGSL, msl::ALL].map(info);
        assert_ne!(wgsl.header[2], all.header[2]);
        assert_eq!(wgsl.header[2], format!("{:016x}", kernels(msl::WGSL)));
        assert!(
            all.path.to_string_lossy().ends_with("-msl.txt")
                && !wgsl.path.to_string_lossy().ends_with("-msl.txt")
        );
    }

    #[test]
    fn there_and_back() {
        for entries in [entries(), Entries::new()] {
            assert_eq!(kept().parse(&kept().text(&entries)), Ok(entries));
        }
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_refused() {
        let text = kept().text(&entries());
        for end in 0..text.len() {
            assert!(kept().parse(&text[..end]).is_err(), "{:?}", &text[..end]);
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(kept().parse(&changed).is_err(), "{changed:?}");
        }
        assert!(kept().parse(&format!("{text}{text}")).is_err());
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let folder = std::env::temp_dir().join(format!("tilewise-winners-{}", std::process::id()));
        let path = folder.join("tuned.txt");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let file = Kept { path: path.clone(), ..kept() };
                scope.spawn(move || {
                    for entry in 0..10 {
                        file.add(&format!("{writer} {entry}"), None).unwrap();
                        assert!(file.read().unwrap().len() > entry);
                    }
                });
            }
        });
        assert_eq!(Kept { path, ..kept() }.read().unwrap().len(), 80);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn another_header_is_refused_with_the_reason() {
        let text = kept().text(&entries());
        for (at, words) in [
            (0, "adapter is \"vulkan X\""),
            (1, "driver is \"driver 1\""),
            (2, "hash of kernels is"),
        ] {
            let mut other = kept();
            other.header[at] = "another".into();
            let why = other.parse(&text).unwrap_err();
            assert!(why.contains(words) && why.contains("another"), "{why}");
        }
        let later = text.replacen("\t1\t", "\t2\t", 1);
        assert_eq!(kept().parse(&later), Err("its format is \"2\", this is 1".into()));
        let sealed = |body: String| format!("{body}{CHECKSUM}{:016x}\n", Fnv::of(&body));
        let (head, _) = text.split_once('\n').unwrap();
        for line in ["no tab", "class\tsimt+kx", ""] {
            let why = kept().parse(&sealed(format!("{head}\n{line}\n"))).unwrap_err();
            assert!(why.contains("a line of it"), "{why}");
        }
    }
}
