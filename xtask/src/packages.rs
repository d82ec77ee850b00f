//! `cargo xtask packages`: checks that the crates to be published can be published.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Result, capture, cargo, tee};

/// Texts that tell users which Rust they need.
const TEXTS: [&str; 3] = ["README.md", "crates/tilewise/README.md", "CONTRIBUTING.md"];

/// The command: checks the manifests, and that cargo makes the packages without a warning.
pub(crate) fn main() -> Result {
    let workspace = Workspace::read()?;
    let mut complaints = workspace.complaints();
    for path in TEXTS {
        let version = format!("Rust {}", workspace.rust_version()?);
        if !read(path)?.contains(&version) {
            complaints.push(format!("{path}: it does not say `{version}`"));
        }
    }
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let command = ["package", "--workspace", "--no-verify", "--allow-dirty", "--color", "never"];
    let output = tee(&mut cargo(command))?;
    match output.lines().find(|line| line.starts_with("warning:")) {
        Some(warning) => Err(format!("cargo package complains: {warning}")),
        None => Ok(()),
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
}

/// The workspace as `cargo metadata` describes it.
struct Workspace(Value);

impl Workspace {
    fn read() -> Result<Self> {
        let metadata = capture(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
        serde_json::from_str(&metadata)
            .map(Workspace)
            .map_err(|error| format!("cargo metadata writes no JSON: {error}"))
    }

    fn packages(&self) -> impl Iterator<Item = &Value> {
        self.0["packages"].as_array().into_iter().flatten()
    }

    /// The oldest Rust that compiles the library.
    fn rust_version(&self) -> Result<&str> {
        self.packages()
            .find(|package| package["name"] == "tilewise")
            .and_then(|package| package["rust_version"].as_str())
            .ok_or_else(|| "tilewise states no rust-version".to_owned())
    }

    /// The manifests' faults.
    fn complaints(&self) -> Vec<String> {
        let rust_version = self.rust_version().unwrap_or_default();
        let mut complaints = Vec::new();
        for package in self.packages() {
            let name = package["name"].as_str().unwrap_or_default();
            let mut expect = |holds: bool, what: &str| {
                if !holds {
                    complaints.push(format!("{name}: {what}"));
                }
            };
            expect(package["rust_version"] == rust_version, "it has another rust-version");
            // cargo writes null for "anywhere", and otherwise a list of registries.
            let published = package["publish"].is_null();
            let is_default = self.0["workspace_default_members"]
                .as_array()
                .is_some_and(|members| members.contains(&package["id"]));
            expect(
                published == is_default,
                "the default members of the workspace are the crates without `publish = false`",
            );
            if published {
                missing(package).for_each(|what| expect(false, &format!("it lacks {what}")));
                let readme = folder(package).join("README.md");
                let text = fs::read_to_string(&readme).unwrap_or_default();
                for link in links(&text) {
                    // The package holds the crate's folder and nothing beside it.
                    let holds = !link.contains("..") && folder(package).join(link).exists();
                    expect(holds, &format!("README.md links to {link}, which is not in it"));
                }
            }
        }
        complaints
    }
}

/// The folder of a crate.
fn folder(package: &Value) -> PathBuf {
    let manifest = package["manifest_path"].as_str().and_then(|path| Path::new(path).parent());
    manifest.map(Path::to_owned).unwrap_or_default()
}

/// The files to which a text in Markdown links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter(|target| !target.contains("://"));
    files.filter_map(|target| target.split('#').next().filter(|file| !file.is_empty()))
}

/// Fields and files that a published crate lacks.
fn missing(package: &Value) -> impl Iterator<Item = String> {
    const FIELDS: [&str; 7] = [
        "description",
        "license",
        "readme",
        "documentation",
        "keywords",
        "categories",
        "rust_version",
    ];
    const FILES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let fields = FIELDS.into_iter().filter(move |field| is_empty(&package[field]));
    let docs = package["metadata"]["docs"]["rs"]["all-features"] != true;
    let docs = docs.then_some("all-features in package.metadata.docs.rs");
    let folder = folder(package);
    // `is_file` follows a link.
    let files = FILES.into_iter().filter(move |file| !folder.join(file).is_file());
    fields.chain(docs).chain(files).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(change: impl Fn(&mut Value)) -> Workspace {
        let mut package = serde_json::json!({
            "name": "tilewise",
            "id": "a",
            "manifest_path": Path::new(env!("CARGO_MANIFEST_DIR")).join("../shaders/Cargo.toml"),
            "publish": null,
            "rust_version": "1.2",
            "description": "Words.",
            "license": "MIT",
            "readme": "README.md",
            "documentation": "https://docs.rs/tilewise",
            "keywords": ["matrix"],
            "categories": ["mathematics"],
            "metadata": { "docs": { "rs": { "all-features": true } } },
        });
        change(&mut package);
        Workspace(serde_json::json!({
            "packages": [package, { "name": "b", "id": "b", "publish": [], "rust_version": "1.2" }],
            "workspace_default_members": ["a"],
        }))
    }

    #[test]
    fn links_to_files() {
        let text = "[a](b/c.md#d), [e](https://f.g/h.md) and [i](#j)\n[k](../l)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b/c.md", "../l"]);
    }

    #[test]
    fn a_crate_that_lacks_something() {
        assert_eq!(workspace(|_| ()).complaints(), [""; 0]);
        for (field, value, complaint) in [
            ("license", Value::Null, "tilewise: it lacks license"),
            ("keywords", serde_json::json!([]), "tilewise: it lacks keywords"),
            ("metadata", Value::Null, "it lacks all-features in package.metadata.docs.rs"),
            ("manifest_path", "/nowhere/Cargo.toml".into(), "it lacks LICENSE-APACHE"),
            ("rust_version", "1.3".into(), "b: it has another rust-version"),
            ("publish", serde_json::json!([]), "the default members"),
            ("id", "c".into(), "the default members"),
        ] {
            let complaints =
                workspace(|package| package[field] = value.clone()).complaints().join("\n");
            assert!(complaints.contains(complaint), "{field}: {complaints}");
        }
    }
}
