//! The numbers that a pass reads.

use super::piece::Piece;
use super::setup::Setup;
use crate::params::Params;
use crate::problem::{DType, Format, Gathered, Operand};

/// The numbers of a pass; `ranges` has seen that they fit.
pub(super) fn params(piece: &Piece, setup: &Setup) -> Params {
    let problem = &setup.problem;
    let none = Operand::packed(Format::Dense(DType::F32), 0, 0, 0);
    let (a, b, c) = (&problem.a, &problem.b, &problem.c);
    let bias = problem.epilogue.bias.map_or(none, |bias| bias.operand);
    let residual = problem.epilogue.residual.unwrap_or(none);
    let nest = problem.grouping.nest();
    let strides = |operand: &Operand| match nest {
        Some(_) => operand.entry_strides().map(|stride| stride as u32),
        None => [0; 4],
    };
    let [column_offset, column_step, table_rows] = problem
        .gathered
        .map_or([0; 3], |Gathered { rows, offset, step, .. }| [offset, step, rows])
        .map(|number| number as u32);
    Params {
        m: problem.m as u32,
        n: problem.n as u32,
        k: problem.k as u32,
        entries: problem.entries() as u32,
        a_offset: a.offset as u32,
        a_ld: a.ld as u32,
        a_batch: a.batch_stride as u32,
        b_offset: b.offset as u32,
        b_ld: b.ld as u32,
        b_batch: b.batch_stride as u32,
        c_offset: c.offset as u32,
        c_ld: c.ld as u32,
        c_batch: c.batch_stride as u32,
        bias_offset: bias.offset as u32,
        bias_ld: bias.ld as u32,
        bias_batch: bias.batch_stride as u32,
        residual_offset: residual.offset as u32,
        residual_ld: residual.ld as u32,
        residual_batch: residual.batch_stride as u32,
        alpha: problem.epilogue.alpha.to_bits(),
        beta: problem.epilogue.beta.to_bits(),
        tiles_m: setup.tiling.m as u32,
        tiles_n: setup.tiling.n as u32,
        splits: setup.tiling.splits as u32,
        k_split: setup.tiling.k_split as u32,
        grid_x: 0,
        shares: 0,
        scratch_splits: setup.tiling.scratch_splits as u32,
        first_row: piece.first_row as u32,
        first_group: piece.first_group as u32,
        column_offset,
        column_step,
        table_rows,
        row_offset: problem.grouping.traits().offset as u32,
        row_step: 0,
        bound_rows: 0,
        nest: nest.unwrap_or([0; 4]).map(|size| size as u32),
        a_nest: strides(a),
        b_nest: strides(b),
        c_nest: strides(c),
        bias_nest: strides(&bias),
        residual_nest: strides(&residual),
    }
}
