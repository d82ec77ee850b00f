//! Files that are something else than their names say are named, with the remedy.

use crate::support::{file, open, tensor};
use safetensors::tensor::Dtype::F32;
use tilewise_files::{Files, Model, Npy};

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n\
    oid sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\nsize 4976698672\n";

/// A zip archive's first bytes.
fn zip(first: &str) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04\x14\0\0\0\0\0".to_vec();
    bytes.resize(26, 0);
    bytes.extend((first.len() as u16).to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(first.as_bytes());
    bytes.resize(200, 7);
    bytes
}

/// Files, and the words that the error has: what it is, and what to do.
fn files() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let mut tar = vec![b'a'; 257];
    tar.extend(b"ustar\0");
    let mut gzip = b"\x1f\x8b\x08\x08".to_vec();
    gzip.resize(50, 9);
    vec![
        (POINTER.to_vec(), "a pointer of Git LFS", "git lfs pull"),
        ([b"\xef\xbb\xbf", POINTER].concat(), "a pointer of Git LFS", "git lfs pull"),
        (b"# xet version 0\nfilesize = 4976698672\n".to_vec(), "a pointer of Xet", "hf download"),
        (b"/annex/objects/SHA256E-s1--00.safetensors\n".to_vec(), "git-annex", "git annex get"),
        (Vec::new(), "an empty file", "download"),
        (vec![0; 4096], "begins with zeros", "download"),
        (b"\n <!DOCTYPE html><html>".to_vec(), "a web page", "download"),
        (b"<HTML lang=en>".to_vec(), "a web page", "download"),
        (b"<?xml version=\"1.0\"?><Error><Code>".to_vec(), "XML", "download"),
        (zip("archive/data.pkl"), "PyTorch", "safetensors.torch.save_file"),
        (zip("weight.npy"), ".npz", "mx.save_safetensors"),
        (zip("a.txt"), "zip archive", "unpack"),
        (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec(), "pickle", "save_file"),
        (b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}.".to_vec(), "pickle", "save_file"),
        (gzip, "gzip", "unpack"),
        (b"(\xb5/\xfd\0\0\0\0\0\0".to_vec(), "zstd", "unpack"),
        (tar, "tar", "unpack"),
        (b"lmgg\0\x7d\0\0\0\x10\0\0".to_vec(), "before GGUF", "convert_hf_to_gguf.py"),
        (b"fmgg\x01\0\0\0\0\x7d\0\0".to_vec(), "ggmf", "convert_hf_to_gguf.py"),
        (b"tjgg\x03\0\0\0\0\x7d\0\0".to_vec(), "ggjt", "convert_hf_to_gguf.py"),
        (b"ggjt\0\0\0\x03\0\0\x7d\0".to_vec(), "ggjt", "convert_hf_to_gguf.py"),
        (b"\x89HDF\r\n\x1a\n\0\0\0\0".to_vec(), "HDF5", "Keras"),
        (b"Entry not found".to_vec(), "plain text, which begins \"Entry not found\"", "server"),
    ]
}

fn refusal(name: &str, bytes: &[u8]) -> String {
    Model::from_bytes(name, bytes.to_vec()).err().expect(name).to_string()
}

#[test]
fn tensors() {
    for (bytes, what, remedy) in files() {
        let npy = Npy::read(&bytes[..], bytes.len() as u64).unwrap_err().to_string();
        let shard = file(&[tensor("n", F32, &[1])], &[]);
        let index = br#"{"weight_map":{"n":"a.safetensors","m":"b.safetensors"}}"#;
        let sharded = open(&[
            ("i.safetensors.index.json", index.to_vec()),
            ("a.safetensors", shard),
            ("b.safetensors", bytes.clone()),
        ]);
        for text in [
            refusal("m.safetensors", &bytes),
            refusal("m.gguf", &bytes),
            refusal("m", &bytes),
            npy,
            sharded.err().unwrap().to_string(),
        ] {
            assert!(text.contains(what) && text.contains(remedy), "{what}: {text}");
        }
    }
    let json = br#"{"error":"Invalid credentials in Authorization header"}"#;
    let text = refusal("m.safetensors", json);
    assert!(text.contains(r#"JSON, which begins "{\"error\":\"Invalid"#), "{text}");
    let safetensors = file(&[tensor("n", F32, &[1])], &[]);
    let text = refusal("m.gguf", &safetensors);
    assert_eq!(text, "m.gguf: a safetensors file: give it a name that ends in .safetensors");
    let text = Npy::read(&b"GGUF\x03\0\0\0\0\0"[..], 10).unwrap_err().to_string();
    assert_eq!(text, "a GGUF file: give it a name that ends in .gguf");
}

/// A JSON file beside the tensors: the index closes the model, the config what needs it.
#[test]
fn texts_beside_tensors() {
    let model = file(&[tensor("n", F32, &[1])], &[]);
    for (bytes, what, remedy) in files() {
        // Any text may be broken JSON.
        let (what, remedy) =
            if what.starts_with("plain") { ("not JSON", "line 1") } else { (what, remedy) };
        let text = refusal("i.safetensors.index.json", &bytes);
        assert!(text.contains(what) && text.contains(remedy), "{what}: {text}");
        let beside = open(&[("m.safetensors", model.clone()), ("config.json", bytes)]).unwrap();
        assert_eq!(beside.tensors().len(), 1, "{what}");
    }
}

/// A header may be as long as another format's first bytes are as a number.
#[test]
fn lengths_are_no_signatures() {
    for length in [0x0280u64, 0x0480, 0x8b1f, 0x685a42] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(b"{\"a\":1");
        assert!(refusal("m.safetensors", &bytes).contains("truncated: a header of "));
        bytes.resize(8 + length as usize, b' ');
        assert!(refusal("m.safetensors", &bytes).contains("the header, "));
    }
}

/// If a folder has files of other formats alone, the error says what to do with one.
#[test]
fn folders() {
    let open = |names: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), POINTER).unwrap());
        Model::open(folder.path()).err().unwrap().to_string()
    };
    assert!(open(&["config.json"]).ends_with("no .safetensors or .gguf file is there"));
    let text = open(&["config.json", "pytorch_model.bin"]);
    assert!(
        text.contains("pytorch_model.bin is of another format")
            && text.contains("safetensors.torch.save_file"),
        "{text}"
    );
    assert!(open(&["weights.npz"]).contains("mx.save_safetensors"));
    assert!(open(&["model.safetensors"]).contains("git lfs pull"));
    let files = Files::Memory([("weights.npz".to_owned(), zip("a.npy"))].into());
    let text = Model::open_in(files, "weights.npz").err().unwrap().to_string();
    assert!(text.contains(".npz archive"), "{text}");
}
