//! The winners of the tuner, in memory and as text. Each adapter has a file with its text:
//!
//! ```text
//! tilewise tuned kernels<TAB>1<TAB>vulkan NVIDIA H200<TAB>NVIDIA 580.159.04<TAB>5f0c…
//! f32/8 f32/8 f32/8 NN 512x512x512 batch 1<TAB>simt/64x64x16+k2
//! f32/8 f32/8 f32/8 NN 4096x4096x4096 batch 1<TAB>planner
//! checksum<TAB>83ab…
//! ```
//!
//! The first line holds the version of this format, the adapter, its driver, and a hash of the
//! kernels. (A context that uses kernels in MSL has a file of its own, `tuned-…-msl.txt`.) If any
//! of this is not as expected, a file is ignored as a whole, with a warning, and replaced by the
//! next winner; a text that a program hands over is refused. The file is written by renaming, which
//! keeps it whole, and under a lock, which keeps the winners of other processes that tune at the
//! same time.

mod class;

pub(crate) use class::class;

use crate::adapter;
use crate::adapter::msl;
use crate::host::cache::lock;
#[cfg(not(target_family = "wasm"))]
use crate::host::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use tilewise_core::kernel::Library;
use tilewise_core::plan::Forced;
use tilewise_core::{Caps, DType, Problem};
use tilewise_shaders::FILES;

/// The winner of each problem class; none if the planner's choice won.
type Entries = BTreeMap<String, Option<Forced>>;

const MAGIC: &str = "tilewise tuned kernels";
const VERSION: &str = "1";
const PLANNER: &str = "planner";
const CHECKSUM: &str = "checksum\t";
#[cfg(not(target_family = "wasm"))]
const NO_FOLDER: &str =
    "there is no folder for it (ContextOptions::tuned, TILEWISE_TUNED, TILEWISE_CACHE_DIR)";

/// The tuner's results on a device, and the file in which they are kept.
pub(crate) struct Winners {
    known: Mutex<Entries>,
    header: Header,
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "a browser has no files"))]
    file: Option<PathBuf>,
}

impl Winners {
    /// No winners, for the CPU executor, which does not tune.
    pub(crate) fn of_cpu(library: &Library) -> Self {
        let header = Header::new("cpu", String::new(), library);
        Winners { known: Mutex::default(), header, file: None }
    }

    /// Reads the winners for this adapter and these kernels from the folder, if there is one.
    pub(crate) fn open(folder: Option<&Path>, info: &wgpu::AdapterInfo, library: &Library) -> Self {
        let adapter = format!("{} {}", adapter::backend_name(info.backend), info.name);
        let header = Header::new(&adapter, adapter::driver(info), library);
        let file = folder.map(|folder| folder.join(file_name(&adapter, library)));
        let known = file.as_deref().map_or_else(Entries::new, |file| {
            header.read(file).unwrap_or_else(|why| {
                log::warn!("the tuned kernels in {} are ignored: {why}", file.display());
                Entries::new()
            })
        });
        Winners { known: Mutex::new(known), header, file }
    }

    /// All winners, in the form of the file.
    pub(crate) fn text(&self) -> String {
        self.header.text(&lock(&self.known))
    }

    /// Adds the winners of a text. The error says why the text is not for this adapter.
    pub(crate) fn add_text(&self, text: &str) -> Result<(), String> {
        let entries = self.header.parse(text)?;
        lock(&self.known).extend(entries);
        Ok(())
    }

    /// The kernel that won the problem's class. None if the class was not tuned, or the planner
    /// won.
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

    /// Adds a winner to the file, and gives its path. The error says why not: there is no file, or
    /// it cannot be written, which is logged as a warning, too.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn save(&self, class: &str, winner: Option<Forced>) -> Result<PathBuf, String> {
        let file = self.file.as_deref().ok_or(NO_FOLDER)?;
        let failed = |why| format!("{} was not written: {why}", file.display());
        self.header
            .add(file, class, winner)
            .map_err(failed)
            .inspect_err(|why| log::warn!("{why}"))?;
        Ok(file.to_owned())
    }
}

/// The name of an adapter's file. Contexts with kernels in MSL have other winners, and a file of
/// their own.
fn file_name(adapter: &str, library: &Library) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = adapter.chars().map(plain).collect();
    let languages = if msl::has_msl(library) { "-msl" } else { "" };
    format!("tuned-{name}{languages}.txt")
}

/// First line of a text of winners: adapter, driver, kernels.
struct Header([String; 3]);

impl Header {
    fn new(adapter: &str, driver: String, library: &Library) -> Self {
        let one_line = |text: &str| text.replace(char::is_control, " ");
        Header([one_line(adapter), one_line(&driver), format!("{:016x}", kernels(library))])
    }

    /// The entries of a file; none when there is no file.
    fn read(&self, file: &Path) -> Result<Entries, String> {
        match std::fs::read_to_string(file) {
            Ok(text) => self.parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Entries::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    fn add(&self, file: &Path, class: &str, winner: Option<Forced>) -> std::io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // The lock is held until the end of the function. It has its own file, because `file` is
        // replaced.
        let guard = std::fs::File::create(file.with_extension("lock"))?;
        guard.lock()?;
        let mut entries = self.read(file).unwrap_or_default();
        entries.insert(class.to_owned(), winner);
        files::replace(file, self.text(&entries).as_bytes())
    }

    fn text(&self, entries: &Entries) -> String {
        let mut text = format!("{MAGIC}\t{VERSION}\t{}\n", self.0.join("\t"));
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
            return Err("it is no text of tuned kernels".into());
        }
        let version = fields.next().unwrap_or_default();
        if version != VERSION {
            return Err(format!("its format is {version:?}, this is {VERSION}"));
        }
        let (body, sum) = text.rsplit_once(CHECKSUM).ok_or("its end is missing")?;
        if sum != format!("{:016x}\n", Fnv::of(body)) {
            return Err("its checksum is wrong".into());
        }
        for (what, ours) in ["adapter", "driver", "hash of kernels"].iter().zip(&self.0) {
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
                    kernel.operand.map(|operand| operand.file),
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

/// FNV-1a, which is the same in every build and run, unlike the standard library's hashes.
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

    fn header() -> Header {
        Header(["vulkan X", "driver 1", "0123456789abcdef"].map(str::to_owned))
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
        let header = |library| Header::new("metal X", String::new(), library);
        let [wgsl, all] = [msl::WGSL, msl::ALL].map(header);
        assert_ne!(wgsl.0[2], all.0[2]);
        assert_eq!(wgsl.0[2], format!("{:016x}", kernels(msl::WGSL)));
        assert_eq!(file_name("metal X", msl::WGSL), "tuned-metal-x.txt");
        assert_eq!(file_name("metal X", msl::ALL), "tuned-metal-x-msl.txt");
    }

    #[test]
    fn there_and_back() {
        for entries in [entries(), Entries::new()] {
            assert_eq!(header().parse(&header().text(&entries)), Ok(entries));
        }
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_refused() {
        let text = header().text(&entries());
        for end in 0..text.len() {
            assert!(header().parse(&text[..end]).is_err(), "{:?}", &text[..end]);
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(header().parse(&changed).is_err(), "{changed:?}");
        }
        assert!(header().parse(&format!("{text}{text}")).is_err());
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let folder = std::env::temp_dir().join(format!("tilewise-winners-{}", std::process::id()));
        let path = folder.join("tuned.txt");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for entry in 0..10 {
                        header().add(path, &format!("{writer} {entry}"), None).unwrap();
                        assert!(header().read(path).unwrap().len() > entry);
                    }
                });
            }
        });
        assert_eq!(header().read(&path).unwrap().len(), 80);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn another_header_is_refused_with_the_reason() {
        let text = header().text(&entries());
        for (at, words) in [
            (0, "adapter is \"vulkan X\""),
            (1, "driver is \"driver 1\""),
            (2, "hash of kernels is"),
        ] {
            let mut other = header();
            other.0[at] = "another".into();
            let why = other.parse(&text).unwrap_err();
            assert!(why.contains(words) && why.contains("another"), "{why}");
        }
        let later = text.replacen("\t1\t", "\t2\t", 1);
        assert_eq!(header().parse(&later), Err("its format is \"2\", this is 1".into()));
        let sealed = |body: String| format!("{body}{CHECKSUM}{:016x}\n", Fnv::of(&body));
        let (head, _) = text.split_once('\n').unwrap();
        for line in ["no tab", "class\tsimt+kx", ""] {
            let why = header().parse(&sealed(format!("{head}\n{line}\n"))).unwrap_err();
            assert!(why.contains("a line of it"), "{why}");
        }
    }
}
