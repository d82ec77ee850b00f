//! Files that are something else than their names say: what they are by their first bytes, and what
//! to do.

use crate::error::bad;
use tilewise_core::Error;

/// The mark of the byte order of UTF-8. It may stand before a text.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// How an `.npy` file begins.
pub(crate) const NUMPY: &[u8] = b"\x93NUMPY";

/// The first bytes of a GGUF file.
pub(crate) const GGUF: &[u8] = b"GGUF";

/// Bytes of a file that are looked at.
pub(crate) const LOOK: usize = 512;

/// The kind of file that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Safetensors,
    Gguf,
    Npy,
    Json,
}

const DOWNLOAD: &str = "download the file again, and look at what the server says";
const TORCH: &str = "load it in PyTorch, and save its tensors with safetensors.torch.save_file";
const ARRAYS: &str = "load it in NumPy or MLX, and save its arrays with \
                      safetensors.numpy.save_file or mx.save_safetensors";
const KERAS: &str = "load it in Keras, and save its weights with safetensors.numpy.save_file";
const UNPACK: &str = "unpack it first";
/// The remedy for files before GGUF.
pub(crate) const OLD: &str =
    "convert the original model again, with llama.cpp's convert_hf_to_gguf.py";

/// First bytes, what has them, and what to do. The first row that fits counts.
#[rustfmt::skip]
const SIGNATURES: &[(&[u8], &str, &str)] = &[
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself", "git lfs pull"),
    (b"# xet version ", "a pointer of Xet, not the file itself", "hf download"),
    (b"/annex/objects/", "a pointer of git-annex, not the file itself", "git annex get"),
    (b"../.git/annex/", "a pointer of git-annex, not the file itself", "git annex get"),
    (NUMPY, "a NumPy array, not a model", ""),
    (GGUF, "a GGUF file", "give it a name that ends in .gguf"),
    (b"lmgg", "an older file of ggml, before GGUF", OLD),
    (b"ggml", "an older file of ggml, before GGUF", OLD),
    (b"fmgg", "an older file of ggml (ggmf), before GGUF", OLD),
    (b"ggmf", "an older file of ggml (ggmf), before GGUF", OLD),
    (b"tjgg", "an older file of ggml (ggjt), before GGUF", OLD),
    (b"ggjt", "an older file of ggml (ggjt), before GGUF", OLD),
    (b"algg", "an older adapter of ggml (ggla), before GGUF", OLD),
    (b"\x80\x02", "a pickle of Python, as older PyTorch writes it", TORCH),
    (b"\x80\x03", "a pickle of Python", TORCH),
    (b"\x80\x04", "a pickle of Python", TORCH),
    (b"\x80\x05", "a pickle of Python", TORCH),
    (b"\x1f\x8b", "a file that gzip has packed", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a file that zstd has packed", UNPACK),
    (b"\xfd7zXZ\0", "a file that xz has packed", UNPACK),
    (b"BZh", "a file that bzip2 has packed", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", UNPACK),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes it", KERAS),
];

/// Says what the file is if it is not of the kind that was expected, and what to do.
pub(crate) fn foreign(bytes: &[u8], expected: Kind) -> Option<String> {
    // The length of a header may begin like another format. Its upper half is 0.
    let has_header = bytes.get(4..8) == Some(&[0; 4]) && matches!(bytes.get(8), None | Some(b'{'));
    if expected == Kind::Safetensors && has_header {
        return None;
    }
    let own: &[u8] = match expected {
        Kind::Gguf => GGUF,
        Kind::Npy => NUMPY,
        Kind::Safetensors | Kind::Json => b"none",
    };
    if bytes.is_empty() {
        return Some(format!("an empty file: {DOWNLOAD}"));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Some(zip(bytes));
    }
    let unmarked = bytes.strip_prefix(MARK).unwrap_or(bytes);
    if let Some((_, what, remedy)) =
        SIGNATURES.iter().find(|(start, ..)| *start != own && unmarked.starts_with(start))
    {
        return Some(match *remedy {
            "" => (*what).to_owned(),
            remedy => format!("{what}: {remedy}"),
        });
    }
    // Archives of tar say so behind the first name.
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(format!("an archive of tar: {UNPACK}"));
    }
    if expected != Kind::Safetensors && bytes.get(8..10) == Some(b"{\"") {
        return Some("a safetensors file: give it a name that ends in .safetensors".into());
    }
    if bytes.len() >= 64 && bytes[..64].iter().all(|&byte| byte == 0) {
        return Some(format!("it begins with zeros, as after a download that stopped: {DOWNLOAD}"));
    }
    text(bytes, expected)
}

/// Says what to do with a file of another format, by the ending of its name.
pub(crate) fn remedy(name: &str) -> Option<&'static str> {
    const ENDINGS: [(&[&str], &str); 3] = [
        (&[".bin", ".pt", ".pth", ".ckpt"], TORCH),
        (&[".npz"], ARRAYS),
        (&[".h5", ".keras"], KERAS),
    ];
    let found = ENDINGS.iter().find(|(ends, _)| ends.iter().any(|end| name.ends_with(end)));
    found.map(|(_, remedy)| *remedy)
}

/// The error with what the file is in place of it, if that is known.
pub(crate) fn or_foreign(name: &str, bytes: &[u8], expected: Kind, error: Error) -> Error {
    foreign(bytes, expected).map_or(error, |what| bad(name, what))
}

/// An archive by the name of its first file.
fn zip(bytes: &[u8]) -> String {
    let word = |at: usize| {
        bytes.get(at..at + 2).map_or(0, |two| usize::from(two[0]) | usize::from(two[1]) << 8)
    };
    let first = bytes.get(30..).unwrap_or_default();
    let first = &first[..word(26).min(first.len())];
    if first.ends_with(b".npy") {
        return format!("an .npz archive of NumPy or MLX: {ARRAYS}");
    }
    if first.ends_with(b".pkl") {
        return format!("a file of PyTorch (a zip archive): {TORCH}");
    }
    format!("a zip archive: if it is PyTorch's (.bin, .pt, .pth), {TORCH}; or {UNPACK}")
}

/// Pages and other texts, by their beginning.
fn text(bytes: &[u8], expected: Kind) -> Option<String> {
    /// Characters of a text in an error.
    const SHOWN: usize = 60;
    let start = &bytes[..bytes.len().min(LOOK)];
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // A character may end beyond what is looked at.
        Err(why) if why.error_len().is_none() => {
            std::str::from_utf8(&start[..why.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lower = text.to_ascii_lowercase();
    let begins = |start: &str| lower.starts_with(start);
    if begins("<!doctype html") || begins("<html") || begins("<head") {
        return Some(format!("a web page: {DOWNLOAD}"));
    }
    if begins("<?xml") || begins("<error") {
        return Some(format!("XML, such as a server's error: {DOWNLOAD}"));
    }
    let is_plain = |c: char| !c.is_control() || c.is_ascii_whitespace();
    // Broken JSON has an error of its own, and few bytes may begin anything.
    if expected == Kind::Json || text.len() < 8 || !text.chars().all(is_plain) {
        return None;
    }
    let shown: String = text.chars().take(SHOWN).collect();
    let what = if begins("{") || begins("[") { "JSON" } else { "plain text" };
    Some(format!("{what}, which begins {shown:?}: {DOWNLOAD}"))
}
