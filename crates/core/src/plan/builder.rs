//! A pass, file by file and binding by binding.

use super::group_table::GroupTable;
use super::packing::Packing;
use super::piece::Window;
use super::setup::{Ends, Setup};
use super::side::Side;
use super::{Binding, Part, Pass, check};
use crate::caps::Caps;
use crate::kernel::{Constant, Kit, Language, OperandDef, Pack, Params, Role, Unit};
use crate::problem::{Activation, Axis, DType, Format, Grouping, Operand, Problem};
use crate::quant::{Plane, Stored};
use crate::role::Roles;

/// The constants of a loader that name its bindings, plane by plane.
const PLANE_BINDINGS: [&str; 4] = ["X_BINDING", "X_BINDING_1", "X_BINDING_2", "X_BINDING_3"];

/// Invocations that look at the ends of groups together.
const LANES: u64 = 32;

/// WGSL reads planes of scales and the like as words.
const WORD: u64 = 4;

/// Columns that a mainloop stores together if it may not store them one by one.
const COLUMNS: u32 = 4;

/// Mainloops read powers of two four at a time.
const FOUR_POWERS: u64 = 4 * WORD;

/// A pass under construction.
pub(super) struct Builder {
    pub(super) pass: Pass,
    kit: &'static Kit,
    windows: [Window; Role::COUNT],
}

impl Builder {
    /// A pass without files. `windows` says what is bound of operands.
    pub(super) fn new(
        label: String,
        params: Params,
        threads: u32,
        workgroup_bytes: u32,
        (kit, windows): (&'static Kit, [Window; Role::COUNT]),
    ) -> Self {
        let pass = Pass {
            label,
            language: kit.language,
            parts: Vec::new(),
            f16: false,
            coop: false,
            unroll: true,
            params,
            grid: [0; 2],
            indirect: None,
            strides: false,
            threads,
            workgroup_bytes,
            bindings: Vec::new(),
            beside_c: false,
            piece_seconds: None,
        };
        Builder { pass, kit, windows }
    }

    /// Adds a file, with values for its constants.
    pub(super) fn part(
        &mut self,
        file: &'static str,
        operand: Option<&'static str>,
        constants: Vec<Constant>,
    ) {
        self.pass.parts.push(Part { file, operand, constants });
    }

    /// Sets one more constant of the last file.
    pub(super) fn constant(&mut self, constant: Constant) {
        self.pass.parts.last_mut().expect("a file").constants.push(constant);
    }

    pub(super) fn bind(
        &mut self,
        role: Role,
        writable: bool,
        [start, bytes]: [u64; 2],
        element_bytes: u64,
    ) {
        let bytes = bytes.max(element_bytes).next_multiple_of(4);
        self.pass.bindings.push(Binding {
            role,
            from: role,
            writable,
            start,
            bytes,
            element_bytes,
        });
    }

    /// Binds a packed operand, to be written as `Role::Packed` or read as A or B, or its powers.
    pub(super) fn packed(
        &mut self,
        role: Role,
        writable: bool,
        from: Role,
        [start, bytes]: [u64; 2],
        element_bytes: u64,
    ) {
        let bytes = bytes.max(element_bytes);
        self.pass.bindings.push(Binding { role, from, writable, start, bytes, element_bytes });
    }

    /// Adds a loader for an operand that a pass packed.
    pub(super) fn load_packed(&mut self, side: &Side, loader: &OperandDef, packing: &Packing) {
        self.part(loader.file, Some(side.name), vec![("X_BINDING", side.role.binding())]);
        let place = [packing.start, packing.elements_bytes()];
        self.packed(side.role, false, packing.from, place, loader.element_bytes);
        self.pass.params.relocate(side.role, packing.place());
    }

    /// Adds the file that says where an operand of a matrix unit, or its copy, has its elements.
    pub(super) fn slabs(&mut self, pack: &Pack, name: &'static str, packing: Option<&Packing>) {
        let slab = packing.and_then(Packing::slab).unwrap_or(0);
        self.part(pack.slabs, Some(name), vec![("X_SLAB", slab)]);
    }

    /// Adds the powers of two that A or B was divided by when it was packed, if it was.
    pub(super) fn powers(&mut self, pack: &Pack, side: &Side, packing: &Packing) {
        let Some(place) = packing.powers_place() else { return };
        let role = side.role.powers();
        let each = u32::from(packing.sharing > 1);
        let constants = vec![("X_POWERS", role.binding()), ("X_EACH", each)];
        self.part(pack.divisors, Some(side.name), constants);
        self.packed(role, false, packing.from, place, FOUR_POWERS);
    }

    /// Adds the file that says along which axis A or B is stored.
    pub(super) fn axes(&mut self, name: &'static str, along_k: bool) {
        self.part(self.kit.axes, Some(name), vec![("X_K_CONTIGUOUS", u32::from(along_k))]);
    }

    /// Adds A's row indices.
    pub(super) fn gathered(&mut self, name: &'static str, file: &'static str, problem: &Problem) {
        self.part(file, Some(name), vec![("X_INDICES", Role::RowIndex.binding())]);
        self.bind(Role::RowIndex, false, [0, problem.indices().unwrap_or(0) * WORD], WORD);
    }

    /// Adds the file that says where the entries of operands begin, if one stride does not.
    pub(super) fn bases(&mut self, grouping: Grouping) {
        if let Some(file) = self.kit.schedule(grouping).and_then(|schedule| schedule.bases) {
            self.part(file, None, Vec::new());
        }
    }

    /// Adds the names of a matrix unit.
    pub(super) fn unit(&mut self, unit: &Unit) {
        self.part(unit.file, None, Vec::new());
        self.pass.coop = true;
        self.pass.f16 |= unit.matrix.operands == DType::F16;
    }

    /// Start and length in bytes of what is bound of an operand's plane.
    pub(super) fn window(&self, role: Role, format: Format, plane: &Plane) -> [u64; 2] {
        let Window { start, elements } = self.windows[role as usize];
        [start, elements].map(|elements| plane.bytes_of(format.block(), elements))
    }

    /// Adds a loader for an operand, with its bindings, or the loader of an absent operand.
    pub(super) fn load(
        &mut self,
        name: &'static str,
        role: Role,
        loader: Option<&OperandDef>,
        operand: Option<&Operand>,
    ) {
        let kit = self.kit;
        let (Some(loader), Some(operand)) = (loader, operand) else {
            self.part(kit.absent, Some(name), Vec::new());
            return;
        };
        self.pass.workgroup_bytes += loader.workgroup_bytes;
        let mut constants = (loader.constants)(operand.format);
        if let Format::Quantized(format) = operand.format {
            constants.extend(format.def().constants);
        }
        let planes = || role.planes().zip(operand.format.planes());
        // Shaders in MSL find their buffers by the order of the bindings.
        if kit.language == Language::Wgsl {
            constants.extend(
                PLANE_BINDINGS
                    .into_iter()
                    .zip(planes())
                    .map(|(name, (role, _))| (name, role.binding())),
            );
        }
        self.part(loader.file, Some(name), constants);
        self.pass.f16 |= loader.f16;
        for (plane_role, plane) in planes() {
            let codes = plane.of == Stored::Words || operand.format.element().is_some();
            let element_bytes = match kit.language {
                Language::Wgsl if codes => loader.element_bytes,
                Language::Wgsl => WORD,
                Language::Msl => plane.of.bytes(),
            };
            self.bind(plane_role, false, self.window(role, operand.format, plane), element_bytes);
        }
    }

    /// Adds everything between the sums and C: linear part, activation, store.
    pub(super) fn epilogue(&mut self, setup: &Setup, ends: Ends) {
        let kit = setup.kit;
        let Problem { c, epilogue, .. } = &setup.problem;
        let along_m = epilogue.bias.is_some_and(|bias| bias.axis == Axis::M);
        let bias = epilogue.bias.as_ref().map(|bias| &bias.operand);
        let residual = epilogue.residual.as_ref().filter(|_| ends != Ends::ButResidual);
        if ends != Ends::Residual {
            self.load("bias", Role::Bias, setup.storing.bias, bias);
        }
        self.load("residual", Role::Residual, setup.storing.residual, residual);
        // A gate's function goes where the gate does; any other goes before the residual.
        let paired = kit.paired.filter(|_| epilogue.columns() > 1);
        let gated = epilogue.gated && paired.is_none();
        let elsewhere = if gated { Ends::ButResidual } else { Ends::Residual };
        let activation = match epilogue.activation {
            _ if ends == elsewhere => 0,
            Activation::None => 0,
            Activation::Relu => 1,
            Activation::Gelu => 2,
            Activation::Silu => 3,
            Activation::GeluErf => 4,
        };
        self.part(kit.activation, None, vec![("ACTIVATION", activation)]);
        self.part(
            setup.storing.store.file,
            None,
            (setup.storing.store.constants)(check::dense_type(c)),
        );
        if let Some(file) = paired {
            if setup.storing.store.vector == 1 {
                self.constant(("C_STEP", COLUMNS));
            }
            self.part(file, None, Vec::new());
        } else if gated && ends != elsewhere {
            self.part(kit.gated, None, Vec::new());
        } else {
            self.part(kit.added, None, vec![("USE_RESIDUAL", u32::from(residual.is_some()))]);
        }
        if let (Ends::Residual, Some(two)) = (ends, kit.residual_pass) {
            self.part(two.kept, None, Vec::new());
        } else {
            let steps = vec![
                ("USE_BETA", u32::from(epilogue.beta != 0.0)),
                ("USE_BIAS", u32::from(bias.is_some())),
                ("BIAS_ALONG_M", u32::from(along_m)),
            ];
            self.part(kit.linear, None, steps);
        }
        self.pass.f16 |= setup.storing.store.f16;
        self.bind(
            Role::C,
            true,
            self.window(Role::C, c.format, &c.format.planes()[0]),
            setup.storing.store.element_bytes,
        );
    }

    /// Adds the schedule, which reads the buffers of the whole product's grouping, or a table of
    /// them.
    pub(super) fn schedule(&mut self, setup: &Setup, whole: Grouping, table: Option<GroupTable>) {
        self.part(setup.scheduling.schedule.file, None, Vec::new());
        if setup.scheduling.schedule.returns_early {
            self.constant(("RETURNS_EARLY", self.pass.coop.into()));
        }
        if let (true, Some(lanes)) = (setup.scheduling.schedule.lanes, self.kit.lanes) {
            let groups = whole.traits().first + whole.entries(setup.problem.batch);
            self.constant(("EACH", groups.div_ceil(LANES) as u32));
            if self.pass.coop {
                self.part(lanes.subgroups, None, Vec::new());
            } else {
                self.part(lanes.shared, None, Vec::new());
                self.pass.workgroup_bytes += lanes.shared_bytes;
            }
        }
        if let Some(file) = setup.scheduling.schedule.extents {
            self.part(file, None, Vec::new());
        }
        if let (true, Some(number)) =
            (setup.scheduling.schedule.spares_idle, setup.scheduling.list_table)
        {
            self.constant(("TABLE", number as u32));
        }
        self.bases(setup.problem.grouping);
        self.groups(whole, table);
    }

    /// Binds the numbers of groups: the buffers of the whole product's grouping, or a table.
    pub(super) fn groups(&mut self, whole: Grouping, table: Option<GroupTable>) {
        if let Some(table) = table {
            self.packed(Role::Packed, false, Role::Packed, table.place(), GroupTable::ENTRY);
        }
        // A list needs more numbers than its table has.
        if table.is_none() || whole.traits().listed {
            self.numbers(whole);
        }
    }

    fn numbers(&mut self, whole: Grouping) {
        for (role, elements) in whole.operands() {
            self.bind(role, false, [0, elements * WORD], WORD);
        }
    }

    /// Binds the buffers that a table is made of, and the table.
    pub(super) fn table(&mut self, whole: Grouping, table: GroupTable) {
        self.numbers(whole);
        self.packed(Role::Packed, true, Role::Packed, table.place(), GroupTable::ENTRY);
    }

    /// Spreads the workgroups over x and y, and gives the pass, which binds what was counted for
    /// it.
    pub(super) fn finish(mut self, counted: Option<Roles>, workgroups: u64, caps: &Caps) -> Pass {
        let bound = self.pass.bindings.iter().map(|binding| binding.role).collect();
        debug_assert_eq!(counted.unwrap_or(bound), bound, "{}", self.pass.label);
        let y = workgroups.div_ceil(caps.max_workgroups.into()).max(1);
        let x = workgroups.div_ceil(y);
        self.pass.grid = [x as u32, y as u32];
        self.pass.params.grid_x = x as u32;
        self.pass.unroll = caps.unrolls();
        self.pass.bindings.sort_by_key(|binding| binding.role);
        self.pass
    }
}
