//! The parts of a candidate for one pass over K: loaders, store, tiles, memory. They are laid out
//! once; the verdict on the candidate and its passes follow from them.

use super::check;
use super::fetch::{Fetches, scalar_loader};
use super::piece::{Piece, Step, Window, scratch_bytes, split_length, splits_of};
use crate::caps::Caps;
use crate::cost;
use crate::kernel::{Kit, OperandDef, Reject, ScheduleDef, StoreDef, Variant};
use crate::nested;
use crate::problem::{ListSizes, Problem};
use crate::role::Role;

/// The parts of a candidate for one pass over K.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    /// The pass's product, with offsets from where its bindings start.
    pub(super) problem: Problem,
    pub(super) kit: &'static Kit,
    pub(super) windows: [Window; Role::COUNT],
    pub(super) workgroups: u64,
    /// Estimated seconds of workgroups without a tile, or of the table that spares them.
    pub(super) idle: f64,
    /// Whether a fixed number of workgroups strides over the tiles of the mainloop.
    pub(super) strides: bool,
    /// The number of the table that a list from the host has for these tiles.
    pub(super) list_table: Option<u64>,
    pub(super) storage_buffers: u64,
    pub(super) scratch_bytes: u64,
    pub(super) two_passes: bool,
    /// Whether the second pass leaves the residual to a third.
    pub(super) two_finishes: bool,
    /// Whether C can be stored four columns of a row at a time.
    pub(super) by_tiles: bool,
    pub(super) tiles_m: u64,
    pub(super) tiles_n: u64,
    /// Steps along K of packed operands.
    pub(super) k: u64,
    /// Splits of this range of K, and the elements of K in each but the last.
    pub(super) splits: u64,
    pub(super) k_split: u64,
    /// Which range of K it is.
    pub(super) step: u64,
    /// Splits in scratch memory. The first range of K leaves them; later ranges add to them.
    pub(super) scratch_splits: u64,
    pub(super) schedule: &'static ScheduleDef,
    pub(super) fetches: Fetches,
    pub(super) bias: Option<&'static OperandDef>,
    pub(super) residual: Option<&'static OperandDef>,
    pub(super) store: &'static StoreDef,
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
        let grouping = problem.grouping;
        let none = || Reject(format!("no schedule for {grouping:?}"));
        kit.schedule(grouping).ok_or_else(none)?;
        let tiles_m = grouping.tiles_m(problem.m, variant.bm.into());
        let tiles_n = problem.n.div_ceil(variant.bn.into());
        let multiplied = variant.multiplied(problem);
        let longest = variant.multiplied(&piece.step(0)).k;
        let k_split = split_length(longest, splits, variant.bk.into());
        let splits = splits_of(multiplied.k, k_split);
        let scratch_splits = splits_of(longest, k_split);
        let whose = if grouping.traits().listed { "products of a list" } else { "groups along K" };
        if !variant.takes(grouping) {
            return Err(Reject(format!("{whose} begin inside its steps")));
        }
        if splits > 1 && !grouping.traits().whole_k {
            return Err(Reject(format!("{whose} take no splits of K, {splits} here")));
        }

        if problem.gathered.is_some() && kit.gathered.is_none() {
            return Err(Reject("it has no rows by index".into()));
        }
        let fetches = Fetches::new(kit, caps, variant, problem, splits)?;
        // A list is bound beside the table that is made of it.
        let beside = u64::from(grouping.traits().listed);
        let direct_buffers = direct_buffers(&fetches, problem);
        let idle = cost::idle(problem, caps, variant);
        // If the host knows the list, it made a table for most shapes of tiles.
        let tile = [variant.bm, variant.bn];
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
        let spares = idle > table && direct_buffers + beside <= caps.max_storage_buffers.into();
        // A piece meets the groups before its own, too.
        let schedule =
            kit.schedule_for(grouping.behind(piece.first_group), spares).ok_or_else(none)?;
        let idle = if schedule.spares_idle { table } else { idle };
        let direct_buffers = direct_buffers + if schedule.spares_idle { beside } else { 0 };
        let epilogue = &problem.epilogue;
        let bias = epilogue.bias.map(|bias| scalar_loader(kit, caps, &bias.operand)).transpose()?;
        let residual =
            epilogue.residual.map(|residual| scalar_loader(kit, caps, &residual)).transpose()?;

        let dtype = check::dense_type(&problem.c);
        let direct = tile_store(kit, caps, problem);
        let by_tiles = direct.is_some();
        if !by_tiles && kit.finish_words.is_some() && !nested::is_even(grouping, &problem.c) {
            return Err(Reject("entries of C share words, and do not follow one another".into()));
        }
        let directly = direct_buffers <= caps.max_storage_buffers.into();
        let two_passes = scratch_splits > 1 || piece.steps() > 1 || !by_tiles || !directly;
        let by_words = || kit.stores.iter().find(|s| (s.accepts)(dtype, caps) && s.words);
        if grouping.traits().listed && !directly {
            return Err(Reject(format!(
                "a list takes one pass, which binds {direct_buffers} storage buffers; the device \
                 binds {}",
                caps.max_storage_buffers
            )));
        }
        if grouping.traits().listed && two_passes {
            return Err(Reject(format!(
                "elements of C in {dtype} are not stored one by one here, those in f32 are"
            )));
        }
        let store =
            direct.or_else(by_words).ok_or_else(|| Reject(format!("no store for {dtype}")))?;

        let schedules = grouping.operands().count() as u64;
        let mut finish = ends(problem) + 1 + schedules;
        // The residual waits for a pass of its own if the device does not bind all buffers at once.
        let two_finishes = two_passes
            && bias.is_some()
            && residual.is_some()
            && kit.keep.is_some()
            && finish > caps.max_storage_buffers.into();
        finish -= u64::from(two_finishes);
        let mainloop = if two_passes {
            (fetches.storage_buffers(problem) + 1 + schedules).max(finish)
        } else {
            direct_buffers
        };
        let storage_buffers = mainloop.max(fetches.packing_buffers(problem));
        let all =
            tiles_m.saturating_mul(tiles_n).saturating_mul(problem.batch).saturating_mul(splits);
        let workgroups = match sizes.filter(|_| schedule.spares_idle) {
            Some(sizes) => sizes.tiles(problem.batch, tile.map(u64::from)).min(all),
            None => all,
        };
        Ok(Setup {
            problem: *problem,
            kit,
            windows,
            workgroups,
            idle,
            strides: strides && schedule.strides,
            list_table,
            storage_buffers,
            scratch_bytes: if two_passes { scratch_bytes(problem, scratch_splits) } else { 0 },
            two_passes,
            two_finishes,
            by_tiles,
            tiles_m,
            tiles_n,
            splits,
            k: match grouping.traits().whole_k {
                true => multiplied.k.next_multiple_of(variant.bk.into()),
                // Zeros beyond K would count in the last range.
                false => problem.k,
            },
            k_split,
            step: index,
            scratch_splits,
            schedule,
            fetches,
            bias,
            residual,
            store,
        })
    }
}

impl Setup {
    /// How many passes finish the sums.
    pub(super) fn finishing_passes(&self) -> u64 {
        u64::from(self.two_passes) + u64::from(self.two_finishes)
    }

    /// Estimated seconds of these passes: partial sums are written and read again.
    pub(super) fn finishing_seconds(&self, caps: &Caps) -> f64 {
        let rates = caps.rates();
        let pass = 2.0 * self.scratch_bytes as f64 / rates.bandwidth + rates.dispatch;
        self.finishing_passes() as f64 * pass
    }
}

/// Storage buffers that the epilogue binds, C among them.
fn ends(problem: &Problem) -> u64 {
    let epilogue = &problem.epilogue;
    1 + u64::from(epilogue.bias.is_some()) + u64::from(epilogue.residual.is_some())
}

/// Storage buffers of a mainloop that stores C itself.
pub(super) fn direct_buffers(fetches: &Fetches, problem: &Problem) -> u64 {
    let schedule = problem.grouping.operands().count() as u64;
    fetches.storage_buffers(problem) + ends(problem) + schedule
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
        && (!store.whole || problem.n.is_multiple_of(store.vector))
}
