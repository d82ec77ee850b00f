//! Installing packages on Debian and Ubuntu, announced first, and only as root.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::process::{Result, capture, find_program, run};

/// A Debian or Ubuntu machine on which this process may install packages.
pub(crate) struct Apt {
    /// The release's code name, such as `bookworm`.
    codename: String,
    /// Ubuntu's packages differ: its `chromium` is a snap, and it has no `rustc-web`.
    pub(crate) is_debian: bool,
}

impl Apt {
    /// Refreshes the package lists, or says in words why nothing can be installed here.
    pub(crate) fn open() -> Result<Self> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let field = |name: &str| {
            let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or_default().trim_matches('"').to_owned()
        };
        let id = field("ID");
        if !matches!(id.as_str(), "debian" | "ubuntu") || find_program("apt-get").is_none() {
            return Err("packages are installed on Debian and Ubuntu only".to_owned());
        }
        if capture(Command::new("id").arg("-u"))?.trim() != "0" {
            return Err("installing packages needs root".to_owned());
        }
        let apt = Self { codename: field("VERSION_CODENAME"), is_debian: id == "debian" };
        run(Command::new("apt-get").args(["update", "-qq"]).stdout(io::stderr()))?;
        Ok(apt)
    }

    /// Installs `packages`, from `suite` if one is given.
    pub(crate) fn install(&self, packages: &[&str], suite: Option<&str>) -> Result {
        eprintln!("installing {} with apt-get", packages.join(", "));
        let mut command = Command::new("apt-get");
        command.stdout(io::stderr()).env("DEBIAN_FRONTEND", "noninteractive").args([
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
        ]);
        // The packages must not push out what the user has: Debian's rustc-web and rustc exclude
        // each other.
        command.arg("--no-remove");
        if let Some(suite) = suite {
            command.args(["-t", suite]);
        }
        run(command.args(packages))
    }

    /// Whether apt's present sources have `package` in version `least` or later.
    pub(crate) fn offers(&self, package: &str, least: &str) -> Result<bool> {
        Ok(offer(package, least)?.is_some())
    }

    /// The suite that offers `package` in version `least` or later: none if the usual sources offer
    /// it, else backports, which are then added to apt's sources. Debian gives backports a low
    /// priority, so adding them upgrades nothing that is not asked for with `-t`.
    pub(crate) fn suite_with(&self, package: &str, least: &str) -> Result<Option<String>> {
        let backports = format!("{}-backports", self.codename);
        if let Some(line) = offer(package, least)? {
            return Ok(line.contains(&backports).then_some(backports));
        }
        if !self.is_debian {
            return Err(format!("no source of apt offers {package} {least} or later"));
        }
        self.add_source(&backports)?;
        run(Command::new("apt-get").args(["update", "-qq"]).stdout(io::stderr()))?;
        match offer(package, least)? {
            Some(_) => Ok(Some(backports)),
            None => Err(format!(
                "neither {} nor {backports} offers {package} {least} or later",
                self.codename
            )),
        }
    }

    /// Adds a suite from the mirror that this machine already uses, because another may be out of
    /// its reach.
    fn add_source(&self, suite: &str) -> Result {
        let mut command = Command::new("apt-get");
        command.args([
            "indextargets",
            "--format",
            "$(CODENAME) $(COMPONENT) $(REPO_URI)",
            "Created-By: Packages",
        ]);
        let targets = capture(&mut command)?;
        let own = format!("{} main ", self.codename);
        let uri = targets.lines().find_map(|line| line.strip_prefix(&own)).ok_or_else(|| {
            format!(
                "apt's sources have no entry for {} main, whose mirror {suite} could be read from",
                self.codename
            )
        })?;
        let path = Path::new("/etc/apt/sources.list.d").join(format!("{suite}.sources"));
        eprintln!("adding {suite} to apt's sources, in {}", path.display());
        let entry = format!(
            "Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        );
        fs::write(&path, entry).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// The line of `apt-cache madison` that offers `package` in version `least` or later.
fn offer(package: &str, least: &str) -> Result<Option<String>> {
    let table = capture(Command::new("apt-cache").args(["madison", package]))?;
    let version = |line: &str| line.split('|').nth(1).map(|version| version.trim().to_owned());
    let offered = |line: &&str| version(line).is_some_and(|version| is_at_least(&version, least));
    Ok(table.lines().find(offered).map(str::to_owned))
}

/// The version of an installed package; none if it is not installed or there is no dpkg.
pub(crate) fn installed_version(package: &str) -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status} ${Version}", package])
        .output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.strip_prefix("installed ").map(str::to_owned)
}

/// Compares versions by Debian's rules (epochs, and `~` before everything), which dpkg knows best.
pub(crate) fn is_at_least(version: &str, least: &str) -> bool {
    let status = Command::new("dpkg").args(["--compare-versions", version, "ge", least]).status();
    status.is_ok_and(|status| status.success())
}
