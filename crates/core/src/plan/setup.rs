//! The layout of a candidate for one pass over K, in the order in which it is decided: tiles,
//! loaders, schedule, store. The verdict on the candidate and its passes follow from it.

use super::check;
use super::fetch::{Fetches, scalar_loader};
use super::piece::{Piece, Step, Window, scratch_bytes, split_length, splits_of};
use crate::caps::Caps;
use crate::cost;
use crate::kernel::{Kit, OperandDef, Reject, ScheduleDef, StoreDef, Variant};
use crate::nested;
use crate::problem::{ListSizes, Problem, Traits};
use crate::role::{Role, Roles};

/// The layout of a candidate for one pass over K.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    /// The pass's product, with offsets from where its bindings start.
    pub(super) problem: Problem,
    pub(super) kit: &'static Kit,
    pub(super) windows: [Window; Role::COUNT],
    /// Which range of K it is.
    pub(super) step: u64,
    pub(super) tiling: Tiling,
    pub(super) fetches: Fetches,
    pub(super) scheduling: Scheduling,
    pub(super) storing: Storing,
}

/// How many tiles C has, and how K is split.
#[derive(Clone, Copy)]
pub(super) struct Tiling {
    pub(super) m: u64,
    pub(super) n: u64,
    /// Steps along K of packed operands.
    pub(super) k: u64,
    /// Splits of this range of K, and the elements of K in each but the last.
    pub(super) splits: u64,
    pub(super) k_split: u64,
    /// Splits in scratch memory. The first range of K leaves them; later ranges add to them.
    pub(super) scratch_splits: u64,
}

/// How workgroups find their tiles.
#[derive(Clone, Copy)]
pub(super) struct Scheduling {
    pub(super) schedule: &'static ScheduleDef,
    /// The buffers that it reads.
    roles: Roles,
    pub(super) workgroups: u64,
    /// Estimated seconds of workgroups without a tile, or of the table that spares them.
    pub(super) idle: f64,
    /// Whether a fixed number of workgroups strides over the tiles of the mainloop.
    pub(super) strides: bool,
    /// The number of the table that a list from the host has for these tiles.
    pub(super) list_table: Option<u64>,
}

/// How sums reach C.
#[derive(Clone, Copy)]
pub(super) struct Storing {
    pub(super) bias: Option<&'static OperandDef>,
    pub(super) residual: Option<&'static OperandDef>,
    pub(super) store: &'static StoreDef,
    /// Whether C can be stored four columns of a row at a time.
    pub(super) by_tiles: bool,
    /// Whether the mainloop leaves sums in scratch memory to a second pass.
    pub(super) two_passes: bool,
    /// Whether the second pass leaves the residual to a third.
    pub(super) two_finishes: bool,
    pub(super) scratch_bytes: u64,
}

/// The steps of the epilogue that a pass takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    All,
    ButResidual,
    Residual,
}

/// The piece, device and kernel that a setup is made for.
#[derive(Clone, Copy)]
struct Basis<'a> {
    piece: &'a Piece,
    problem: &'a Problem,
    caps: &'a Caps,
    kit: &'static Kit,
    variant: &'a Variant,
}

impl Setup {
    pub(super) fn new(
        piece: &Piece,
        step: &Step,
        caps: &Caps,
        kit: &'static Kit,
        variant: &Variant,
        splits: u64,
    ) -> Result<Self, Reject> {
        let Step { index, ref problem, windows } = *step;
        let basis = Basis { piece, problem, caps, kit, variant };
        kit.schedule(problem.grouping).ok_or_else(|| no_schedule(problem))?;
        let tiling = Tiling::new(basis, splits)?;
        if problem.gathered.is_some() && kit.gathered.is_none() {
            return Err(Reject("it has no rows by index".into()));
        }
        if problem.epilogue.columns() > 1 && kit.paired.is_none() {
            return Err(Reject("it has no gates in columns".into()));
        }
        let fetches = Fetches::new(kit, caps, variant, problem, tiling.splits)?;
        let scheduling = Scheduling::new(basis, &tiling, &fetches)?;
        let direct = fetches.roles(problem) | ends(problem, Ends::All) | scheduling.roles;
        let storing = Storing::new(basis, tiling.scratch_splits, scheduling.roles, direct)?;
        let problem = *problem;
        Ok(Setup { problem, kit, windows, step: index, tiling, fetches, scheduling, storing })
    }

    /// The roles that the mainloop binds.
    pub(super) fn mainloop_roles(&self) -> Roles {
        let out = match self.storing.two_passes {
            true => Roles::of(Role::Scratch),
            false => ends(&self.problem, Ends::All),
        };
        self.fetches.roles(&self.problem) | self.scheduling.roles | out
    }

    /// The roles that a finishing pass binds if it takes these steps of the epilogue.
    pub(super) fn finish_roles(&self, own: Ends) -> Roles {
        Roles::of(Role::Scratch) | self.scheduling.roles | ends(&self.problem, own)
    }

    /// The finishing passes, by their steps of the epilogue.
    pub(super) fn finishes(&self) -> &'static [Ends] {
        match self.storing {
            Storing { two_finishes: true, .. } => &[Ends::ButResidual, Ends::Residual],
            Storing { two_passes: true, .. } => &[Ends::All],
            _ => &[],
        }
    }

    /// Estimated seconds of the finishing passes: partial sums are written and read again.
    pub(super) fn finishing_seconds(&self, caps: &Caps) -> f64 {
        let rates = caps.rates();
        let pass = 2.0 * self.storing.scratch_bytes as f64 / rates.bandwidth + rates.dispatch;
        self.finishes().len() as f64 * pass
    }

    /// Storage buffers of the pass that binds most.
    pub(super) fn storage_buffers(&self) -> u32 {
        let format = |role| if role == Role::A { self.problem.a } else { self.problem.b }.format;
        let packs = self.fetches.packed().map(|(role, own)| own.roles(role, format(role)));
        let finishes = self.finishes().iter().map(|&own| self.finish_roles(own));
        let all = packs.chain(finishes).chain([self.mainloop_roles()]);
        all.map(Roles::count).max().unwrap_or(0)
    }
}

impl Tiling {
    fn new(basis: Basis<'_>, splits: u64) -> Result<Self, Reject> {
        let Basis { piece, problem, variant, .. } = basis;
        let Problem { m, n, grouping, .. } = *problem;
        let Traits { listed, whole_k, .. } = grouping.traits();
        let multiplied = variant.multiplied(problem);
        let longest = variant.multiplied(&piece.step(0)).k;
        let k_split = split_length(longest, splits, variant.bk.into());
        let splits = splits_of(multiplied.k, k_split);
        let whose = if listed { "products of a list" } else { "groups along K" };
        if !variant.takes(grouping) {
            return Err(Reject(format!("{whose} begin inside its steps")));
        }
        if splits > 1 && !whole_k {
            return Err(Reject(format!("{whose} take no splits of K, {splits} here")));
        }
        Ok(Tiling {
            m: grouping.tiles_m(m, variant.bm.into()),
            n: n.div_ceil(variant.bn.into()),
            k: match whole_k {
                true => multiplied.k.next_multiple_of(variant.bk.into()),
                // Zeros beyond K would count in the last range.
                false => problem.k,
            },
            splits,
            k_split,
            scratch_splits: splits_of(longest, k_split),
        })
    }
}

impl Scheduling {
    fn new(basis: Basis<'_>, tiling: &Tiling, fetches: &Fetches) -> Result<Self, Reject> {
        let Basis { piece, problem, caps, kit, variant } = basis;
        let grouping = problem.grouping;
        let tile = [variant.bm, variant.bn];
        // If the host knows the list, it made a table for most shapes of tiles.
        let sizes = grouping.list_sizes();
        let list_table = sizes.and_then(|_| ListSizes::table(tile));
        // Only loaders of codes lose nothing by a loop around the mainloop.
        let decodes = fetches.b.is_some_and(|fetch| fetch.packing.is_none())
            && problem.b.format.element().is_none();
        let strides = variant.unit().is_some() && decodes;
        let table = match (sizes, list_table) {
            (None, _) => cost::counting(caps, strides),
            (_, Some(_)) => 0.0,
            (_, None) => f64::INFINITY,
        };
        let idle = cost::idle(problem, caps, variant);
        // A piece meets the groups before its own, too.
        let met = grouping.behind(piece.first_group);
        let others = fetches.roles(problem) | ends(problem, Ends::All);
        let spares = kit
            .schedule_for(met, idle > table)
            .filter(|own| (others | roles(problem, kit, own)).count() <= caps.max_storage_buffers);
        let schedule = spares.or_else(|| kit.schedule_for(met, false));
        let schedule = schedule.ok_or_else(|| no_schedule(problem))?;
        let all = [tiling.n, problem.batch, tiling.splits];
        let all = all.into_iter().fold(tiling.m, u64::saturating_mul);
        let workgroups = match sizes.filter(|_| schedule.spares_idle) {
            Some(sizes) => sizes.tiles(problem.batch, tile.map(u64::from)).min(all),
            None => all,
        };
        Ok(Scheduling {
            schedule,
            roles: roles(problem, kit, schedule),
            workgroups,
            idle: if schedule.spares_idle { table } else { idle },
            strides: strides && schedule.strides,
            list_table,
        })
    }
}

impl Storing {
    /// `splits` are those in scratch memory, `numbers` what the schedule binds, and `direct` what
    /// the mainloop binds if it stores C itself.
    fn new(
        Basis { piece, problem, caps, kit, .. }: Basis<'_>,
        splits: u64,
        numbers: Roles,
        direct: Roles,
    ) -> Result<Self, Reject> {
        let Problem { grouping, epilogue, c, .. } = problem;
        let bias = epilogue.bias.map(|bias| scalar_loader(kit, caps, &bias.operand)).transpose()?;
        let residual =
            epilogue.residual.map(|residual| scalar_loader(kit, caps, &residual)).transpose()?;
        let dtype = check::dense_type(c);
        let by_tile = tile_store(kit, caps, problem);
        let by_tiles = by_tile.is_some();
        if !by_tiles && kit.by_words.is_some() && !nested::is_even(*grouping, c) {
            return Err(Reject("entries of C share words, and do not follow one another".into()));
        }
        let (binds, most) = (direct.count(), caps.max_storage_buffers);
        let two_passes = splits > 1 || piece.steps() > 1 || !by_tiles || binds > most;
        if grouping.traits().listed && binds > most {
            return Err(Reject(format!(
                "a list takes one pass, which binds {binds} storage buffers; the device binds \
                 {most}"
            )));
        }
        if grouping.traits().listed && two_passes {
            return Err(Reject(format!(
                "elements of C in {dtype} are not stored one by one here, those in f32 are"
            )));
        }
        let by_words = || kit.stores.iter().find(|s| (s.accepts)(dtype, caps) && s.words);
        let store =
            by_tile.or_else(by_words).ok_or_else(|| Reject(format!("no store for {dtype}")))?;
        // The residual waits for a pass of its own if the device does not bind all buffers at once.
        let finish = Roles::of(Role::Scratch) | ends(problem, Ends::All) | numbers;
        let two_finishes = two_passes
            && bias.is_some()
            && residual.is_some()
            && kit.residual_pass.is_some()
            && finish.count() > most;
        let scratch_bytes = if two_passes { scratch_bytes(problem, splits) } else { 0 };
        Ok(Storing { bias, residual, store, by_tiles, two_passes, two_finishes, scratch_bytes })
    }
}

fn no_schedule(problem: &Problem) -> Reject {
    Reject(format!("no schedule for {:?}", problem.grouping))
}

/// The roles that a schedule reads: the numbers of the grouping, or the table made of them. A list
/// is bound beside its table.
fn roles(problem: &Problem, kit: &Kit, schedule: &ScheduleDef) -> Roles {
    let numbers = numbers(problem);
    match schedule.table.and(kit.table) {
        Some(_) if problem.grouping.traits().listed => numbers | Roles::of(Role::Packed),
        Some(_) => Roles::of(Role::Packed),
        None => numbers,
    }
}

/// The roles that these steps of the epilogue bind, C among them.
fn ends(problem: &Problem, own: Ends) -> Roles {
    let bias = problem.epilogue.bias.filter(|_| own != Ends::Residual);
    let residual = problem.epilogue.residual.filter(|_| own != Ends::ButResidual);
    let bias = bias.map(|_| Role::Bias);
    [Role::C].into_iter().chain(bias).chain(residual.map(|_| Role::Residual)).collect()
}

fn numbers(problem: &Problem) -> Roles {
    problem.grouping.operands().map(|(role, _)| role).collect()
}

/// The roles that a mainloop binds if it stores C itself and reads no table.
pub(super) fn direct_roles(fetches: &Fetches, problem: &Problem) -> Roles {
    fetches.roles(problem) | ends(problem, Ends::All) | numbers(problem)
}

/// The store by which mainloops store C tile by tile, if there is one.
pub(super) fn tile_store(
    kit: &'static Kit,
    caps: &Caps,
    problem: &Problem,
) -> Option<&'static StoreDef> {
    let dtype = check::dense_type(&problem.c);
    kit.stores.iter().find(|store| (store.accepts)(dtype, caps) && stores_tiles(store, problem))
}

/// Whether one invocation may store four neighbouring columns of any row without touching a word of
/// another's.
fn stores_tiles(store: &StoreDef, problem: &Problem) -> bool {
    let c = &problem.c;
    let numbers = [c.offset, c.ld];
    // Products of a list begin anywhere.
    (store.vector == 1 || !problem.grouping.traits().listed)
        && numbers
            .iter()
            .chain(&c.entry_strides())
            .all(|number| number.is_multiple_of(store.vector))
        && (!store.whole
            || problem.n.is_multiple_of(store.vector) && problem.epilogue.columns() == 1)
}
