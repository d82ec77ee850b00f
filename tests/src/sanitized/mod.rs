//! Runs a case's shaders in the sanitizer and not on a GPU: the same plan, the same assembled text,
//! and buffers of the sizes that the plan binds.
//!
//! Exactly the logical range of every operand is declared. Before, behind and between its rows lies
//! NaN, and touching that is a finding. Memory of workgroups and variables starts undefined,
//! because the library's pipelines run without zeroing. With beta = 0 the output is poisoned, and
//! every element of it must be written. A clean run is the proof that the library's unchecked
//! shaders rely on.

mod check;
mod conversions;
mod counted;
mod logical;
mod ranges;
mod shaders;
mod shards;
mod written;

use crate::case::Indices;
use crate::cases::UNCOMPILED;
use crate::runner::{Stored, problem};
use crate::{Case, Filled, Outcome};
pub use check::{check, plans};
pub use conversions::{Conversion, Ran, arithmetic};
use logical::declare;
use ranges::Elements;
pub use shaders::Shaders;
use shards::in_shards;
use std::collections::HashMap;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Binding, Forced, Pass, prepare};
use tilewise_core::{Caps, DeviceClass, Gathered, Params, Plan, Problem, convert, plan};
use tilewise_sanitizer::{Buffer, Error, Finding, Kind, Launch, Options, Report, Shader, ZeroInit};
use tilewise_shaders::KIT;
pub use written::Written;
use written::is_packed;

/// Why a case failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The planner has no plan, or the sanitizer does not run it.
    Refused(String),
    /// The text is no valid WGSL.
    Invalid(String),
    /// The sanitizer found something: the kind of the first finding, and all of them as a report.
    Found(Kind, String),
    /// The output is not the oracle's.
    Wrong(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused(text) => write!(f, "refused: {text}"),
            Failure::Invalid(text) => write!(f, "invalid: {text}"),
            Failure::Found(_, text) => write!(f, "found:\n{text}"),
            Failure::Wrong(text) => write!(f, "wrong: {text}"),
        }
    }
}

/// Options of the library's pipelines, without counting costs.
pub fn options() -> Options {
    let mut options = Options::default();
    (options.zero_init, options.costs) = (ZeroInit::NONE, None);
    options
}

/// The plan of a case on a device with these caps. It is in MSL if the case's kernel is.
///
/// # Errors
/// `Refused`, with the planner's reason.
pub fn planned(case: &Case, caps: &Caps) -> Result<Plan, Failure> {
    let refused = |error: tilewise_core::Error| Failure::Refused(error.to_string());
    let forced: Option<Forced> =
        case.kernel.as_deref().map(str::parse).transpose().map_err(refused)?;
    let in_msl =
        |forced: &Forced| tilewise_msl::KERNELS.iter().any(|kernel| kernel.name == forced.kernel);
    let library = match forced.as_ref().is_some_and(in_msl) {
        true => tilewise_msl::LIBRARY,
        false if caps.class == DeviceClass::Cpu => UNCOMPILED,
        false => tilewise_shaders::LIBRARY,
    };
    let mut problem = problem(case);
    let mut passes = Vec::new();
    for (role, own) in [(Role::A, 0), (Role::B, 1)].into_iter().filter(|_| case.prepared) {
        let Problem { m, n, k, batch, a, b, .. } = problem;
        let (operand, entries, extent) =
            if role == Role::A { (a, batch, m) } else { (b, problem.entries(), n) };
        let sizes = [entries, extent, k];
        if let Some(made) =
            prepare(operand, role, sizes, case.precision, caps, &library).map_err(refused)?
        {
            problem.copies[own] = Some(made.copy);
            passes.push(made.pass);
        }
    }
    let own = problem.epilogue;
    if case.written {
        (problem.epilogue.alpha, problem.epilogue.beta) = (1.0, 1.0);
    }
    let plan = |problem: &Problem| plan(problem, caps, &library, forced.as_ref()).map_err(refused);
    let mut plan = match &case.shards[..] {
        [] => plan(&problem)?,
        shards => in_shards(&problem, shards, plan)?,
    };
    if case.written {
        plan.problem.epilogue = own;
        for Params { alpha, beta, .. } in plan.passes.iter_mut().map(|pass| &mut pass.params) {
            (*alpha, *beta) = (own.alpha.to_bits(), own.beta.to_bits());
        }
    }
    Ok(Plan { passes: [passes, plan.passes].concat(), ..plan })
}

/// A case with everything that a run needs.
pub struct Job {
    /// The case and what must come of it.
    pub filled: Filled,
    /// The plan that computes the product.
    pub plan: Plan,
    /// Whether each element must be the oracle's value rounded to nearest even. Then f32 must hold
    /// that value exactly.
    pub rounded: bool,
}

/// Whether a finishing pass keeps its results in scratch memory for another pass.
fn keeps(pass: &Pass) -> bool {
    pass.parts.iter().any(|part| KIT.residual_pass.is_some_and(|two| two.keep == part.file))
}

impl Record {
    /// The contents of the output's buffer at the end.
    pub fn output(&self) -> &[u8] {
        self.written.last().map_or(&[], |written| &written.c)
    }
}

/// A run without failures.
pub struct Record {
    outcome: Outcome,
    /// The memory before each pass, and after the last.
    written: Vec<Written>,
    /// The cost of the run, in operations of the sanitizer.
    pub operations: u64,
}

impl Job {
    /// Prepares a case for a device with these caps.
    ///
    /// # Errors
    /// `Refused` if the planner has no plan.
    pub fn new(case: &Case, caps: &Caps) -> Result<Self, Failure> {
        let plan = planned(case, caps)?;
        let filled = Filled::new(case, caps).map_err(Failure::Refused)?;
        Ok(Job { filled, plan, rounded: false })
    }

    /// Runs the passes in order, each on the memory that earlier passes left.
    ///
    /// # Errors
    /// The first of these: the text is not valid; a finding; an output that is not the oracle's.
    pub fn run(&self, shaders: &Shaders<'_>, options: &Options) -> Result<Outcome, Failure> {
        self.run_recorded(shaders, options).map(|record| record.outcome)
    }

    /// The memory before the first pass.
    pub(crate) fn unwritten(&self) -> Written {
        let mut packed: HashMap<Role, Vec<u8>> = HashMap::new();
        let bindings = self.plan.passes.iter().flat_map(|pass| &pass.bindings);
        for binding in bindings.filter(|binding| is_packed(binding.from)) {
            let bytes = packed.entry(binding.from).or_default();
            bytes.resize(bytes.len().max((binding.start + binding.bytes) as usize), 0);
        }
        Written { c: self.filled.old.bytes.clone(), scratch: Vec::new(), packed }
    }

    /// Like [`run`](Self::run), and records what every pass found and left.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn run_recorded(
        &self,
        shaders: &Shaders<'_>,
        options: &Options,
    ) -> Result<Record, Failure> {
        let mut written = vec![self.unwritten()];
        let mut operations = 0;
        for (index, pass) in self.plan.passes.iter().enumerate() {
            let mut next = written[index].clone();
            operations += self.pass(pass, shaders, options, &mut next)?;
            written.push(next);
        }
        let outcome = self.judge(written[self.plan.passes.len()].c.clone())?;
        Ok(Record { outcome, written, operations })
    }

    /// Like [`run`](Self::run), with one file of the recorded run replaced. A pass is not run again
    /// if it does the same as then, on the same memory: the recorded memory is taken. Returns
    /// whether C has the recorded bits.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn run_changed(
        &self,
        record: &Record,
        shaders: &Shaders<'_>,
        options: &Options,
    ) -> Result<bool, Failure> {
        let (first, last) = (&record.written[0], &record.written[self.plan.passes.len()]);
        let mut written = first.clone();
        for (pass, known) in self.plan.passes.iter().zip(record.written.windows(2)) {
            if written == known[0] && !shaders.changed(pass, options) {
                written.clone_from(&known[1]);
            } else {
                self.pass(pass, shaders, options, &mut written)?;
            }
        }
        let same = written.c == last.c;
        if !same {
            self.judge(written.c)?;
        }
        Ok(same)
    }

    /// Checks that an output is the oracle's.
    ///
    /// # Errors
    /// `Wrong`.
    pub(crate) fn judge(&self, c: Vec<u8>) -> Result<Outcome, Failure> {
        let outcome = self.filled.judge(c).map_err(Failure::Wrong)?;
        if self.rounded {
            self.check_rounding(&outcome).map_err(Failure::Wrong)?;
        }
        Ok(outcome)
    }

    /// Runs one pass on the memory that earlier passes left. Returns the number of operations that
    /// it took.
    fn pass(
        &self,
        pass: &Pass,
        shaders: &Shaders<'_>,
        options: &Options,
        written: &mut Written,
    ) -> Result<u64, Failure> {
        let report = self.launch(pass, &*shaders.get(pass)?, options, written)?;
        for binding in pass.bindings.iter().filter(|binding| binding.writable) {
            // A shader with a mistake may leave a binding out.
            let Some(bytes) = report.buffers.get(&(0, binding.role.binding())) else { continue };
            written.take(binding, bytes);
        }
        Ok(report.counters.operations)
    }

    fn launch(
        &self,
        pass: &Pass,
        shader: &Shader,
        options: &Options,
        written: &Written,
    ) -> Result<Report, Failure> {
        let params = Buffer::new(bytemuck::bytes_of(&pass.params));
        let mut launch = Launch::new(shader)
            .grid(self.grid(pass, written)?)
            .bind(0, Role::Params.binding(), params)
            .options(options.clone());
        for binding in &pass.bindings {
            let buffer = self.buffer(pass, binding, written);
            launch = launch.bind(0, binding.role.binding(), buffer);
        }
        launched(launch.run(), shader)
    }

    /// The buffer for a role, as long as planned, with its logical range. C, scratch and packed
    /// operands, which passes write, are given.
    fn buffer(
        &self,
        pass: &Pass,
        binding: &Binding,
        Written { c, scratch, packed }: &Written,
    ) -> Buffer {
        let problem = &self.plan.problem;
        let masked = problem.grouping.traits().masked;
        let binds = |role| pass.bindings.iter().any(|binding| binding.role == role);
        if is_packed(binding.from) {
            let bytes = &packed[&binding.from][binding.start as usize..][..binding.bytes as usize];
            // Rows of masked entries that nobody needs are not packed, and stay NaN.
            let some = masked && binds(Role::A) && binds(Role::Offsets);
            return match binding.writable {
                true if some => Buffer::new(vec![0xff; bytes.len()]).range(0..binding.bytes),
                true => Buffer::output(bytes.len()).range(0..binding.bytes).must_write(),
                false => Buffer::new(bytes).range(0..binding.bytes),
            };
        }
        let words = binding.element_bytes == 4;
        let cut = |bytes: &[u8]| Buffer::new(cut(bytes, binding.start, binding.bytes));
        // If several passes write C, each writes only its part.
        let writes = |pass: &&Pass| {
            !keeps(pass) && pass.bindings.iter().any(|binding| binding.role == Role::C)
        };
        let whole = self.plan.passes.iter().filter(writes).count() == 1;
        let bound = binding.start..binding.start + binding.bytes;
        match binding.role {
            Role::C => {
                let elements = self.elements(Role::C, |entry| self.rows(entry), 0);
                let buffer = declare(&elements, cut(c), words, &bound);
                // Words that are shared with other bytes are read and written back.
                let shared = words && elements.iter().any(Elements::shares_words);
                let unread = problem.epilogue.beta == 0.0 && !shared;
                let buffer = if whole && !keeps(pass) { buffer.must_write() } else { buffer };
                if whole && unread { buffer.poisoned() } else { buffer }
            }
            Role::Scratch => {
                let [m, n, copies] =
                    [pass.params.m, pass.params.n, pass.params.entries].map(u64::from);
                let row = 4 * n.next_multiple_of(4);
                let copies = if !problem.grouping.traits().shares_rows { copies } else { 1 };
                let reads = keeps(pass) || !binding.writable;
                let splits = if reads { pass.params.scratch_splits } else { pass.params.splits };
                let grouped = problem.grouping.operands().count() > 0;
                let some_rows = grouped && problem.grouping.traits().whole_k;
                // A piece of a grouped product leaves out rows whose groups belong to another
                // piece.
                let known = !some_rows || self.plan.cuts.is_empty();
                let rows = |entry| if some_rows && known { self.rows(entry) } else { m };
                let adds = pass.parts.iter().any(|part| part.constants.contains(&("ADD", 1)));
                let buffer = match !reads && !adds && known {
                    true => Buffer::output(binding.bytes as usize),
                    false => cut(scratch),
                };
                let entries = (0..u64::from(splits)).flat_map(|split| {
                    (0..copies).map(move |entry| ((split * copies + entry) * m * row, entry))
                });
                entries.fold(buffer, |buffer, (start, entry)| {
                    buffer.range(start..start + rows(entry) * row)
                })
            }
            Role::Offsets => {
                let ends = self.filled.case.groups.as_ref().map_or(&[][..], |groups| &groups.ends);
                // A shard binds the ends up to its last group.
                let bytes = binding.bytes.min(4 * ends.len() as u64);
                cut(bytemuck::cast_slice(ends)).range(0..bytes)
            }
            Role::RowIndex => {
                let words = self.indices();
                let Gathered { offset, step, .. } = problem.gathered.expect("rows by index");
                let place = |row| 4 * (offset + row * step);
                let buffer = cut(bytemuck::cast_slice(&words));
                (0..problem.m)
                    .filter(|row| place(*row) < binding.bytes)
                    .fold(buffer, |buffer, row| buffer.range(place(row)..place(row) + 4))
            }
            role => {
                // Packing does not know where the groups end, and copies all of an operand. Of
                // masked entries it copies the strips with rows. On matrix units, a tile with
                // nothing to do reads the first row or step. (A mainloop may read a table of
                // groups, so only passes that write one pack.)
                let packed = |binding: &Binding| binding.role == Role::Packed && binding.writable;
                let packing = pass.bindings.iter().any(packed);
                let constant = |name| {
                    let mut all = pass.parts.iter().flat_map(|part| &part.constants);
                    all.find(|(own, _)| *own == name).map_or(1, |&(_, value)| u64::from(value))
                };
                let strip = constant("STRIP");
                // If the storage runs along the rows, a vector may hold rows beyond a count.
                let a_bytes = problem.a.format.planes()[0].bytes;
                let vector = if problem.a.transposed { binding.element_bytes / a_bytes } else { 1 };
                let rows = |entry| match self.rows(entry) {
                    rows if packing && role == Role::A && masked && binds(Role::Offsets) => {
                        let fours = if strip > 1 { 4 } else { 1 };
                        let rows = rows.next_multiple_of(fours).next_multiple_of(strip);
                        // A vector along M may hold more rows, and so may the rest of a word.
                        let along_m = if problem.a.transposed { [8, 1] } else { [1, 0] };
                        (rows.next_multiple_of(along_m[0]) + along_m[1]).min(problem.m)
                    }
                    _ if packing => problem.m,
                    rows if role == Role::A && masked && rows > 0 => {
                        rows.next_multiple_of(vector).min(problem.m)
                    }
                    rows if entry == 0 => rows.max(u64::from(pass.coop)),
                    rows => rows,
                };
                // On matrix units, a vector along K may hold steps beyond the last end.
                let (along_k, bytes) = match role {
                    Role::A => (!problem.a.transposed, a_bytes),
                    _ => (problem.b.transposed, problem.b.format.planes()[0].bytes),
                };
                let step = if along_k { (binding.element_bytes / bytes).max(1) } else { 1 };
                let k = match self.steps() {
                    _ if packing => problem.k,
                    k if pass.coop => k.max(1).next_multiple_of(step).min(problem.k),
                    k => k,
                };
                let elements = match problem.grouping.traits().listed && binding.element_bytes > 4 {
                    true => {
                        let vector = binding.element_bytes / bytes;
                        self.listed(role, vector, pass.coop.then_some(binding.start / bytes))
                    }
                    false => self.elements(role, rows, k),
                };
                declare(&elements, cut(&self.stored(role)), words, &bound)
            }
        }
    }

    /// The bytes for a role, up to the last one that a kernel may touch if it takes elements one by
    /// one. Kernels that pack operands do not.
    pub(crate) fn memory(&self, binding: &Binding, written: &Written) -> Vec<u8> {
        if is_packed(binding.from) {
            return cut(&written.packed[&binding.from], binding.start, binding.bytes);
        }
        let end = |role| {
            let elements = self.elements(role, |entry| self.rows(entry), self.steps());
            elements.iter().map(Elements::end).max().unwrap_or(0)
        };
        let indices = self.indices();
        let (bytes, end) = match binding.role {
            Role::Scratch => (&written.scratch[..], binding.bytes),
            Role::Offsets => {
                let ends = self.filled.case.groups.as_ref().map_or(&[][..], |groups| &groups.ends);
                (bytemuck::cast_slice(ends), 4 * ends.len() as u64)
            }
            Role::RowIndex => (bytemuck::cast_slice(&indices), 4 * indices.len() as u64),
            Role::C => (&written.c[..], end(Role::C)),
            role => (&self.stored(role)[..], end(role)),
        };
        cut(bytes, binding.start, end.saturating_sub(binding.start).min(binding.bytes))
    }

    /// The storage of A's row indices.
    fn indices(&self) -> Vec<u32> {
        self.filled.case.gathered.as_ref().map_or(Vec::new(), Indices::words)
    }

    /// The bytes of an operand that is only read.
    fn stored(&self, role: Role) -> Vec<u8> {
        let Filled { a, b, bias, residual, weights, .. } = &self.filled;
        let of = |stored: &Option<Stored>| {
            stored.as_ref().map_or(Vec::new(), |stored| stored.bytes.clone())
        };
        match role {
            Role::A => a.bytes.clone(),
            Role::Bias => of(bias),
            Role::Residual => of(residual),
            _ => match weights {
                None => b.bytes.clone(),
                Some(weights) => weights
                    .iter()
                    .flat_map(|matrix| matrix.planes()[role.plane()].clone())
                    .collect(),
            },
        }
    }

    fn check_rounding(&self, outcome: &Outcome) -> Result<(), String> {
        let dtype = self.filled.case.c.dtype;
        let computed = convert::decode(dtype, &outcome.bytes).map_err(|error| error.to_string())?;
        let expected = &self.filled.expected;
        for (index, (got, &value)) in computed.iter().zip(&expected.value).enumerate() {
            let wanted = convert::round_f64(dtype, value) as f32;
            if expected.written[index]
                && got.to_bits() != wanted.to_bits()
                && !(got.is_nan() && wanted.is_nan())
            {
                return Err(format!(
                    "element {index} is {got:e}, and {value:e} rounds to {wanted:e}"
                ));
            }
        }
        Ok(())
    }
}

/// The report, or an error if it has findings.
pub(crate) fn launched(report: Result<Report, Error>, shader: &Shader) -> Result<Report, Failure> {
    let report = report.map_err(|error| match error {
        Error::Invalid(text) => Failure::Invalid(text),
        other => Failure::Refused(other.to_string()),
    })?;
    match report.findings.first() {
        None => Ok(report),
        Some(Finding { kind, .. }) => Err(Failure::Found(*kind, report.render(shader, false))),
    }
}

/// The `len` of `bytes` that are bound from `start` on. Missing bytes at the end are NaN in every
/// type.
fn cut(bytes: &[u8], start: u64, len: u64) -> Vec<u8> {
    let bytes = &bytes[bytes.len().min(start as usize)..];
    let mut bytes = bytes[..bytes.len().min(len as usize)].to_vec();
    bytes.resize(len as usize, 0xff);
    bytes
}
