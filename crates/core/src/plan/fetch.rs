//! How a mainloop fetches its operands: which loader fits the storage, and whether it must be
//! packed first.

use super::limits::{binding_limit, scratch_limit};
use super::packing::{COPY_STEP, Packing};
use super::side::Side;
use crate::caps::Caps;
use crate::cost;
use crate::kernel::{Access, Kit, Load, OperandDef, Reject, Unit, Variant, Words};
use crate::problem::{Copied, DType, Format, Operand, Problem};
use crate::role::{Role, Roles};

/// How a mainloop fetches an operand, packed or from where it lies.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    pub(super) loader: &'static OperandDef,
    pub(super) packing: Option<Packing>,
}

/// How A and B are fetched.
#[derive(Clone, Copy, Default)]
pub(super) struct Fetches {
    /// None if K = 0: there is no element to bind.
    pub(super) a: Option<Fetch>,
    pub(super) b: Option<Fetch>,
}

impl Fetches {
    /// The fetches for K cut into `splits`.
    pub(super) fn new(
        kit: &'static Kit,
        caps: &Caps,
        variant: &Variant,
        problem: &Problem,
        splits: u64,
    ) -> Result<Self, Reject> {
        if problem.k == 0 {
            return match variant.access {
                Access::Codes { .. } => Err(Reject("K is 0: B has no codes to read".into())),
                _ => Ok(Fetches::default()),
            };
        }
        // The steps at which vectors of an operand start. If its storage runs along the tile, they
        // must not straddle the tile's start. If it runs along K, they must not straddle the start
        // of a range of K, except on matrix units.
        let row_step = if problem.grouping.traits().shares_rows { 1 } else { variant.bm.into() };
        let anywhere = !problem.grouping.traits().whole_k && variant.unit().is_none();
        let k_step = u64::from(anywhere);
        let a_step = if problem.a.transposed { row_step } else { k_step };
        let b_step = if problem.b.transposed { k_step } else { variant.bn.into() };
        let [a_side, b_side] = Side::both(problem);
        let request = Request { kit, caps, variant, side: &a_side, step: a_step };
        let a = request.fetch(problem, splits, 0)?;
        let request = Request { side: &b_side, step: b_step, ..request };
        let b = request.fetch(problem, splits, a.packed_end())?;
        Ok(Fetches { a: Some(a), b: Some(b) })
    }

    /// A problem as the mainloop reads it: weights that were packed beforehand are elements of
    /// their copy.
    pub(super) fn read(&self, problem: &Problem) -> Problem {
        let copied = self
            .b
            .and_then(|fetch| fetch.packing)
            .is_some_and(|packing| packing.from != Role::Packed);
        if copied { of_copy(problem) } else { *problem }
    }

    /// The copies of A and B that the mainloop reads.
    fn copies(&self) -> impl Iterator<Item = (Role, Packing)> {
        let sides = [(Role::A, self.a), (Role::B, self.b)].into_iter();
        sides.filter_map(|(role, fetch)| Some((role, fetch?.packing?)))
    }

    /// The copies that a pass makes.
    pub(super) fn packed(&self) -> impl Iterator<Item = (Role, Packing)> {
        self.copies().filter(|(_, packing)| packing.from == Role::Packed)
    }

    /// Estimated seconds of packing.
    pub(super) fn packing_seconds(&self, caps: &Caps) -> f64 {
        self.copies().map(|(_, packing)| packing.seconds(caps)).sum()
    }

    /// The roles that a mainloop binds of A and B.
    pub(super) fn roles(&self, problem: &Problem) -> Roles {
        let indices = problem.gathered.map(|_| Role::RowIndex);
        let powers = self.copies().filter(|(_, packing)| packing.powers.is_some());
        let sides = [(Role::A, self.a, problem.a), (Role::B, self.b, problem.b)].into_iter();
        let planes = sides.flat_map(|(role, fetch, operand)| {
            let planes = fetch.map_or(0, |fetch| match fetch.packing {
                Some(_) => 1,
                None => operand.format.planes().len(),
            });
            role.planes().take(planes)
        });
        planes.chain(powers.map(|(role, _)| role.powers())).chain(indices).collect()
    }

    /// Whether A or B has powers.
    pub(super) fn divided(&self) -> bool {
        self.copies().any(|(_, packing)| packing.powers.is_some())
    }

    /// The operand whose packing asks for too much, the bytes that it asks for, and the bytes
    /// allowed: more than a binding holds, or, of two, more than the buffer for both holds. Then it
    /// is the larger.
    pub(super) fn unbound(&self, caps: &Caps) -> Option<(Role, u64, u64)> {
        let limit = scratch_limit(caps).0;
        let alone = self.packed().find(|(_, packing)| packing.bytes > limit);
        let alone = alone.map(|(role, packing)| (role, packing.bytes, limit));
        let most = caps.max_buffer_bytes.min(caps.max_scratch_bytes);
        let total = self.packed_bytes();
        let larger = || self.packed().max_by_key(|(_, own)| own.bytes).filter(|_| total > most);
        alone.or_else(|| larger().map(|(role, _)| (role, total, most)))
    }

    /// Bytes of the memory for packed operands.
    pub(super) fn packed_bytes(&self) -> u64 {
        [self.a, self.b].into_iter().flatten().map(|fetch| fetch.packed_end()).max().unwrap_or(0)
    }
}

impl Fetch {
    /// Operations in f32 that take as long as decoding an element for this variant.
    pub(super) fn decode(&self, variant: &Variant) -> f64 {
        match (self.packing, variant.unit()) {
            (Some(_), _) => 0.0,
            (None, Some(_)) => self.loader.decode_to_panel,
            (None, None) => self.loader.decode,
        }
    }

    fn packed_end(&self) -> u64 {
        self.packing.map_or(0, |packing| packing.end())
    }
}

/// Whether vectors of `vector` elements fit the operand, and `step`: the distance of tiles along
/// its storage.
pub(super) fn aligned(side: &Side, step: u64, vector: u64) -> bool {
    let Side { operand, extent, k, along_k, .. } = *side;
    let numbers = [operand.offset, operand.ld, if along_k { k } else { extent }, step];
    numbers.iter().chain(&operand.entry_strides()).all(|number| number.is_multiple_of(vector))
}

/// The problem with the elements of the weights' copy, which is read instead.
fn of_copy(problem: &Problem) -> Problem {
    match problem.b.format {
        Format::Dense(_) => *problem,
        Format::Quantized(_) => {
            Problem { b: Operand { format: Format::Dense(DType::F16), ..problem.b }, ..*problem }
        }
    }
}

/// Whether the device binds too few storage buffers for a mainloop that reads weights as they lie,
/// beside A, the sums and what the schedule reads.
pub(super) fn decoded(problem: &Problem, caps: &Caps) -> bool {
    let others = 2 + problem.grouping.operands().count();
    let Format::Quantized(_) = problem.b.format else { return false };
    problem.b.format.planes().len() + others > caps.max_storage_buffers as usize
}

/// An operand that a mainloop asks for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) kit: &'static Kit,
    pub(super) caps: &'a Caps,
    pub(super) variant: &'a Variant,
    pub(super) side: &'a Side,
    /// The distance of tiles along the storage.
    pub(super) step: u64,
}

impl Request<'_> {
    /// Fetches the operand of a problem whose K is cut into `splits`. If a pass packs it, the copy
    /// lies behind `start` bytes of others.
    fn fetch(&self, problem: &Problem, splits: u64, start: u64) -> Result<Fetch, Reject> {
        match self.variant.access {
            Access::Words(words) => self.for_unit(&words, problem, splits, start),
            Access::Codes { .. } => self.for_codes(),
            _ if self.side.role == Role::B && decoded(problem, self.caps) => {
                self.through_f32(start)
            }
            _ => self.unpacked(),
        }
    }

    /// Fetches the operand from where it lies.
    fn unpacked(&self) -> Result<Fetch, Reject> {
        let fits =
            |o: &OperandDef| self.serves(o) && self.aligned(o) && (self.side.along_k || !o.along_k);
        Ok(Fetch { loader: self.find(fits)?, packing: None })
    }

    /// Fetches the operand for a mainloop that reads B as codes, and A beside them.
    fn for_codes(&self) -> Result<Fetch, Reject> {
        let Side { name, role, operand, along_k, .. } = *self.side;
        self.find(|o| self.serves(o)).map_err(|own| match role {
            Role::B if self.variant.multiplies_bytes() => {
                Reject(format!("no loader takes {} as bytes", operand.format))
            }
            Role::B => Reject(format!("no loader takes {} as codes", operand.format)),
            _ => own,
        })?;
        if !along_k {
            return Err(Reject(format!("{name} is not stored along K")));
        }
        self.unpacked()
    }

    /// Fetches weights through a copy in f32, which takes one binding.
    fn through_f32(&self, start: u64) -> Result<Fetch, Reject> {
        let copy = Operand { format: Format::Dense(DType::F32), ..self.side.operand };
        let loader = find(self.kit, self.caps, &copy, |o| {
            o.provides(self.variant.access)
                && o.loads.contains(&Load::Words)
                && self.step.is_multiple_of(o.vector)
        })?;
        let packer =
            self.find(|o| o.loads.contains(&Load::Fours) && aligned(self.side, 0, o.vector))?;
        let packing = Packing::new(self.side, packer, None, loader.vector, loader.vector, start)?;
        Ok(Fetch { loader, packing: Some(packing) })
    }

    /// Fetches the operand for a matrix unit: from where it lies, from the copy that was made
    /// beforehand, or from one that a pass packs, whichever is possible and takes less time.
    fn for_unit(
        &self,
        words: &Words,
        problem: &Problem,
        splits: u64,
        start: u64,
    ) -> Result<Fetch, Reject> {
        let Request { caps, variant, side, .. } = *self;
        let unit = words.unit;
        let loader = self.loader_for_unit(words)?;
        let in_place = Fetch { loader, packing: None };
        // A range of K ends anywhere, so only vectors must be whole.
        let bk = match side.in_ranges {
            true if side.along_k => loader.vector,
            true => 1,
            false => variant.bk.into(),
        };
        let fits =
            !unit.scales(side.operand.format) && self.aligned(loader) && side.k.is_multiple_of(bk);
        let copy = side.copy.filter(|_| unit.matrix.operands == DType::F16);
        if fits && loader.provides(variant.access) {
            return Ok(copy.and_then(|copy| self.in_slabs(copy)).unwrap_or(in_place));
        }
        self.may_pack(unit, loader)?;
        if let Some(copy) = copy {
            let copied = self.copied(copy)?;
            // Codes have fewer bytes, but must be decoded.
            let seconds =
                |problem: &Problem, decode| cost::seconds(problem, caps, variant, splits, decode);
            let reads_codes =
                fits && seconds(problem, loader.decode_to_panel) <= seconds(&of_copy(problem), 0.0);
            return Ok(if reads_codes { in_place } else { copied });
        }
        let (loader_of_packed, packing) = match self.packing(bk, start) {
            // An operand is not packed if its copy has more elements than can be addressed.
            Err(_) if fits => return Ok(in_place),
            packed => packed?,
        };
        // Each row of tiles decodes weights anew.
        let decoding = cost::decoding(problem, caps, variant, loader.decode_to_panel);
        if fits && (decoding <= packing.seconds(caps) || packing.bytes > binding_limit(caps).0) {
            return Ok(in_place);
        }
        Ok(Fetch { loader: loader_of_packed, packing: Some(packing) })
    }

    /// The loader by which a matrix unit takes the operand from where it lies, if that fits.
    fn loader_for_unit(&self, words: &Words) -> Result<&'static OperandDef, Reject> {
        let Request { variant, side, .. } = *self;
        let tile = if side.role == Role::A { variant.bm } else { variant.bn };
        // Blocks are read whole, as codes, if each invocation has as many of them as any other.
        let as_codes = |o: &OperandDef| {
            let blocks = u64::from(tile * words.depth) / o.vector;
            let divided = u64::from(words.depth).is_multiple_of(o.vector)
                && blocks.is_multiple_of(variant.threads.into());
            side.along_k && divided && self.aligned(o) && o.loads.contains(&Load::Codes)
        };
        self.find(as_codes).or_else(|_| self.find(|o| self.serves(o)))
    }

    /// Refuses an operand that must be packed and cannot be.
    fn may_pack(&self, unit: &Unit, loader: &OperandDef) -> Result<(), Reject> {
        let Side { name, operand, along_k, gathered, in_ranges, listed, .. } = *self.side;
        if listed {
            return Err(Reject(format!(
                "{name} is not aligned: its elements, and all places and row strides of the list \
                 in it, must be multiples of {}",
                loader.vector
            )));
        }
        if gathered {
            let why = "rows by index are read from where they lie, and not packed";
            return Err(Reject(why.into()));
        }
        if unit.scales(operand.format) && along_k && in_ranges {
            return Err(Reject(format!(
                "ranges of K share vectors of {name}, and are divided by powers of two"
            )));
        }
        Ok(())
    }

    /// Fetches the operand from the copy that was made beforehand.
    fn copied(&self, copy: Copied) -> Result<Fetch, Reject> {
        let whole = self.side.whole(copy);
        let (loader, packing) = Request { side: &whole, ..*self }.packing(COPY_STEP, 0)?;
        Ok(Fetch { loader, packing: Some(packing.made_before(self.side.role)) })
    }

    /// The copy of an operand that needs none, if it is in slabs, which are read faster.
    fn in_slabs(&self, copy: Copied) -> Option<Fetch> {
        let Side { gathered, in_ranges, listed, .. } = *self.side;
        let copied = self.copied(copy).ok().filter(|_| !(gathered || in_ranges || listed))?;
        copied.packing?.slab().map(|_| copied)
    }

    /// How the operand is packed for a matrix unit, in whole steps of `bk` along K behind `start`
    /// bytes of others, and the loader of the packed elements.
    pub(super) fn packing(
        &self,
        bk: u64,
        start: u64,
    ) -> Result<(&'static OperandDef, Packing), Reject> {
        let Request { kit, caps, variant, side, step } = *self;
        let Access::Words(Words { unit, .. }) = variant.access else {
            return Err(Reject("it takes operands as they lie".into()));
        };
        let (own, format) = (unit.matrix.operands, side.operand.format);
        // Packed elements have the unit's type.
        let packed = Operand { format: Format::Dense(own), ..side.operand };
        let words = find(kit, caps, &packed, |o| o.provides(variant.access))?;
        if !step.is_multiple_of(words.vector) {
            return Err(Reject(format!("tiles begin anywhere along the storage of {}", side.name)));
        }
        let packs = |o: &OperandDef| match format {
            Format::Dense(dtype) if dtype == own => o.loads.contains(&Load::Packing),
            _ => self.serves(o) && aligned(side, 0, o.vector),
        };
        let packer = self.find(packs)?;
        Ok((words, Packing::new(side, packer, Some(unit), words.vector, bk, start)?))
    }

    /// Whether the mainloop can use a loader. For B as codes, only a loader of codes will do.
    fn serves(&self, loader: &OperandDef) -> bool {
        let access = self.variant.access;
        match (self.side.role, access) {
            (Role::B, Access::Codes { .. }) => loader.provides(access),
            _ => loader.serves(self.side.operand.format, access),
        }
    }

    /// Whether a loader's vectors fit the operand.
    fn aligned(&self, loader: &OperandDef) -> bool {
        aligned(self.side, self.step, loader.vector)
    }

    fn find(&self, fits: impl Fn(&OperandDef) -> bool) -> Result<&'static OperandDef, Reject> {
        find(self.kit, self.caps, &self.side.operand, fits)
    }
}

/// A loader for single elements, as epilogues want them.
pub(super) fn scalar_loader(
    kit: &'static Kit,
    caps: &Caps,
    operand: &Operand,
) -> Result<&'static OperandDef, Reject> {
    find(kit, caps, operand, |o| o.provides(Access::Elements) && o.vector == 1)
}

fn find(
    kit: &'static Kit,
    caps: &Caps,
    operand: &Operand,
    fits: impl Fn(&OperandDef) -> bool,
) -> Result<&'static OperandDef, Reject> {
    let found = kit.operands.iter().find(|o| (o.accepts)(operand.format, caps) && fits(o));
    found.ok_or_else(|| Reject(format!("no loader for {}", operand.format)))
}
