//! Shaders, each parsed once.

use super::Failure;
use crate::texts::parts;
use naga::AddressSpace;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tilewise_core::plan::{Part, Pass};
use tilewise_sanitizer::{Options, Shader};
use tilewise_shaders::assemble_with;

/// A shader, or why there is none.
type Parsed = Result<Arc<Shader>, Failure>;

/// Shaders, each parsed once, by their parts and by whether marked loops are repeated. They have
/// the library's files, or one file is replaced.
#[derive(Default)]
pub struct Shaders<'a> {
    replaced: Option<(&'a str, &'a str, &'a Shaders<'a>)>,
    parsed: Mutex<HashMap<(Vec<Part>, bool), Parsed>>,
}

static LIBRARY: LazyLock<Shaders<'static>> = LazyLock::new(Shaders::default);

impl Shaders<'static> {
    /// The library's shaders, which all tests of a process share.
    pub fn of_library() -> &'static Self {
        &LIBRARY
    }
}

impl<'a> Shaders<'a> {
    /// Shaders with another text for the file `path`. Passes without that file are taken from
    /// `library`.
    pub fn with(path: &'a str, text: &'a str, library: &'a Shaders<'a>) -> Self {
        Shaders { replaced: Some((path, text, library)), parsed: Mutex::default() }
    }

    /// Whether a pass's shader may do something else than the library's.
    pub(super) fn changed(&self, pass: &Pass, options: &Options) -> bool {
        let Some((path, _, library)) = self.replaced else { return false };
        let same = |(own, known): (Arc<Shader>, Arc<Shader>)| {
            own.is_same_program(&known, options).is_ok_and(|same| same)
        };
        parts(pass).iter().any(|part| part.file == path)
            && !self.get(pass).ok().zip(library.get(pass).ok()).is_some_and(same)
    }

    pub(super) fn get(&self, pass: &Pass) -> Parsed {
        let replaced = match self.replaced {
            Some((path, _, library)) if parts(pass).iter().all(|part| part.file != path) => {
                return library.get(pass);
            }
            Some((path, text, _)) => Some((path, text)),
            None => None,
        };
        let key = (pass.parts.clone(), pass.unroll);
        if let Some(known) = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let other =
            |path: &str| replaced.filter(|(replaced, _)| *replaced == path).map(|(_, text)| text);
        let shader = assemble_with(pass, other).map_err(Failure::Invalid).and_then(|text| {
            let shader = Shader::parse(&pass.label, &text)
                .map_err(|error| Failure::Invalid(error.to_string()))?;
            as_planned(&shader, pass)?;
            Ok(Arc::new(shader))
        });
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner).insert(key, shader.clone());
        shader
    }
}

/// Checks that workgroups have the size and the memory that the planner compared with the limits.
fn as_planned(shader: &Shader, pass: &Pass) -> Result<(), Failure> {
    let module = shader.module();
    let sizes = module.entry_points.iter().map(|entry| entry.workgroup_size);
    let variables = module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == AddressSpace::WorkGroup);
    let bytes: u32 =
        variables.map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx())).sum();
    let sizes: Vec<_> = sizes.collect();
    if sizes == [[pass.threads, 1, 1]] && bytes == pass.workgroup_bytes {
        return Ok(());
    }
    let planned = (pass.threads, pass.workgroup_bytes);
    Err(Failure::Refused(format!(
        "invocations {sizes:?} and {bytes} bytes of workgroup memory, planned {planned:?}"
    )))
}
