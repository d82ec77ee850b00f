//! The product to compute: operands, grouping and epilogue, as plain numbers. No buffer, no device.
//!
//! C\[M,N\] = epilogue(alpha · A\[M,K\] · B\[K,N\] + beta · C), once per batch entry or group.

pub use crate::activation::Activation;
pub use crate::dtype::DType;
pub use crate::grouping::{Dimension, Grouping, LISTED, Segment, Traits};
pub use crate::list_sizes::ListSizes;
pub use crate::precision::Precision;
use crate::quant::{Plane, QuantFormat, Stored};
use crate::role::Role;
use std::ops::Range;

/// How the elements of an operand are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One element after the other.
    Dense(DType),
    /// A few bits each, in blocks along K.
    Quantized(QuantFormat),
}

impl Format {
    /// The type of a dense operand's elements.
    pub const fn element(self) -> Option<DType> {
        match self {
            Format::Dense(dtype) => Some(dtype),
            Format::Quantized(_) => None,
        }
    }

    /// Elements that are stored together: 1, or the block of a quantized format.
    pub const fn block(self) -> u64 {
        match self {
            Format::Dense(_) => 1,
            Format::Quantized(format) => format.block(),
        }
    }

    /// Whether a loader of this family of quantized formats reads it.
    pub fn is_of(self, family: &str) -> bool {
        matches!(self, Format::Quantized(format) if format.def().family == family)
    }

    /// A constant of a quantized format's loaders.
    pub fn constant(self, name: &str) -> Option<u32> {
        let Format::Quantized(format) = self else { return None };
        format.def().constants.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// The buffers of an operand, each with the bytes of a block: one if it is dense.
    pub const fn planes(self) -> &'static [Plane] {
        const fn elements(dtype: DType) -> Plane {
            Plane { name: "", of: Stored::Numbers(dtype), bytes: dtype.bytes() }
        }
        match self {
            Format::Dense(DType::F32) => const { &[elements(DType::F32)] },
            Format::Dense(DType::F16) => const { &[elements(DType::F16)] },
            Format::Dense(DType::BF16) => const { &[elements(DType::BF16)] },
            Format::Dense(DType::I32) => const { &[elements(DType::I32)] },
            Format::Dense(DType::U32) => const { &[elements(DType::U32)] },
            Format::Quantized(format) => format.planes(),
        }
    }

    /// Bytes of an element, over all planes.
    pub fn element_bytes(self) -> f64 {
        let block: u64 = self.planes().iter().map(|plane| plane.bytes).sum();
        block as f64 / self.block() as f64
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Format::Dense(dtype) => dtype.fmt(f),
            Format::Quantized(format) => format.fmt(f),
        }
    }
}

/// Where the elements of one matrix lie in the storage that holds them. All numbers count elements,
/// not bytes.
///
/// Element (row, col) of batch entry b is at `offset + b·batch_stride + row·ld + col`, or, when
/// `transposed`, at `offset + b·batch_stride + col·ld + row`. A nested batch
/// ([`Grouping::Nested`]) has more strides than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Storage format.
    pub format: Format,
    /// Whether the storage holds the transpose of the operand.
    pub transposed: bool,
    /// Index of the first element.
    pub offset: u64,
    /// Row stride of the storage (lda, ldb, ldc).
    pub ld: u64,
    /// Distance between batch entries (between groups, for the B of a grouped product); 0
    /// broadcasts one entry.
    pub batch_stride: u64,
    /// Distances along the outer dimensions of a nested batch, outermost first; 0 in any other
    /// batch.
    pub outer_strides: [u64; 3],
    /// How many elements the storage holds, from its start. The planner refuses a problem that
    /// reaches beyond.
    pub len: u64,
}

impl Operand {
    /// A packed row-major operand of `batch` entries of `rows`×`cols`, starting at element 0, in
    /// storage that just holds it. Sizes beyond 64 bits saturate, and the planner refuses them.
    pub const fn packed(format: Format, batch: u64, rows: u64, cols: u64) -> Self {
        Operand {
            format,
            transposed: false,
            offset: 0,
            ld: cols,
            batch_stride: rows.saturating_mul(cols),
            outer_strides: [0; 3],
            len: batch.saturating_mul(rows).saturating_mul(cols),
        }
    }

    /// This storage, read as its transpose.
    pub const fn t(mut self) -> Self {
        self.transposed = !self.transposed;
        self
    }

    /// The strides of its entries along the dimensions of a nested batch, outermost first.
    pub const fn entry_strides(&self) -> [u64; 4] {
        let [first, second, third] = self.outer_strides;
        [first, second, third, self.batch_stride]
    }

    /// This operand with other strides of its entries, outermost first.
    pub const fn with_entry_strides(mut self, [first, second, third, last]: [u64; 4]) -> Self {
        self.outer_strides = [first, second, third];
        self.batch_stride = last;
        self
    }

    /// Whether one entry serves all.
    pub fn is_shared(&self) -> bool {
        self.entry_strides() == [0; 4]
    }
}

/// Axis of C along which a bias runs. The enum is closed: a matrix has two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// One value per row.
    M,
    /// One value per column, as in a linear layer.
    N,
}

/// A vector added to every row (along N) or to every column (along M) of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bias {
    /// The axis along which it runs.
    pub axis: Axis,
    /// Where it lies: element i of batch entry (or group) b is at `offset + b·batch_stride + i·ld`.
    /// Must be dense.
    pub operand: Operand,
}

/// The changes to the accumulator x, in f32, before it is stored, in this order:
/// y = activation(alpha·x + beta·C + bias) + residual, then the cast to C's type. If it is gated,
/// y = (alpha·x + beta·C + bias) · activation(gate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epilogue {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the old value of C. With 0, C is never read.
    pub beta: f32,
    /// Vector added before the activation.
    pub bias: Option<Bias>,
    /// Function applied after the bias, or, if it is gated, to the gate.
    pub activation: Activation,
    /// Matrix of C's shape added last, or the gate. Must be dense.
    pub residual: Option<Operand>,
    /// Whether there is a gate: the activation is applied to the gate, and the rest is multiplied
    /// by it. The gate is the residual. Without a residual, each even column of the product, after
    /// its bias, is the gate of the next one, and C has half as many columns.
    pub gated: bool,
}

impl Epilogue {
    /// Columns of the product that make one of C: two if one of them is the gate.
    pub fn columns(&self) -> u64 {
        if self.gated && self.residual.is_none() { 2 } else { 1 }
    }
}

impl Default for Epilogue {
    /// The plain product: alpha 1, beta 0, nothing added.
    fn default() -> Self {
        Epilogue {
            alpha: 1.0,
            beta: 0.0,
            bias: None,
            activation: Activation::None,
            residual: None,
            gated: false,
        }
    }
}

/// The rows of A by index: row i of A is row `indices[i]` of a matrix, which [`Problem::a`] places.
/// There are M indices, u32, on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gathered {
    /// Rows of that matrix. An index beyond them stands for a row of zeros.
    pub rows: u64,
    /// The place of the first index in its storage.
    pub offset: u64,
    /// Words from one index to the next.
    pub step: u64,
    /// Elements of that storage, from its start.
    pub len: u64,
}

/// A copy of A or B that [`prepare`](crate::plan::prepare) packs for mainloops of matrix units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copied {
    /// Entries of the operand; 1 for one that is broadcast.
    pub entries: u64,
    /// Its extent along the axis that is not K.
    pub extent: u64,
    /// Its extent along K.
    pub k: u64,
}

/// One product, complete: everything that [`plan`](crate::plan()) needs to know about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Rows of A and C; for a grouped product, of all groups together.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A, rows of B: the summed dimension.
    pub k: u64,
    /// Number of independent products; 1 for a grouped product.
    pub batch: u64,
    /// Left operand, \[M,K\], or the matrix that has its rows.
    pub a: Operand,
    /// Which rows of that matrix are A's, if they are not all in their order. All entries of a
    /// batch then share the matrix.
    pub gathered: Option<Gathered>,
    /// Right operand, \[K,N\].
    pub b: Operand,
    /// Output, \[M,N\], or \[M,N/2\] if its [columns](Epilogue::columns) are pairs; also the C
    /// that beta multiplies. Must be dense and not transposed.
    pub c: Operand,
    /// How rows are split among the entries of B.
    pub grouping: Grouping,
    /// The changes to the product before it is stored.
    pub epilogue: Epilogue,
    /// How exact it must be.
    pub precision: Precision,
    /// Copies of A and B that were packed beforehand, if there are any.
    pub copies: [Option<Copied>; 2],
    /// Whether an operand lies in the buffer of C, beside it ([`Pass::beside_c`]).
    ///
    /// [`Pass::beside_c`]: crate::plan::Pass::beside_c
    pub beside_c: bool,
}

impl Problem {
    /// A plain packed product of one type: C\[M,N\] = A\[M,K\]·B\[K,N\].
    pub fn dense(dtype: DType, m: u64, n: u64, k: u64) -> Self {
        let format = Format::Dense(dtype);
        Problem {
            m,
            n,
            k,
            batch: 1,
            a: Operand::packed(format, 1, m, k),
            gathered: None,
            b: Operand::packed(format, 1, k, n),
            c: Operand::packed(format, 1, m, n),
            grouping: Grouping::Batched,
            epilogue: Epilogue::default(),
            precision: Precision::F32,
            copies: [None; 2],
            beside_c: false,
        }
    }

    /// The type with the fewest digits in which partial sums may be kept: f16 if that is permitted,
    /// A is f16 and B is f16 or quantized; otherwise f32.
    pub fn accumulation(&self) -> DType {
        let half = Format::Dense(DType::F16);
        let other = self.b.format == half || matches!(self.b.format, Format::Quantized(_));
        if self.precision == Precision::F16Sums && self.a.format == half && other {
            DType::F16
        } else {
            DType::F32
        }
    }

    /// Whether a kernel may divide the rows of A, or the columns of B, by powers of two, to bring
    /// them into f16's range. The operand has this format: it must be bf16, and matrix units of f16
    /// must take the other.
    pub fn may_scale(&self, format: Format) -> bool {
        let fits = |format| {
            matches!(format, Format::Dense(DType::F16 | DType::BF16) | Format::Quantized(_))
        };
        format == Format::Dense(DType::BF16) && fits(self.a.format) && fits(self.b.format)
    }

    /// Signed bytes in which a kernel may take an element of A beside quantized weights. 32
    /// elements at a time are whole numbers under one power of two. Three bytes round to 2⁻²³ of
    /// the largest; by permission there are fewer.
    pub fn activation_bytes(&self) -> Option<u32> {
        let Format::Quantized(_) = self.b.format else { return None };
        Some(match self.precision {
            Precision::Int8Activations => 1,
            Precision::Int16Activations => 2,
            _ => 3,
        })
    }

    /// Share of the largest of its 32 by which an element of A in these bytes may be off.
    pub fn activation_error(&self) -> f64 {
        let largest = |bytes| (0..bytes).map(|byte| 127.0 * 256f64.powi(byte as i32)).sum::<f64>();
        self.activation_bytes().map_or(0.0, |bytes| 1.0 / largest(bytes))
    }

    /// Whether a kernel may split both operands in two f16 terms: they are f32, that is permitted,
    /// and all of K is summed.
    pub fn may_split(&self) -> bool {
        let single = Format::Dense(DType::F32);
        let permitted = matches!(self.precision, Precision::SplitF32 | Precision::SplitF32Fast);
        let whole = self.grouping.traits().whole_k;
        permitted && whole && self.a.format == single && self.b.format == single
    }

    /// Floating-point operations of the product: 2·M·N·K per batch entry. In a grouped product each
    /// row, or each element of K, meets one group.
    pub fn flops(&self) -> f64 {
        let k = self.grouping.expected_k(self.k) as f64;
        2.0 * self.m as f64 * self.n as f64 * k * self.batch as f64
    }

    /// Some rows and columns of every entry, as a problem on the same storage. A stride that plays
    /// no part in the whole plays none in the piece.
    pub fn piece(&self, rows: Range<u64>, cols: Range<u64>) -> Problem {
        self.range(Dimension::M, rows).range(Dimension::N, cols)
    }

    /// A range of one dimension, as a problem on the same storage. A range of K gives only a share
    /// of each sum. Entries of a nested batch have no ranges; for other forms see
    /// `Traits::pieces`.
    pub fn range(&self, dimension: Dimension, range: Range<u64>) -> Problem {
        let mut problem = *self;
        for (role, operand, strides) in problem.operands() {
            let strides = strides.iter().filter(|(along, _)| *along == dimension);
            let start = self.part_for(role, dimension, range.start);
            operand.offset += strides.map(|(_, stride)| start * stride).sum::<u64>();
        }
        let extent = range.end - range.start;
        if let (Some(gathered), Dimension::M) = (&mut problem.gathered, dimension) {
            gathered.offset += range.start * gathered.step;
        }
        // A copy serves a range that begins as the whole does, with all of K and, if there are
        // several entries, all of each.
        for (copy, own) in problem.copies.iter_mut().zip([Dimension::M, Dimension::N]) {
            *copy = copy.filter(|copy| match dimension {
                Dimension::K => range == (0..copy.k),
                Dimension::Entries => range.start == 0,
                _ if dimension == own => {
                    range.start == 0 && (copy.entries == 1 || extent == copy.extent)
                }
                _ => true,
            });
        }
        match dimension {
            Dimension::Entries => problem.grouping.cut(&mut problem.batch, extent),
            Dimension::M => problem.m = extent,
            Dimension::N => problem.n = extent,
            Dimension::K => problem.k = extent,
        }
        problem
    }

    /// One entry of an operand, as an operand by itself.
    pub fn entry(&self, operand: &Operand, entry: u64) -> Operand {
        let (mut rest, mut offset) = (entry, operand.offset);
        let levels = self.grouping.levels(self.entries(), operand.entry_strides());
        for (size, stride) in levels.into_iter().rev() {
            offset += rest % size.max(1) * stride;
            rest /= size.max(1);
        }
        Operand { offset, ..operand.with_entry_strides([0; 4]) }
    }

    /// Words of the storage of A's row indices, up to the last index, if there are any.
    pub fn indices(&self) -> Option<u64> {
        let before = |gathered: Gathered| self.m.saturating_sub(1).saturating_mul(gathered.step);
        self.gathered.map(|gathered| {
            before(gathered).saturating_add(gathered.offset).saturating_add(u64::from(self.m > 0))
        })
    }

    /// Rows of the matrix that A lies in.
    pub fn stored_rows(&self) -> u64 {
        self.gathered.map_or(self.m, |gathered| gathered.rows)
    }

    /// The size of a dimension.
    pub fn extent(&self, dimension: Dimension) -> u64 {
        match dimension {
            Dimension::Entries => self.entries(),
            Dimension::M => self.m,
            Dimension::N => self.n,
            Dimension::K => self.k,
        }
    }

    /// The part of a dimension's extent that an operand has: half of the columns for a C of which
    /// two columns make one.
    pub(crate) fn part_for(&self, role: Role, dimension: Dimension, extent: u64) -> u64 {
        match (role, dimension) {
            (Role::C, Dimension::N) => extent / self.epilogue.columns(),
            _ => extent,
        }
    }

    /// The operands there are, each with its strides: along its entries, rows and columns.
    pub(crate) fn operands(
        &mut self,
    ) -> impl Iterator<Item = (Role, &mut Operand, [(Dimension, u64); 3])> {
        let shares_rows = self.grouping.traits().shares_rows;
        let gathered = self.gathered.is_some();
        let matrix = move |role, operand: &Operand, rows, cols| {
            let (row, col) = if operand.transposed { (1, operand.ld) } else { (operand.ld, 1) };
            // Rows by index lie anywhere in their matrix.
            let row = if role == Role::A && gathered { 0 } else { row };
            // Groups that share the rows of one entry have entries of B and the bias only.
            let entry = if shares_rows && role != Role::B { 0 } else { operand.batch_stride };
            [(Dimension::Entries, entry), (rows, row), (cols, col)]
        };
        let Problem { a, b, c, epilogue: Epilogue { bias, residual, .. }, .. } = self;
        let matrices = [
            (Role::A, Some(a), [Dimension::M, Dimension::K]),
            (Role::B, Some(b), [Dimension::K, Dimension::N]),
            (Role::C, Some(c), [Dimension::M, Dimension::N]),
            (Role::Residual, residual.as_mut(), [Dimension::M, Dimension::N]),
        ];
        let matrices = matrices.into_iter().filter_map(move |(role, operand, [rows, cols])| {
            let operand = operand?;
            let strides = matrix(role, operand, rows, cols);
            Some((role, operand, strides))
        });
        let bias = bias.as_mut().map(|Bias { axis, operand }| {
            let (along, across) = match axis {
                Axis::M => (Dimension::M, Dimension::N),
                Axis::N => (Dimension::N, Dimension::M),
            };
            let strides =
                [(Dimension::Entries, operand.batch_stride), (along, operand.ld), (across, 0)];
            (Role::Bias, operand, strides)
        });
        matrices.chain(bias)
    }

    /// Entries of B: the batch, or the number of groups.
    pub fn entries(&self) -> u64 {
        self.grouping.entries(self.batch)
    }

    /// Rows that are expected to meet an entry of B: M, or those of a group.
    pub fn rows_of_entry(&self) -> u64 {
        self.grouping.expected_rows(self.m).round() as u64
    }

    /// Whether groups are expected to have two rows of tiles at most, so that many tiles are not
    /// full.
    pub fn has_partial_tiles(&self, bm: u32) -> bool {
        self.grouping.traits().few_rows && self.rows_of_entry() <= 2 * u64::from(bm)
    }

    /// `NN`, `NT`, `TN` or `TT`: the transposes of A and B.
    pub fn layout(&self) -> &'static str {
        match (self.a.transposed, self.b.transposed) {
            (false, false) => "NN",
            (false, true) => "NT",
            (true, false) => "TN",
            (true, true) => "TT",
        }
    }
}
