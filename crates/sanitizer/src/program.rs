//! The compiled form: scalar operations on registers, in structured blocks.
//!
//! A register is a plane: one 32-bit value per invocation of the workgroup. Vectors, matrices,
//! arrays and structs are runs of registers; 64-bit scalars are two, low word first. f16 values are
//! their 16 bits, i16 and u16 are extended to 32, booleans are 0 or 1. An operation works on the
//! whole plane at once, which is what makes interpretation cheap: its decoding is paid once per
//! workgroup.

mod functions;

pub(crate) use functions::{Binary, Packing, Ternary, Ty, Unary};

/// A plane of the register file.
pub(crate) type Reg = u32;

/// Index into [`Program::sites`].
pub(crate) type SiteId = u32;

/// Index into [`Program::globals`].
pub(crate) type GlobalId = u32;

/// How many elements an index may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Len {
    Fixed(u32),
    /// Length of the array without a size at the end of a storage variable: (bytes bound - offset)
    /// / stride.
    Runtime {
        global: GlobalId,
        offset: u32,
        stride: u32,
    },
}

/// An index that an access rests on, kept to explain it when it fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    pub(crate) index: Reg,
    pub(crate) signed: bool,
    pub(crate) len: Len,
    /// Name of the indexed variable, such as `tile` or `params.rows`.
    pub(crate) what: String,
}

/// A place in memory: `offset` bytes, plus those in the register `dynamic`. [`OUTSIDE`] in that
/// register marks an index out of bounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pointer {
    pub(crate) global: GlobalId,
    pub(crate) offset: u32,
    pub(crate) dynamic: Option<Reg>,
    /// Range in [`Program::checks`].
    pub(crate) checks: (u32, u32),
}

/// The dynamic offset behind an index out of bounds.
pub(crate) const OUTSIDE: u32 = u32::MAX;

/// Register numbers with this bit are constants.
pub(crate) const CONSTANT: Reg = 1 << 31;

/// A place in the invocation's own variables: plane `plane`, plus the number in `dynamic`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    pub(crate) plane: u32,
    pub(crate) dynamic: Option<Reg>,
    pub(crate) checks: (u32, u32),
    /// Index into [`Program::locals`].
    pub(crate) local: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicFunction {
    Combine(Binary),
    Exchange,
    CompareExchange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    Reduce,
    InclusiveScan,
    ExclusiveScan,
}

/// The lane of the subgroup from which a value is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    First,
    At(Reg),
    Down(Reg),
    Up(Reg),
    Xor(Reg),
    /// The lane `.0` of each group of four.
    Quad(Reg),
    /// The lane in the group of four whose number differs from the own one in these bits.
    QuadSwap(u32),
}

/// A square or oblong matrix held by a subgroup: element `e` of `rows * columns`, row-major, is in
/// lane `e % size`, register `e / size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoopShape {
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) ty: Ty,
}

/// One operation, on every invocation at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Unary {
        f: Unary,
        ty: Ty,
        dst: Reg,
        a: Reg,
    },
    Binary {
        f: Binary,
        ty: Ty,
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Ternary {
        f: Ternary,
        ty: Ty,
        dst: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    InsertBits {
        ty: Ty,
        dst: Reg,
        x: Reg,
        new: Reg,
        offset: Reg,
        count: Reg,
    },
    Convert {
        from: Ty,
        to: Ty,
        dst: Reg,
        a: Reg,
    },
    Pack {
        f: Packing,
        dst: Box<[Reg]>,
        src: Box<[Reg]>,
    },
    Copy {
        dst: Reg,
        src: Reg,
    },
    /// dst = base + index * stride, or [`OUTSIDE`].
    Index {
        dst: Reg,
        base: Option<Reg>,
        index: Reg,
        signed: bool,
        len: Len,
        stride: u32,
    },
    /// dst = sources[at], each lane by its own `at`; if that is [`OUTSIDE`], a finding and 0.
    Gather {
        dst: Reg,
        sources: Box<[Reg]>,
        at: Reg,
        checks: (u32, u32),
    },
    LoadLocal {
        dst: Reg,
        slot: Slot,
        planes: u32,
    },
    StoreLocal {
        src: Box<[Reg]>,
        slot: Slot,
    },
    /// The variable starts anew: with its initial value if it has one (a `StoreLocal` follows), or
    /// undefined.
    Declare {
        local: u32,
    },
    /// Loads `count` consecutive scalars in one access.
    Load {
        dst: Reg,
        pointer: Pointer,
        ty: Ty,
        count: u32,
    },
    Store {
        src: Box<[Reg]>,
        pointer: Pointer,
        ty: Ty,
    },
    /// An atomic load. Other atomic operations than loads and stores are `Atomic`.
    AtomicLoad {
        dst: Reg,
        pointer: Pointer,
        ty: Ty,
    },
    AtomicStore {
        src: Reg,
        pointer: Pointer,
        ty: Ty,
    },
    /// `dst` takes the old value, `exchanged` whether the comparison held.
    Atomic {
        f: AtomicFunction,
        ty: Ty,
        dst: Option<Reg>,
        pointer: Pointer,
        value: Reg,
        compare: Option<Reg>,
        exchanged: Option<Reg>,
    },
    ArrayLength {
        dst: Reg,
        len: Len,
    },
    Barrier {
        flags: naga::Barrier,
        uniform_load: bool,
    },
    Ballot {
        dst: [Reg; 4],
        predicate: Option<Reg>,
    },
    /// Checks that the pointer of a `workgroupUniformLoad` is equal in all invocations.
    Uniform {
        reg: Reg,
    },
    /// Whether all, or any, of the booleans are true.
    Vote {
        all: bool,
        dst: Reg,
        src: Reg,
    },
    Collective {
        f: Binary,
        ty: Ty,
        kind: Collective,
        dst: Reg,
        src: Reg,
    },
    Shuffle {
        lane: Lane,
        dst: Box<[Reg]>,
        src: Box<[Reg]>,
    },
    CoopLoad {
        dst: Reg,
        shape: CoopShape,
        pointer: Pointer,
        stride: Reg,
        row_major: bool,
        step: u32,
    },
    CoopStore {
        src: Box<[Reg]>,
        shape: CoopShape,
        pointer: Pointer,
        stride: Reg,
        row_major: bool,
        step: u32,
    },
    /// d = a · b + c.
    CoopMultiplyAdd {
        dst: Reg,
        a: Box<[Reg]>,
        b: Box<[Reg]>,
        c: Box<[Reg]>,
        a_shape: CoopShape,
        b_shape: CoopShape,
        c_shape: CoopShape,
    },
}

/// An operation, and the place in the source from which it comes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    pub(crate) site: SiteId,
}

/// Structured control flow.
#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    /// Instructions; `arithmetic` is the number of scalar operations of arithmetic in them.
    Code {
        insts: Vec<Inst>,
        arithmetic: u32,
    },
    If {
        condition: Reg,
        accept: Vec<Node>,
        reject: Vec<Node>,
        site: SiteId,
    },
    Loop {
        body: Vec<Node>,
        continuing: Vec<Node>,
        break_if: Option<Reg>,
        site: SiteId,
    },
    Switch {
        selector: Reg,
        cases: Vec<Case>,
        site: SiteId,
    },
    Break,
    Continue,
    Return {
        site: SiteId,
    },
    /// An inlined call; returns inside end here.
    Call {
        body: Vec<Node>,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) struct Case {
    /// Empty for `default`.
    pub(crate) values: Vec<u32>,
    pub(crate) default: bool,
    pub(crate) body: Vec<Node>,
    pub(crate) fall_through: bool,
}

/// A part of the source, and the calls it was inlined through.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    pub(crate) span: Option<(u32, u32)>,
    pub(crate) caller: Option<SiteId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Workgroup,
    Storage,
    /// Uniform buffers and immediates.
    Uniform,
}

/// The source of a global variable's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Workgroup,
    Binding(u32, u32),
    Immediates,
}

/// A variable that lies in memory.
#[derive(Debug, PartialEq)]
pub(crate) struct Global {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) source: Source,
    pub(crate) ty: naga::Handle<naga::Type>,
    /// Bytes of the variable. An array without a size at its end counts one element.
    pub(crate) bytes: u32,
    pub(crate) writable: bool,
    /// log2 of the bytes of the smallest location: 2, or 1 if 16-bit scalars occur, or 0 if
    /// booleans do.
    pub(crate) granule: u32,
}

/// An invocation's own variable: of a function, private, or the result of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Local {
    pub(crate) name: String,
    pub(crate) plane: u32,
    pub(crate) planes: u32,
    /// Whether the variable is undefined until it is written: reads are checked then.
    pub(crate) tracked: bool,
    pub(crate) ty: Option<naga::Handle<naga::Type>>,
    pub(crate) declared: SiteId,
}

/// Registers that the machine fills in before the entry point starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    GlobalInvocationId(u32),
    LocalInvocationId(u32),
    LocalInvocationIndex,
    WorkgroupId(u32),
    NumWorkgroups(u32),
    NumSubgroups,
    SubgroupId,
    SubgroupSize,
    SubgroupInvocationId,
}

/// A compiled entry point.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) module: naga::Module,
    pub(crate) workgroup_size: [u32; 3],
    pub(crate) body: Vec<Node>,
    pub(crate) registers: u32,
    pub(crate) planes: u32,
    pub(crate) constants: Vec<u32>,
    pub(crate) built_ins: Vec<(Reg, BuiltIn)>,
    pub(crate) globals: Vec<Global>,
    pub(crate) locals: Vec<Local>,
    pub(crate) checks: Vec<Check>,
    pub(crate) sites: Vec<Site>,
}

impl Program {
    /// Whether runs of both do equal steps: they differ at most in places of the source.
    pub(crate) fn is_same(&self, other: &Program) -> bool {
        let callers = |program: &Program| {
            program.sites.iter().map(|site| (site.span.is_some(), site.caller)).collect::<Vec<_>>()
        };
        self.workgroup_size == other.workgroup_size
            && (self.registers, self.planes) == (other.registers, other.planes)
            && self.constants == other.constants
            && self.built_ins == other.built_ins
            && self.globals == other.globals
            && self.locals == other.locals
            && self.checks == other.checks
            && callers(self) == callers(other)
            && self.body == other.body
    }
}
