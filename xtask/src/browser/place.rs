//! Browsers: found or installed, and started.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{FOLDER, site};
use crate::adapters::{self, Adapters};
use crate::debian::Apt;
use crate::process::{Result, capture, find_program, run};

/// Where the page is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Place {
    /// Debian's Chromium, without a window, on SwiftShader.
    Chromium,
    /// Firefox ESR, without a window, on lavapipe.
    Firefox,
    /// Chromium's WebGPU in Node, on lavapipe, which has f16.
    Dawn,
    /// A browser of yours, to be opened at the address that is printed.
    Other,
}

/// Options of Chromium: it takes SwiftShader, and talks to nobody.
const CHROMIUM: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--use-webgpu-adapter=swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// Preferences of Firefox: it takes a software GPU, and asks nothing.
const FIREFOX: &str = r#"
user_pref("dom.webgpu.enabled", true);
user_pref("gfx.webgpu.force-enabled", true);
user_pref("gfx.webgpu.ignore-blocklist", true);
user_pref("app.update.auto", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.enabled", false);
"#;

/// Chromium's WebGPU as a package of npm.
const DAWN: &str = "webgpu@0.6.2";

impl Place {
    /// The programs that it needs, and the packages that bring them.
    fn packages(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Place::Chromium => &[("chromium", "chromium")],
            Place::Firefox => &[("firefox-esr", "firefox-esr")],
            Place::Dawn => &[("node", "nodejs"), ("npm", "npm")],
            Place::Other => &[],
        }
    }

    /// Installs what is missing; the inner error says why it cannot be had.
    pub(super) fn prepare(self) -> Result<std::result::Result<(), String>> {
        let missing = self.packages().iter().filter(|(program, _)| find_program(program).is_none());
        let missing: Vec<_> = missing.map(|(_, package)| *package).collect();
        if !missing.is_empty() {
            let apt = match Apt::open() {
                Ok(apt) if apt.is_debian => apt,
                Ok(_) => return Ok(Err(format!("only Debian has {}", missing.join(", ")))),
                Err(why) => return Ok(Err(format!("there is no {}: {why}", missing.join(", ")))),
            };
            apt.install(&missing, None)?;
        }
        if self == Place::Dawn && !Path::new(FOLDER).join("node_modules/webgpu").exists() {
            fs::create_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
            let npm = ["install", "--no-save", "--no-fund", "--no-audit", "--prefix", FOLDER, DAWN];
            run(Command::new("npm").args(npm))?;
        }
        if matches!(self, Place::Firefox | Place::Dawn) {
            adapters::prepare()?;
            if adapters::lavapipe().is_none() {
                return Ok(Err("there is no lavapipe".to_owned()));
            }
        }
        Ok(Ok(()))
    }

    /// Its name and version.
    pub(super) fn version(self) -> Result<String> {
        match self {
            Place::Chromium | Place::Firefox => {
                let (program, _) = self.packages()[0];
                capture(Command::new(program).arg("--version")).map(|text| text.trim().to_owned())
            }
            Place::Dawn => {
                let node = capture(Command::new("node").arg("--version"))?;
                Ok(format!("{DAWN} in Node {}", node.trim()))
            }
            Place::Other => Ok("a browser of yours".to_owned()),
        }
    }

    /// Opens an address.
    pub(super) fn open(self, address: &str) -> Result<Running> {
        let profile = tempfile::tempdir().map_err(|error| format!("no profile: {error}"))?;
        let mut command = match self {
            Place::Chromium => {
                let mut command = Command::new("chromium");
                command.arg(format!("--user-data-dir={}", profile.path().display())).args(CHROMIUM);
                command
            }
            Place::Firefox => {
                let preferences = profile.path().join("user.js");
                fs::write(&preferences, FIREFOX)
                    .map_err(|error| format!("{}: {error}", preferences.display()))?;
                let mut command = Command::new("firefox-esr");
                command.args(["--headless", "--no-remote", "--profile"]).arg(profile.path());
                command
            }
            Place::Dawn => {
                let mut command = Command::new("node");
                command.arg(Path::new(FOLDER).join(site::PAGE).join("dawn.mjs"));
                command
            }
            Place::Other => {
                println!("open {address}");
                return Ok(Running { child: None, log: PathBuf::new(), profile });
            }
        };
        if let (Place::Firefox | Place::Dawn, Some(driver)) = (self, adapters::lavapipe()) {
            Adapters { drivers: vec![driver], ..Adapters::default() }.apply(&mut command);
        }
        let log = Path::new(FOLDER).join(format!("{self:?}.log"));
        let cannot = |error| format!("{}: {error}", log.display());
        let out = File::create(&log).map_err(cannot)?;
        let errors = out.try_clone().map_err(cannot)?;
        command.arg(address).stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{self:?} cannot start: {error}"))?;
        Ok(Running { child: Some(child), log, profile })
    }
}

/// A browser. Dropping it ends the browser.
pub(super) struct Running {
    child: Option<Child>,
    log: PathBuf,
    /// The browser's profile; its folder is removed after the browser's end.
    #[expect(dead_code, reason = "its removal is its use")]
    profile: TempDir,
}

impl Running {
    /// Why the browser has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<_> = log.lines().rev().take(20).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        Some(format!("the browser ended ({status}):\n{}\n", last.join("\n")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The browser may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
