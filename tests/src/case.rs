//! The description of a product in a test.

use crate::runner::problem;
use crate::{Count, Data, Entries, Place};
use tilewise::planner::Caps;
use tilewise::{Activation, Axis, Context, DType, Precision, ProductShape, QuantFormat, Tensor};
use tilewise_core::kernel::{Access, KernelDef, Unit, Variant};
use tilewise_core::plan::Forced;
use tilewise_core::problem::{LISTED, ListSizes};
use tilewise_core::{Format, Operand};
use tilewise_shaders::LIBRARY;

/// Group offsets, and whether the library sees them on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Cumulative ends.
    pub ends: Vec<u32>,
    /// Whether they are only in a buffer and unchecked, as a shader would leave them.
    pub on_device: bool,
}

impl Groups {
    /// The numbers of each product of a list. The host puts tables behind them, which are left out.
    pub(crate) fn products(&self) -> impl Iterator<Item = &[u32]> {
        let tables = if self.on_device { 0 } else { ListSizes::TABLES };
        let count = self.ends.len() / (LISTED + tables) as usize;
        self.ends.chunks_exact(LISTED as usize).take(count)
    }

    /// Uploads the numbers behind three others, at a place where some devices cannot begin a
    /// binding.
    pub(crate) fn upload(&self, context: &Context) -> tilewise::Result<Tensor> {
        let all = [&[u32::MAX; 3][..], &self.ends].concat();
        Tensor::upload(context, &all, &[all.len()])?.narrow(0, 3, self.ends.len())
    }

    /// The products of a list.
    pub(crate) fn shapes(&self) -> Vec<ProductShape> {
        let shape = |numbers: &[u32]| {
            let &[m, n, k, a, lda, b, ldb, c, ldc] = numbers else { unreachable!("nine numbers") };
            ProductShape { m, n, k, a, lda, b, ldb, c, ldc }
        };
        self.products().map(shape).collect()
    }
}

/// The row indices of A.
#[derive(Clone, Debug, PartialEq)]
pub struct Indices {
    /// For each row of A, its row in the matrix.
    pub all: Vec<u32>,
    /// Rows of that matrix.
    pub rows: usize,
    /// Words from one index to the next.
    pub step: usize,
}

impl Indices {
    /// Words before the first index: some devices cannot begin a binding there.
    pub const LEAD: usize = 3;

    /// The storage of the indices. All other words are beyond every matrix.
    pub fn words(&self) -> Vec<u32> {
        let mut words = vec![u32::MAX; Self::LEAD + self.all.len() * self.step];
        let places = words[Self::LEAD..].iter_mut().step_by(self.step);
        places.zip(&self.all).for_each(|(word, index)| *word = *index);
        words
    }
}

/// How the numbers of groups make groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Segments of the rows of A, each with an entry of B, with cumulative ends.
    Rows,
    /// Segments of the columns of B, each with an entry of A. A case describes the transposed
    /// product, with the names of `Rows`.
    Columns,
    /// Rows of A, each with one of this many entries of B, which the numbers name.
    Indexed(usize),
    /// The first rows of each entry of a batch; the numbers count them.
    Masked,
    /// Ranges of K, each with an entry of C, with cumulative ends.
    AlongK,
    /// Products of any sizes up to the size of the case. Each has nine numbers. A, B and C have
    /// these numbers of elements.
    Listed([usize; 3]),
}

/// One product: sizes, places, contents, epilogue, and the kernel that must run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The kernel to force; the planner's choice when absent.
    pub kernel: Option<String>,
    /// M, N, K.
    pub size: [usize; 3],
    /// Batch entries; matrices when absent.
    pub batch: Option<usize>,
    /// The dimensions of the batch, if it has several.
    pub nest: Option<Count>,
    /// Place of A \[M,K\], or of the matrix that holds A's rows.
    pub a: Place,
    /// The rows of that matrix that are A's, if they are found by index.
    pub gathered: Option<Indices>,
    /// Place of B \[K,N\]. If B is quantized, only `entries` counts, and a `pad` puts B inside a
    /// matrix that is larger by a row and a block on every side.
    pub b: Place,
    /// Place of C \[M,N\].
    pub c: Place,
    /// Format of B, when it is quantized: weights \[N,K\].
    pub quantized: Option<QuantFormat>,
    /// Whether quantized weights are \[K,N\], with blocks along N.
    pub across: bool,
    /// Group offsets, or counts of rows.
    pub groups: Option<Groups>,
    /// How the numbers of `groups` make groups.
    pub form: Form,
    /// The number of rows that a masked batch expects of each entry, true or not.
    pub expected_rows: Option<usize>,
    /// Whether a list is said to be aligned, true or not.
    pub aligned: bool,
    /// How many entries of B lie in each shard, if there are several.
    pub shards: Vec<usize>,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the old C. With 0 the old C is NaN.
    pub beta: f32,
    /// Whether alpha and beta lie on the device, so that a plan does not know them.
    pub written: bool,
    /// Axis and place of the bias. The place's `pad` lies between its elements.
    pub bias: Option<(Axis, Place)>,
    /// Function after the bias.
    pub activation: Activation,
    /// Place of the residual \[M,N\].
    pub residual: Option<Place>,
    /// Whether the residual is a gate; then the activation is applied to it. Without a residual,
    /// each even column is the gate of the next one, and C is \[M,N/2\].
    pub gated: bool,
    /// Whether A and B are prepared.
    pub prepared: bool,
    /// How exact the product must be.
    pub precision: Precision,
    /// Contents of A.
    pub a_data: Data,
    /// Contents of B.
    pub b_data: Data,
    /// Whether the result must equal the oracle's bit for bit. The result must then be
    /// representable.
    pub exact: bool,
    /// Seed of all contents.
    pub seed: u64,
}

impl Case {
    /// A plain product of packed operands of these types, with random contents.
    pub fn new(size: [usize; 3], [a, b, c]: [DType; 3]) -> Self {
        Case {
            kernel: None,
            size,
            batch: None,
            nest: None,
            a: Place::packed(a),
            gathered: None,
            b: Place::packed(b),
            c: Place::packed(c),
            quantized: None,
            across: false,
            groups: None,
            form: Form::Rows,
            expected_rows: None,
            aligned: false,
            shards: Vec::new(),
            alpha: 1.0,
            beta: 0.0,
            written: false,
            bias: None,
            activation: Activation::None,
            residual: None,
            gated: false,
            prepared: false,
            precision: Precision::F32,
            a_data: Data::Random,
            b_data: Data::Random,
            exact: false,
            seed: 1,
        }
    }

    /// Makes the places odd: offsets, strides and gaps that no vector load fits.
    pub fn odd(mut self) -> Self {
        for place in [&mut self.a, &mut self.b, &mut self.c] {
            *place = Place::odd(place.dtype).transposed(place.transposed);
        }
        self.of_bytes()
    }

    /// Sets the kernel. A kernel for matrix units gets operands of a type that it takes, and
    /// permission if its sums are f16. A kernel that takes weights as bytes gets weights.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into());
        if let Some(unit) = self.unit() {
            for place in [&mut self.a, &mut self.b]
                .into_iter()
                .filter(|place| !unit.takes(Format::Dense(place.dtype)))
            {
                place.dtype = unit.matrix.operands;
            }
            self.precision =
                if unit.matrix.sums == DType::F16 { Precision::F16Sums } else { Precision::F32 };
        }
        self.of_bytes()
    }

    /// The matrix unit of the kernel that must run it.
    pub fn unit(&self) -> Option<&'static Unit> {
        self.forced()?.1.unit()
    }

    /// The kernel in WGSL that must run it, and its variant.
    fn forced(&self) -> Option<(&'static KernelDef, &'static Variant)> {
        let forced: Forced = self.kernel.as_deref()?.parse().ok()?;
        let kernel = LIBRARY.kernels.iter().find(|kernel| kernel.name == forced.kernel)?;
        let mut variants = kernel.variants.iter();
        Some((kernel, variants.find(|variant| forced.variant.as_deref() == Some(variant.name))?))
    }

    /// Whether the kernel that must run the case takes such a problem at all on a device with these
    /// caps.
    ///
    /// Kernels for matrix units want the unit, and something to multiply. Their tiles may not begin
    /// anywhere along the storage, nor may ranges of K in lines that are divided. Lists must be
    /// aligned. Kernels of bytes want a loader of bytes, and both operands stored along K.
    pub fn is_for(&self, caps: &Caps) -> bool {
        let Some((kernel, variant)) = self.forced() else { return true };
        let mut problem = problem(self);
        if self.gathered.as_ref().is_some_and(|indices| indices.rows == 0) {
            // A product by index of no rows is planned with K = 0.
            problem.k = 0;
        }
        let of_rows = self.groups.is_some()
            && matches!(self.form, Form::Rows | Form::Columns | Form::Indexed(_));
        let ragged_along_m = of_rows && self.a.transposed;
        let divided = |place: Place, along_k| place.dtype == DType::BF16 && along_k;
        let divided = divided(self.a, !self.a.transposed) || divided(self.b, self.b.transposed);
        let shares_vectors = self.form == Form::AlongK && divided;
        let scattered = problem.grouping.traits().listed
            && [problem.a, problem.b].iter().any(|operand| {
                let Operand { offset, ld, batch_stride, .. } = *operand;
                let whole = [offset, batch_stride].iter().all(|number| number.is_multiple_of(ld));
                ld == 1 || !whole
            });
        let served = variant.unit().is_none_or(|unit| {
            let whole = !ragged_along_m && !shares_vectors && !scattered;
            unit.serves(&problem, caps).is_ok() && whole
        });
        served && kernel.takes(variant, &problem, caps)
    }

    /// Changes the case so that a kernel that takes weights as bytes takes it.
    fn of_bytes(mut self) -> Self {
        if self.forced().is_some_and(|(_, variant)| matches!(variant.access, Access::Codes { .. }))
        {
            let format = *self.quantized.get_or_insert(QuantFormat::Q8_0);
            self.size[2] = self.size[2].next_multiple_of(format.block() as usize);
            self.a.transposed = false;
        }
        self
    }

    /// Sets the transposes of A and B.
    pub fn layout(mut self, [a, b]: [bool; 2]) -> Self {
        self.a.transposed = a;
        self.b.transposed = b;
        self.of_bytes()
    }

    /// Fills A and B with small integers; the result must be exact.
    pub fn integers(mut self) -> Self {
        (self.a_data, self.b_data, self.exact) = (Data::Integers, Data::Integers, true);
        self
    }

    /// Makes the product a batch.
    pub fn batch(mut self, batch: usize) -> Self {
        (self.batch, self.nest) = (Some(batch), None);
        self
    }

    /// Makes the product a batch in which each entry has its first rows only.
    pub fn masked(self, counts: Vec<u32>) -> Self {
        let case = self.batch(counts.len());
        Case { groups: Some(Groups { ends: counts, on_device: true }), form: Form::Masked, ..case }
    }

    /// Gives each row one of `entries` entries of B.
    pub fn indexed(self, indices: Vec<u32>, entries: usize) -> Self {
        let [_, n, k] = self.size;
        let size = [indices.len(), n, k];
        let groups = Some(Groups { ends: indices, on_device: true });
        Case { size, groups, form: Form::Indexed(entries), ..self }
    }

    /// Makes the product sums over ranges of K.
    pub fn along_k(self, groups: Groups) -> Self {
        let case = self.batch(groups.ends.len());
        let [a, b] = [case.a, case.b].map(|place| place.entries(Entries::Single));
        Case { a, b, groups: Some(groups), form: Form::AlongK, ..case }
    }

    /// Takes the rows of A by index from a matrix of `rows` rows.
    pub fn gathered(self, rows: usize, all: &[u32]) -> Self {
        let step = 1 + usize::from(self.a.pad > 0);
        let [_, n, k] = self.size;
        let indices = Indices { all: all.to_vec(), rows, step };
        Case { size: [all.len(), n, k], gathered: Some(indices), ..self }
    }

    /// Rows of the matrix that A lies in, and the number of such matrices.
    pub(crate) fn left(&self) -> (usize, Count) {
        match &self.gathered {
            Some(indices) => (indices.rows, 1.into()),
            None => (self.size[0], self.count()),
        }
    }

    /// Makes the product a list of products.
    pub fn listed(self, products: &[[u32; 9]], elements: [usize; 3]) -> Self {
        let groups = Some(Groups { ends: products.concat(), on_device: true });
        Case { groups, form: Form::Listed(elements), ..self }
    }

    /// Gives the list from the host, with its tables.
    pub fn from_host(mut self) -> Self {
        if let Some(groups) = &mut self.groups {
            let sizes: Vec<_> = groups.products().map(|numbers| [numbers[0], numbers[1]]).collect();
            groups.ends.extend(ListSizes::tables(&sizes));
            groups.on_device = false;
        }
        self
    }

    /// The stored shapes of A, B and C.
    pub(crate) fn shapes(&self) -> [[usize; 2]; 3] {
        let [m, n, k] = self.size;
        match self.form {
            Form::Listed(elements) => elements.map(|elements| [1, elements]),
            _ => [[self.left().0, k], [k, n], [m, n / self.columns()]],
        }
    }

    /// Columns of the product that make one of C.
    pub(crate) fn columns(&self) -> usize {
        if self.gated && self.residual.is_none() { 2 } else { 1 }
    }

    /// Makes the product a nested batch with the sizes of a [`Count`].
    pub fn nested(mut self, sizes: [usize; 4]) -> Self {
        let count = Count(sizes);
        (self.batch, self.nest) = (Some(count.entries()), Some(count));
        self
    }

    /// The batch entries of A and C.
    pub fn count(&self) -> Count {
        self.nest.unwrap_or(self.batch.unwrap_or(1).into())
    }

    /// The place of B. Quantized weights have one stack for all outer entries of a batch.
    pub(crate) fn right(&self) -> Place {
        let entries = match self.b.entries {
            own if self.nest.is_none() || self.quantized.is_none() => own,
            Entries::Single | Entries::Stride0 => Entries::Single,
            Entries::Shared | Entries::SharedHeads | Entries::SharedInner => Entries::SharedInner,
            _ => Entries::Inner,
        };
        self.b.entries(entries)
    }

    /// Rows, and blocks of columns, between quantized weights and the edge of the storage.
    pub(crate) fn margin(&self) -> usize {
        usize::from(self.b.pad > 0)
    }

    /// Entries of B.
    pub fn entries(&self) -> Count {
        match self.form {
            Form::Listed(_) => return 1.into(),
            Form::Indexed(entries) => return entries.into(),
            _ => {}
        }
        self.groups.as_ref().map_or(self.count(), |groups| groups.ends.len().into())
    }
}

/// The layouts NN, NT, TN and TT.
pub const LAYOUTS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

/// Nine of the 27 mixtures of three types for A, B and C, in which every pair meets.
pub fn mixtures() -> Vec<[DType; 3]> {
    let pairs = (0..3).flat_map(|a| (0..3).map(move |b| [a, b, (a + b) % 3]));
    pairs.map(|types| types.map(|i| DType::FLOATS[i])).collect()
}
