//! Launches: entry point, grid, buffers, overrides.

use crate::{Error, Options, Report, Shader, machine};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A regular set of elements in a buffer: from `offset` on, `counts[i]` elements along each axis,
/// `strides[i]` bytes apart. Without axes it is one element; with a count of 0 it is empty.
///
/// A matrix of `m` rows and `n` columns of f32 whose rows lie `ld` elements apart is
/// `Region { offset: 0, counts: vec![m, n], strides: vec![4 * ld, 4], element_bytes: 4 }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Byte offset of the first element.
    pub offset: u64,
    /// Elements along each axis.
    pub counts: Vec<u64>,
    /// Bytes from one element to the next along each axis.
    pub strides: Vec<u64>,
    /// Bytes of one element, at least 1.
    pub element_bytes: u64,
}

/// A bound buffer: its bytes, and how they may be accessed.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) poisoned: bool,
    pub(crate) must_write: bool,
    pub(crate) regions: Vec<Region>,
    /// The first range that ends before it starts.
    pub(crate) reversed: Option<Range<u64>>,
}

impl Buffer {
    /// A buffer with these contents.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Buffer { bytes: bytes.into(), ..Buffer::default() }
    }

    /// An output of `len` bytes: nothing may be read before it is written, and all must be written.
    /// It is `Buffer::new(..).poisoned().must_write()` with bytes of 0xFF, which are NaN as floats.
    pub fn output(len: usize) -> Self {
        Buffer::new(vec![0xFF; len]).poisoned().must_write()
    }

    /// Makes reading a byte that the shader has not written a finding.
    pub fn poisoned(mut self) -> Self {
        self.poisoned = true;
        self
    }

    /// Makes a byte of the logical range that is never written a finding.
    pub fn must_write(mut self) -> Self {
        self.must_write = true;
        self
    }

    /// Declares bytes to be part of the operand (its logical range); several calls add up. Once any
    /// part is declared, accesses elsewhere are findings, even if they lie within the buffer. A
    /// range that ends before it starts, or behind the buffer, is an error of [`Launch::run`].
    pub fn range(mut self, bytes: Range<u64>) -> Self {
        if bytes.end < bytes.start {
            self.reversed.get_or_insert(bytes);
            return self;
        }
        let len = bytes.end - bytes.start;
        // The region is one element as long as the range, or none if the range is empty.
        let counts = if len == 0 { vec![0] } else { vec![1] };
        self.region(Region {
            offset: bytes.start,
            counts,
            strides: vec![0],
            element_bytes: len.max(1),
        })
    }

    /// Declares a [`Region`] to be part of the operand, as [`range`](Self::range) does. A region is
    /// an error of [`Launch::run`] if it ends behind the buffer, if its elements have 0 bytes, if
    /// it has not as many counts as strides, or if it names more than 2³² memory locations,
    /// repetitions counted.
    pub fn region(mut self, region: Region) -> Self {
        self.regions.push(region);
        self
    }
}

/// One run of a compute entry point.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    pub(crate) shader: &'a Shader,
    pub(crate) entry: Option<String>,
    pub(crate) grid: [u32; 3],
    pub(crate) buffers: BTreeMap<(u32, u32), Buffer>,
    pub(crate) overrides: HashMap<String, f64>,
    pub(crate) immediates: Vec<u8>,
    pub(crate) options: Options,
}

impl<'a> Launch<'a> {
    /// One workgroup of the shader's only compute entry point, with nothing bound.
    pub fn new(shader: &'a Shader) -> Self {
        Launch {
            shader,
            entry: None,
            grid: [1, 1, 1],
            buffers: BTreeMap::new(),
            overrides: HashMap::new(),
            immediates: Vec::new(),
            options: Options::default(),
        }
    }

    /// Names the entry point; needed only if there are several.
    pub fn entry(mut self, name: &str) -> Self {
        self.entry = Some(name.to_owned());
        self
    }

    /// Sets the numbers of workgroups along x, y and z. If one is 0 nothing runs, as in WebGPU.
    pub fn grid(mut self, workgroups: [u32; 3]) -> Self {
        self.grid = workgroups;
        self
    }

    /// Binds a buffer to `@group(group) @binding(binding)`.
    pub fn bind(mut self, group: u32, binding: u32, buffer: Buffer) -> Self {
        self.buffers.insert((group, binding), buffer);
        self
    }

    /// Gives an `override` its value, by name or by the number of its `@id`.
    pub fn constant(mut self, name: &str, value: f64) -> Self {
        self.overrides.insert(name.to_owned(), value);
        self
    }

    /// Sets the bytes of `var<immediate>`.
    pub fn immediates(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.immediates = bytes.into();
        self
    }

    /// Sets how to run the shader, and what to look for.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Runs the shader.
    ///
    /// # Errors
    /// `Entry`, `Override`, `Binding` and `Limit` for what does not fit the shader, `Unsupported`
    /// for what this crate does not execute.
    pub fn run(&self) -> Result<Report, Error> {
        machine::run(self, &*self.shader.compiled(self)?)
    }
}
