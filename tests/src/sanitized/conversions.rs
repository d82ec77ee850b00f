//! Runs the passes of taking and quantizing in the sanitizer.

use super::ranges::Elements;
use super::{Failure, Shaders, cut};
use crate::Rng;
use crate::conversions::{Memory, Quantizing, Taking, same_numbers};
use crate::generators::poison;
use std::collections::BTreeMap;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{self, Binding, Pass, Table};
use tilewise_core::{Caps, DType, Error, Format, convert};
use tilewise_sanitizer::{Buffer, Launch, Options, Shader};
use tilewise_shaders::CONVERSIONS;

/// A role's memory before the first pass.
struct Held {
    bytes: Vec<u8>,
    /// The elements that may be touched, and the number of their plane; without these, all bytes.
    elements: Option<(Table, usize)>,
}

/// Passes, with the contents of their roles and the results that they must have.
pub struct Conversion {
    /// The case, in words.
    pub name: String,
    /// The passes.
    pub passes: Vec<Pass>,
    held: BTreeMap<Role, Held>,
    expected: BTreeMap<Role, Vec<u8>>,
    /// The type of decoded numbers, if there are any: then −0 equals 0.
    decoded: Option<DType>,
}

/// The contents of the memory of each role.
#[derive(Clone, PartialEq)]
pub(crate) struct Written(BTreeMap<Role, Vec<u8>>);

impl Written {
    /// The bytes that are bound.
    pub(crate) fn bound(&self, binding: &Binding) -> Vec<u8> {
        cut(&self.0[&binding.role], binding.start, binding.bytes)
    }

    /// Stores what a pass has written.
    pub(crate) fn take(&mut self, binding: &Binding, bytes: &[u8]) {
        let own = self.0.entry(binding.role).or_default();
        let start = binding.start as usize;
        let end = own.len().min(start + bytes.len());
        own[start..end].copy_from_slice(&bytes[..end - start]);
    }
}

/// A run without failures.
pub struct Ran {
    written: Written,
    /// The cost of the run, in operations of the sanitizer.
    pub operations: u64,
}

impl Conversion {
    /// Plans a case of taking for a device with these caps.
    ///
    /// # Errors
    /// The planner's errors.
    pub fn taking(case: &Taking, caps: &Caps) -> Result<Self, Error> {
        let stored = case.table.store(&mut Rng::new(7));
        let take = case.problem(stored.table);
        let output = Table {
            operand: tilewise_core::Operand {
                offset: take.offset,
                len: take.len,
                ..packed(case).operand
            },
            ..packed(case)
        };
        let mut held = planes(&stored, Role::B);
        for (role, index) in
            [(Role::RowIndex, &case.indices[0]), (Role::ColumnIndex, &case.indices[1])]
        {
            if let Some(index) = index {
                let bytes = bytemuck::cast_slice(&Taking::words(index)).to_vec();
                held.insert(role, Held { bytes, elements: None });
            }
        }
        let before = poison(case.dtype, take.len as usize);
        let mut after = before.clone();
        let size = case.dtype.bytes() as usize;
        // A matrix that may have a factor has one. Products with this factor are exact.
        let has_factor = matches!(
            case.table.format,
            Format::Quantized(format) if format.def().factor_of.is_some()
        );
        let factor = if has_factor { 2f32 } else { 1.0 };
        let scaled = |value: &f32| if has_factor { value * factor } else { *value };
        let values: Vec<f32> = stored.values.iter().map(scaled).collect();
        let values = case.expected(&values, case.beyond());
        after[case.lead * size..].copy_from_slice(&convert::encode(case.dtype, &values));
        held.insert(Role::C, Held { bytes: before, elements: Some((output, 0)) });
        let mut passes = plan::take(&take, caps, &CONVERSIONS)?;
        passes.iter_mut().for_each(|pass| pass.params.alpha = factor.to_bits());
        let decoded = matches!(case.table.format, Format::Quantized(_)).then_some(case.dtype);
        Ok(Conversion {
            name: format!("{case:?}"),
            passes,
            held,
            expected: [(Role::C, after)].into(),
            decoded,
        })
    }

    /// Plans a case of quantizing for a device with these caps.
    ///
    /// # Errors
    /// The planner's errors.
    pub fn quantizing(case: &Quantizing, caps: &Caps) -> Result<Self, Error> {
        let stored = case.weights.store(&mut Rng::new(8));
        let passes = plan::quantize(&case.problem(stored.table), caps, &CONVERSIONS)?;
        let mut held = planes(&stored, Role::A);
        let mut expected = BTreeMap::new();
        let [entries, rows, columns] = case.weights.shape;
        let answer = case.expected(&stored.values);
        let pitch = case.format.pitch(columns as u64) as usize;
        for (i, (role, plane)) in Role::B.planes().zip(case.format.planes()).enumerate() {
            let bytes = |elements| plane.bytes_of(case.format.block(), elements as u64) as usize;
            let size = bytes(entries * rows * pitch).next_multiple_of(4);
            held.insert(role, Held { bytes: vec![0xff; size], elements: None });
            if let Ok(planes) = &answer {
                let gap = vec![0; bytes(pitch) - bytes(columns)];
                let rows = planes[i].chunks(bytes(columns));
                let mut bytes: Vec<u8> = rows.flat_map(|row| [row, &gap].concat()).collect();
                bytes.resize(size, 0);
                expected.insert(role, bytes);
            }
        }
        held.insert(Role::Status, Held { bytes: vec![0; 4], elements: None });
        let refused = |row: &usize| {
            let values = &stored.values[row * columns..][..columns];
            tilewise_core::quant::quantize(values, 1, columns, case.format).is_err()
        };
        let last = (0..entries * rows).rev().find(refused).map_or(0, |row| row as u32 + 1);
        expected.insert(Role::Status, last.to_le_bytes().to_vec());
        Ok(Conversion { name: format!("{case:?}"), passes, held, expected, decoded: None })
    }

    /// Runs the passes in order.
    ///
    /// # Errors
    /// The first of these: the text is not valid; a finding; an output of other bits.
    pub fn run(&self, shaders: &Shaders<'_>, options: &Options) -> Result<Ran, Failure> {
        let mut written = self.unwritten();
        let mut operations = 0;
        for pass in &self.passes {
            operations += self.pass(pass, shaders, options, &mut written)?;
        }
        self.judge(&written)?;
        Ok(Ran { written, operations })
    }

    /// The memory before the first pass.
    pub(crate) fn unwritten(&self) -> Written {
        Written(self.held.iter().map(|(role, held)| (*role, held.bytes.clone())).collect())
    }

    /// Checks that the outputs are right.
    ///
    /// # Errors
    /// `Wrong`.
    pub(crate) fn judge(&self, Written(written): &Written) -> Result<(), Failure> {
        for (role, expected) in &self.expected {
            let got = &written[role];
            if self.decoded.is_some_and(|dtype| same_numbers(dtype, got, expected)) {
                continue;
            }
            if let Some(at) = expected.iter().zip(got).position(|(expected, got)| expected != got) {
                let (got, expected) = (got[at], expected[at]);
                return Err(Failure::Wrong(format!(
                    "byte {at} of {} is {got:#x}, wanted {expected:#x}",
                    role.name()
                )));
            }
        }
        Ok(())
    }

    /// Like [`run`](Self::run), with a file replaced. Returns whether the outputs have the bits of
    /// the run before. If every shader does what the library's does, nothing runs.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn run_changed(
        &self,
        before: &Ran,
        shaders: &Shaders<'_>,
        options: &Options,
    ) -> Result<bool, Failure> {
        if !self.passes.iter().any(|pass| shaders.changed(pass, options)) {
            return Ok(true);
        }
        Ok(self.run(shaders, options)?.written == before.written)
    }

    fn pass(
        &self,
        pass: &Pass,
        shaders: &Shaders<'_>,
        options: &Options,
        written: &mut Written,
    ) -> Result<u64, Failure> {
        let shader = shaders.get(pass)?;
        let params = Buffer::new(bytemuck::bytes_of(&pass.params));
        let mut launch = Launch::new(&shader).grid([pass.grid[0], pass.grid[1], 1]);
        launch = launch.bind(0, Role::Params.binding(), params).options(options.clone());
        for binding in &pass.bindings {
            launch = launch.bind(0, binding.role.binding(), self.buffer(binding, written));
        }
        let report = super::launched(launch.run(), &shader)?;
        for binding in pass.bindings.iter().filter(|binding| binding.writable) {
            // A shader with a mistake may leave a binding out.
            if let Some(bytes) = report.buffers.get(&(0, binding.role.binding())) {
                written.take(binding, bytes);
            }
        }
        Ok(report.counters.operations)
    }

    fn buffer(&self, binding: &Binding, written: &Written) -> Buffer {
        let bytes = Buffer::new(written.bound(binding));
        let whole = self.passes.len() == 1;
        let Some((table, plane)) = &self.held[&binding.role].elements else {
            let bytes = match binding.role {
                // Indices have words between them.
                Role::RowIndex | Role::ColumnIndex => {
                    let count = binding.bytes / 8;
                    return (0..count).fold(bytes, |bytes, i| bytes.range(8 * i + 4..8 * i + 8));
                }
                _ => bytes.range(0..binding.bytes),
            };
            let fresh = whole && binding.writable && binding.role != Role::Status;
            return if fresh { bytes.must_write().poisoned() } else { bytes };
        };
        let tilewise_core::Operand { offset, batch_stride, .. } = table.operand;
        let firsts = (0..table.entries).map(|entry| offset + entry * batch_stride);
        let elements =
            Elements::new(table.operand, *plane, firsts.collect(), [table.rows, table.columns]);
        let bound = binding.start..binding.start + binding.bytes;
        let buffer = elements.declare(bytes, binding.element_bytes == 4, &bound);
        match whole && binding.writable {
            true if elements.shares_words() => buffer.must_write(),
            true => buffer.must_write().poisoned(),
            false => buffer,
        }
    }
}

/// The output of a case, without anything around it.
fn packed(case: &Taking) -> Table {
    let [entries, rows, columns] = case.shape().map(|size| size as u64);
    Table::packed(Format::Dense(case.dtype), entries, rows, columns)
}

/// The planes of a source.
fn planes(stored: &Memory, first: Role) -> BTreeMap<Role, Held> {
    let roles = first.planes().zip(&stored.planes).enumerate();
    roles
        .map(|(i, (role, bytes))| {
            (role, Held { bytes: bytes.clone(), elements: Some((stored.table, i)) })
        })
        .collect()
}

/// Runs the arithmetic on bits with these numbers in the sanitizer. `functions` is the text of the
/// file of the arithmetic.
///
/// # Errors
/// The text is not valid; a finding; a result of other bits.
pub fn arithmetic(functions: &str, pairs: &[[u32; 2]], options: &Options) -> Result<(), Failure> {
    let around = include_str!("arithmetic.wgsl").replace("// BODY", crate::arithmetic::BODY);
    let text = format!("{functions}\n{around}");
    let shader =
        Shader::parse("arithmetic", &text).map_err(|error| Failure::Invalid(error.to_string()))?;
    let bytes = 4 * crate::arithmetic::RESULTS * pairs.len();
    let launch = Launch::new(&shader)
        .grid([(pairs.len() as u32).div_ceil(64), 1, 1])
        .options(options.clone());
    let input = Buffer::new(bytemuck::cast_slice(pairs));
    let report =
        super::launched(launch.bind(0, 0, input).bind(0, 1, Buffer::output(bytes)).run(), &shader)?;
    let results: Vec<u32> = report.buffers[&(0, 1)]
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect();
    match crate::arithmetic::complaints(pairs, &results).first() {
        None => Ok(()),
        Some(complaint) => Err(Failure::Wrong(complaint.clone())),
    }
}
