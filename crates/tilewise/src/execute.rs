//! The CPU executor: the same problems on the host, for machines without a GPU and for comparison.
//! The crate `matrixmultiply` does the multiplications.

use crate::host::memory;
use crate::tensor::storage::{Buffers, Bundle, Storage};
use tilewise_core::kernel::Role;
use tilewise_core::{
    Axis, DType, Dimension, Error, Format, Gathered, Operand, Problem, Result, Segment,
};

/// An operand widened to f32: index i of the storage is element i.
struct Widened<'a> {
    elements: &'a [f32],
    operand: Operand,
}

impl Widened<'_> {
    fn row_col(&self) -> (isize, isize) {
        let ld = self.operand.ld as isize;
        if self.operand.transposed { (1, ld) } else { (ld, 1) }
    }

    /// An element of an entry that begins at `offset`.
    fn at(&self, offset: u64, i: u64, j: u64) -> f32 {
        let Operand { ld, transposed, .. } = self.operand;
        let inner = if transposed { j * ld + i } else { i * ld + j };
        self.elements[(offset + inner) as usize]
    }
}

/// Runs a problem that the planner has accepted: every element lies inside its storage.
pub(crate) fn run(bundle: &Bundle<'_>) -> Result<()> {
    let problem = &bundle.problem;
    let dtype =
        problem.c.format.element().ok_or_else(|| Error::Unsupported("a quantized C".into()))?;
    let epilogue = &problem.epilogue;
    let operand = |role, operand: Option<&Operand>| {
        operand.map_or(Ok(Vec::new()), |operand| widen(bundle, role, operand))
    };
    let mut elements = [
        operand(Role::A, Some(&problem.a))?,
        operand(Role::B, Some(&problem.b))?,
        operand(Role::Bias, epilogue.bias.as_ref().map(|bias| &bias.operand))?,
        operand(Role::Residual, epilogue.residual.as_ref())?,
    ];
    let numbers = match problem.grouping.operands().next() {
        Some((role, count)) if count > 0 => storage(&bundle.buffers, role)?.host()?.clone(),
        _ => Vec::new(),
    };
    let mut problem = *problem;
    if let Some(gathered) = problem.gathered {
        let stored = Widened { elements: &elements[0], operand: problem.a };
        let indices = indices(bundle, gathered)?;
        (elements[0], problem.a) = rows_of(&stored, &indices, gathered.rows, problem.k)?;
    }
    // An operand may lie in the storage of C, so all are read before C is locked.
    let mut c = storage(&bundle.buffers, Role::C)?.host_mut()?;
    if problem.grouping.traits().listed {
        let mut listed = problem.listed(&numbers).into_iter();
        return listed.try_for_each(|one| compute(&one, &elements, &numbers, (&mut c, dtype)));
    }
    compute(&problem, &elements, &numbers, (&mut c, dtype))
}

/// Computes into the words of C, given the elements of A, B, the bias and the residual.
fn compute(
    problem: &Problem,
    [a, b, bias, residual]: &[Vec<f32>; 4],
    numbers: &[u32],
    (c, dtype): (&mut [u32], DType),
) -> Result<()> {
    let Problem { m, n, k, batch, grouping, epilogue, .. } = *problem;
    let [a, b] =
        [(a, problem.a), (b, problem.b)].map(|(elements, operand)| Widened { elements, operand });
    let bias =
        epilogue.bias.map(|own| (own.axis, Widened { elements: bias, operand: own.operand }));
    let residual = epilogue.residual.map(|operand| Widened { elements: residual, operand });
    let mut sums = memory::filled((m * n) as usize, 0f32)?;
    for Segment { entry, group, rows, k } in grouping.segments([m, k], batch, numbers) {
        let first = |operand: &Operand, entry| problem.entry(operand, entry).offset;
        let part = problem.range(Dimension::K, k);
        let firsts = [first(&part.a, entry), first(&part.b, group)];
        product(&a, &b, &part, firsts, rows.clone(), &mut sums);
        let c_first = first(&problem.c, entry);
        let bias_first = bias.as_ref().map_or(0, |(_, bias)| first(&bias.operand, group));
        let residual_first =
            residual.as_ref().map_or(0, |residual| first(&residual.operand, entry));
        for row in rows {
            for col in 0..n {
                let at = c_first + row * problem.c.ld + col;
                let mut y = epilogue.alpha * sums[(row * n + col) as usize];
                if epilogue.beta != 0.0 {
                    y += epilogue.beta * load(c, dtype, at);
                }
                if let Some((axis, bias)) = &bias {
                    y += bias.at(bias_first, if *axis == Axis::N { col } else { row }, 0);
                }
                let function = |x| epilogue.activation.apply(x);
                y = match residual.as_ref().map(|all| all.at(residual_first, row, col)) {
                    Some(gate) if epilogue.gated => y * function(gate),
                    Some(residual) => function(y) + residual,
                    None => function(y),
                };
                store(c, dtype, at, y);
            }
        }
    }
    Ok(())
}

/// The row indices of A.
fn indices(bundle: &Bundle<'_>, Gathered { offset, step, .. }: Gathered) -> Result<Vec<u32>> {
    let words = storage(&bundle.buffers, Role::RowIndex)?.host()?;
    Ok((0..bundle.problem.m).map(|row| words[(offset + row * step) as usize]).collect())
}

/// Copies the rows of A that the indices name, in their order. A has `rows` rows; an index beyond
/// them gives a row of zeros. All entries share the copy.
fn rows_of(a: &Widened<'_>, indices: &[u32], rows: u64, k: u64) -> Result<(Vec<f32>, Operand)> {
    let operand = Operand::packed(a.operand.format, 1, indices.len() as u64, k);
    let operand = operand.with_entry_strides([0; 4]);
    let mut elements = memory::filled(indices.len() * k as usize, 0f32)?;
    for (row, &index) in elements.chunks_exact_mut(k.max(1) as usize).zip(indices) {
        if u64::from(index) < rows {
            row.iter_mut()
                .zip(0..)
                .for_each(|(own, j)| *own = a.at(a.operand.offset, index.into(), j));
        }
    }
    Ok((elements, operand))
}

/// Computes rows `rows` of the product of two entries, which begin at `a_first` and `b_first`, into
/// the same rows of `sums` \[M,N\].
fn product(
    a: &Widened<'_>,
    b: &Widened<'_>,
    problem: &Problem,
    [a_first, b_first]: [u64; 2],
    rows: std::ops::Range<u64>,
    sums: &mut [f32],
) {
    let (m, n, k) = ((rows.end - rows.start) as usize, problem.n as usize, problem.k as usize);
    let out = &mut sums[rows.start as usize * n..rows.end as usize * n];
    if m == 0 || n == 0 || k == 0 {
        out.fill(0.0);
        return;
    }
    let ((a_row, a_col), (b_row, b_col)) = (a.row_col(), b.row_col());
    let a_first = a_first as usize + rows.start as usize * a_row as usize;
    let b_first = b_first as usize;
    let last = |rows: usize, cols: usize, row: isize, col: isize| {
        (rows - 1) * row as usize + (cols - 1) * col as usize
    };
    assert!(a_first + last(m, k, a_row, a_col) < a.elements.len());
    assert!(b_first + last(k, n, b_row, b_col) < b.elements.len());
    // SAFETY: sgemm reads A at a_first + i·a_row + j·a_col for i < m, j < k, and B likewise;
    // strides are not negative, and the largest index of each was just compared with its length. It
    // writes m·n elements of `out`, row-major, which has just that length and aliases neither.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.elements.as_ptr().add(a_first),
            a_row,
            a_col,
            b.elements.as_ptr().add(b_first),
            b_row,
            b_col,
            0.0,
            out.as_mut_ptr(),
            n as isize,
            1,
        );
    }
}

/// The storage of an operand.
pub(crate) fn storage<'a>(buffers: &Buffers<'a>, role: Role) -> Result<&'a Storage> {
    let found = buffers[role as usize].map(|bound| bound.storage);
    found.ok_or_else(|| Error::Unsupported(format!("{} is missing", role.name())))
}

fn widen(bundle: &Bundle<'_>, role: Role, operand: &Operand) -> Result<Vec<f32>> {
    let words = storage(&bundle.buffers, role)?.host()?;
    Ok(match operand.format {
        Format::Dense(dtype) => {
            let bytes = bytemuck::cast_slice::<u32, u8>(&words);
            memory::decoded(
                dtype,
                &bytes[..bytes.len() / dtype.bytes() as usize * dtype.bytes() as usize],
            )?
        }
        Format::Quantized(format) => {
            let others = role.planes().zip(format.planes()).skip(1);
            let others = others
                .map(|(role, _)| storage(&bundle.buffers, role)?.host())
                .collect::<Result<Vec<_>>>()?;
            let planes = std::iter::once(&words).chain(&others);
            let planes: Vec<&[u8]> =
                planes.map(|words| bytemuck::cast_slice(words.as_slice())).collect();
            let mut elements = memory::filled(operand.len as usize, 0f32)?;
            format.decode(&planes, &mut elements);
            elements
        }
    })
}

pub(crate) fn load(words: &[u32], dtype: DType, index: u64) -> f32 {
    let index = index as usize;
    match dtype {
        DType::F32 => f32::from_bits(words[index]),
        DType::F16 => bytemuck::cast_slice::<u32, half::f16>(words)[index].to_f32(),
        DType::BF16 => bytemuck::cast_slice::<u32, half::bf16>(words)[index].to_f32(),
        DType::I32 => words[index] as i32 as f32,
        DType::U32 => words[index] as f32,
    }
}

fn store(words: &mut [u32], dtype: DType, index: u64, value: f32) {
    let index = index as usize;
    match dtype {
        DType::F32 => words[index] = value.to_bits(),
        DType::F16 => bytemuck::cast_slice_mut(words)[index] = half::f16::from_f32(value),
        DType::BF16 => bytemuck::cast_slice_mut(words)[index] = half::bf16::from_f32(value),
        DType::I32 => words[index] = value as i32 as u32,
        DType::U32 => words[index] = value as u32,
    }
}
