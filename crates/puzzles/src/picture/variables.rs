//! The cells of each variable: they turn an access by bytes into cells of a picture.

use crate::puzzle::{Case, Puzzle};
use naga::{AddressSpace, ArraySize, Handle, Module, Type, TypeInner};
use std::ops::Range;
use tilewise_sanitizer::{Access, Shader};

/// Bytes of a cell: everything in the puzzles is `f32`.
const CELL: u32 = 4;

/// The memory of a variable, in the order in which a kernel uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Memory {
    Input,
    Workgroup,
    Output,
}

/// The cells of one variable, row after row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) memory: Memory,
    /// Cells in a row.
    pub(super) columns: usize,
    /// The number of cells.
    pub(super) cells: usize,
}

impl Variable {
    /// Whether this is the variable that was accessed.
    pub(super) fn is_of(&self, access: &Access) -> bool {
        self.name == access.variable
            && access.workgroup_memory == (self.memory == Memory::Workgroup)
    }

    /// The cells that an access covers; none for an access out of bounds.
    pub(super) fn cells(&self, access: &Access) -> Range<usize> {
        let cell = |byte: u32| (byte as usize).min(self.cells);
        cell(access.offset / CELL)..cell(access.offset.saturating_add(access.bytes).div_ceil(CELL))
    }
}

/// All variables: inputs and output with the sizes of the case, workgroup memory as `shader`
/// declares it.
pub(super) fn variables(puzzle: &Puzzle, case: &Case, shader: &Shader) -> Vec<Variable> {
    let global = |name: &str, memory, shape: &[usize]| Variable {
        name: name.to_owned(),
        memory,
        columns: shape.last().copied().unwrap_or(1),
        cells: shape.iter().product(),
    };
    let mut variables: Vec<Variable> = puzzle
        .inputs
        .iter()
        .zip(case.inputs)
        .map(|(name, shape)| global(name, Memory::Input, shape))
        .collect();
    variables.extend(workgroup_memory(shader.module()));
    variables.push(global("out", Memory::Output, case.output));
    variables
}

fn workgroup_memory(module: &Module) -> impl Iterator<Item = Variable> {
    let shared = module.global_variables.iter().map(|(_, variable)| variable);
    shared.filter(|variable| variable.space == AddressSpace::WorkGroup).filter_map(|variable| {
        let name = variable.name.clone()?;
        let cells = module.types[variable.ty].inner.size(module.to_ctx()).div_ceil(CELL) as usize;
        Some(Variable {
            name,
            memory: Memory::Workgroup,
            columns: columns(module, variable.ty).unwrap_or(cells),
            cells,
        })
    })
}

/// Cells in a row of an array of arrays; none for any other type, which is one row.
fn columns(module: &Module, ty: Handle<Type>) -> Option<usize> {
    let TypeInner::Array { base, size: ArraySize::Constant(_), stride } = module.types[ty].inner
    else {
        return None;
    };
    let is_array = matches!(module.types[base].inner, TypeInner::Array { .. });
    is_array.then_some((stride / CELL) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PUZZLES;
    use tilewise_sanitizer::Place;

    fn matrix_variables() -> Vec<Variable> {
        let source =
            "var<workgroup> flat: array<f32, 12>; var<workgroup> square: array<array<f32, 3>, 5>;";
        let puzzle = &PUZZLES[13];
        variables(puzzle, &puzzle.cases[2], &Shader::parse("test", source).expect("valid WGSL"))
    }

    #[test]
    fn rows_and_columns() {
        let shapes: Vec<_> = matrix_variables()
            .into_iter()
            .map(|drawn| (drawn.name, drawn.columns, drawn.cells))
            .collect();
        let expected =
            [("a", 7, 35), ("b", 4, 28), ("flat", 12, 12), ("square", 3, 15), ("out", 4, 20)];
        assert_eq!(
            shapes,
            expected.map(|(name, columns, cells)| (name.to_owned(), columns, cells))
        );
    }

    #[test]
    fn accesses_become_cells() {
        let variables = matrix_variables();
        let access = |offset, bytes| Access {
            variable: "flat".to_owned(),
            workgroup_memory: true,
            offset,
            bytes,
            write: false,
            place: Place { workgroup: [0; 3], local: [0; 3] },
        };
        assert!(variables[2].is_of(&access(0, 4)) && !variables[0].is_of(&access(0, 4)));
        assert_eq!(variables[2].cells(&access(8, 4)), 2..3);
        assert_eq!(variables[2].cells(&access(16, 16)), 4..8);
        assert!(
            variables[2].cells(&access(48, 4)).is_empty()
                && variables[2].cells(&access(u32::MAX, 4)).is_empty()
        );
    }
}
