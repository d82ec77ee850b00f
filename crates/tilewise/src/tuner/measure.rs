//! Times the kernels that serve a problem, on operands of its own.

use super::report::{HOPELESS_ESTIMATE, Trial};
use crate::context::Context;
use crate::context::choosing::named;
use crate::gpu::{Compiled, Factors};
use crate::recorder::{Recorder, Way};
use crate::tensor::storage::{Bound, Buffers, Storage, on_device};
use crate::timing;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Binding, Forced, Plan};
use tilewise_core::quant::Quantized;
use tilewise_core::{DType, DeviceClass, Error, Format, Operand, Problem, Result, convert};

/// A kernel whose first time is more than this many times the best is not timed again.
const HOPELESS: f64 = 3.0;
/// Timed rounds; each times every kernel once, so that a clock that drifts is fair to all.
const ROUNDS: usize = 7;
/// Seconds of GPU time in one sample, far above the resolution of timestamps.
const SAMPLE: f64 = 5e-3;
/// Products in one sample at most.
const MOST_REPETITIONS: f64 = 200.0;
/// Seconds of GPU time before the first sample. An idle chip lowers its clock, and some take long
/// to raise it. A software adapter needs no warm-up.
const WARM_UP: f64 = 0.5;
/// Operands are rotated among sets that together exceed any cache by far.
const ROTATED_BYTES: f64 = 256e6;
const MOST_SETS: usize = 16;
/// Offsets are kept modulo this and the block of a format.
const ALIGNMENT: u64 = 64;
/// Random elements of an operand, which are repeated to fill it.
const SAMPLE_ELEMENTS: usize = 1 << 18;

/// The results.
pub(super) struct Measured {
    pub(super) winner: Option<Forced>,
    pub(super) trials: Vec<Trial>,
    pub(super) untried: usize,
}

/// A way to compute the problem: the planner's, or a forced kernel.
struct Contender {
    forced: Option<Forced>,
    plan: Plan,
    compiled: Compiled,
    repetitions: usize,
    samples: Vec<f64>,
}

impl Contender {
    /// Plans and compiles a contender.
    fn new(context: &Context, problem: &Problem, forced: Option<Forced>) -> Result<Self> {
        let (plan, compiled) = context
            .ready(context.gpu_backend()?, || context.plan_with(problem, forced.as_ref()))?;
        Ok(Contender { forced, plan, compiled, repetitions: 1, samples: Vec::new() })
    }

    fn median(&self) -> f64 {
        let mut samples = self.samples.clone();
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    }

    fn fastest(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn trial(&self) -> Trial {
        let name = match &self.forced {
            Some(forced) => forced.to_string(),
            None => {
                let names: Vec<_> = self
                    .plan
                    .choice
                    .iter()
                    .chain(&self.plan.edges)
                    .map(ToString::to_string)
                    .collect();
                format!("planner: {}", names.join(" and "))
            }
        };
        Trial { name, seconds: self.median(), samples: self.samples.len() }
    }
}

/// Times the planner's choice and the kernels that might be faster; a problem without work is not
/// timed.
pub(super) async fn measure(context: &Context, problem: &Problem) -> Result<Measured> {
    let problem = compact(problem);
    let own = Contender::new(context, &problem, None)?;
    if own.plan.choice.is_none() {
        return Ok(Measured { winner: None, trials: Vec::new(), untried: 0 });
    }
    let mut contenders = vec![own];
    let (mut limit, mut untried) = (f64::INFINITY, 0);
    for choice in context.choices(&problem)? {
        if choice.cost > limit {
            untried += 1;
            continue;
        }
        let contender = match Contender::new(context, &problem, Some(named(&choice))) {
            // A kernel in MSL that the device refuses is no choice.
            Err(Error::DeviceLimit(why)) => {
                log::debug!("{choice} is not tried: {why}");
                continue;
            }
            contender => contender?,
        };
        limit = limit.min(HOPELESS_ESTIMATE * choice.cost);
        // The planner's own choice is among the choices, unless it peels edges off.
        if contenders.iter().all(|other| other.plan.passes != contender.plan.passes) {
            contenders.push(contender);
        }
    }
    let trials = time_all(context, &problem, &mut contenders).await?;
    let best = contenders.iter().min_by(|a, b| a.median().total_cmp(&b.median()));
    // The planner chooses for each problem of the class anew, so a winner must be faster by more
    // than the noise.
    let faster = best.filter(|best| best.median() < contenders[0].fastest());
    Ok(Measured { winner: faster.and_then(|best| best.forced.clone()), trials, untried })
}

async fn time_all(
    context: &Context,
    problem: &Problem,
    contenders: &mut [Contender],
) -> Result<Vec<Trial>> {
    let sets = operands(context, problem, contenders)?;
    let factors = Factors::of(&problem.epilogue);
    let time = async |contender: &Contender, repetitions: usize| {
        let Contender { plan, compiled, .. } = contender;
        let record = |to: &mut Recorder<'_>| {
            let Way::Record(gpu, target) = to.way(context)? else { return Ok(()) };
            let mut sets = sets.iter().cycle().take(repetitions);
            sets.try_for_each(|set| gpu.record(target, compiled, factors, on_device(&bound(set))))
        };
        let timing = timing::time_long(context, plan.seconds(), record);
        Ok::<f64, Error>(timing.await?.seconds / repetitions as f64)
    };
    let warm = &contenders[0];
    let once = time(warm, 1).await?;
    let runs = match context.0.caps.class {
        DeviceClass::Cpu => 0.0,
        _ => WARM_UP / (repetitions(once) as f64 * once.max(SAMPLE / MOST_REPETITIONS)),
    };
    for _ in 0..runs as usize {
        time(warm, repetitions(once)).await?;
    }
    for contender in &mut *contenders {
        contender.repetitions = repetitions(time(contender, 1).await?);
        contender.samples.push(time(contender, contender.repetitions).await?);
    }
    let best = contenders.iter().map(Contender::fastest).fold(f64::INFINITY, f64::min);
    for _ in 1..ROUNDS {
        for contender in
            contenders.iter_mut().filter(|contender| contender.samples[0] <= HOPELESS * best)
        {
            contender.samples.push(time(contender, contender.repetitions).await?);
        }
    }
    let mut trials: Vec<_> = contenders.iter().map(Contender::trial).collect();
    trials.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(trials)
}

/// How many products fill a sample, given the seconds of one.
fn repetitions(once: f64) -> usize {
    (SAMPLE / once).clamp(1.0, MOST_REPETITIONS) as usize
}

/// The problem with its operands at the start of their storage, and with factors that keep the
/// output finite when it is computed again and again.
fn compact(problem: &Problem) -> Problem {
    let mut own = *problem;
    let move_up = |operand: &mut Operand| {
        let before =
            operand.offset - operand.offset % operand.format.block().next_multiple_of(ALIGNMENT);
        operand.offset -= before;
        operand.len = operand.len.saturating_sub(before);
    };
    for operand in [&mut own.a, &mut own.b, &mut own.c] {
        move_up(operand);
    }
    let epilogue = &mut own.epilogue;
    if let Some(bias) = &mut epilogue.bias {
        move_up(&mut bias.operand);
    }
    if let Some(residual) = &mut epilogue.residual {
        move_up(residual);
    }
    epilogue.alpha = 1.0;
    epilogue.beta = if epilogue.beta == 0.0 { 0.0 } else { 0.5 };
    own
}

/// Storage for each operand.
type Set = Vec<(Role, Storage)>;

fn bound(set: &Set) -> Buffers<'_> {
    let mut bound = Buffers::default();
    for (role, storage) in set {
        bound[*role as usize] = Some(Bound::whole(storage));
    }
    bound
}

/// Sets of operands as large as the plans bind them.
fn operands(context: &Context, problem: &Problem, contenders: &[Contender]) -> Result<Vec<Set>> {
    let mut sizes: Vec<(Role, u64)> = Vec::new();
    let passes = contenders.iter().flat_map(|contender| &contender.plan.passes);
    let own = |binding: &&Binding| !matches!(binding.from, Role::Scratch | Role::Packed);
    for binding in passes.flat_map(|pass| &pass.bindings).filter(own) {
        let end = binding.start + binding.bytes;
        match sizes.iter_mut().find(|(role, _)| *role == binding.from) {
            Some((_, bytes)) => *bytes = end.max(*bytes),
            None => sizes.push((binding.from, end)),
        }
    }
    let total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    let sets = match context.0.caps.class {
        DeviceClass::Cpu => 1,
        _ => ((ROTATED_BYTES / total as f64) as usize).clamp(1, MOST_SETS),
    };
    let set = |_| {
        let stored = |&(role, bytes): &(Role, u64)| {
            let block = contents(problem, role);
            // The ends of groups are not repeated.
            let bytes = if role == Role::Offsets { block.len() as u64 } else { bytes };
            Ok((role, Storage::repeating(context, &block, bytes)?))
        };
        sizes.iter().map(stored).collect()
    };
    (0..sets).map(set).collect()
}

/// Random contents of an operand, to be repeated. They are not all zeros, which would take less
/// power, and nothing overflows. Groups are of equal size.
fn contents(problem: &Problem, role: Role) -> Vec<u8> {
    let random = |format: Format| {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut word = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        };
        // One block more than a power of two makes rows differ when these contents are repeated.
        let blocks = SAMPLE_ELEMENTS / format.block() as usize + 1;
        match format {
            Format::Dense(dtype) => {
                let values = (0..blocks).map(|_| (word() >> 8) as f32 / (1 << 23) as f32 - 1.0);
                convert::encode(dtype, &values.collect::<Vec<_>>())
            }
            Format::Quantized(format) => {
                let made = Quantized::sample(format, blocks, format.block() as usize, word);
                made.expect("rows are whole blocks").planes()[role.plane()].clone()
            }
        }
    };
    let epilogue = &problem.epilogue;
    match role {
        Role::A => random(problem.a.format),
        role if Role::B_PLANES.contains(&role) => random(problem.b.format),
        Role::C => random(problem.c.format),
        Role::Bias => epilogue.bias.map_or(Vec::new(), |bias| random(bias.operand.format)),
        Role::Residual => epilogue.residual.map_or(Vec::new(), |residual| random(residual.format)),
        Role::RowIndex => {
            // These indices scatter over the matrix as the rows of tokens do; 7919 is prime.
            let rows = problem.stored_rows().max(1);
            let indices = (0..problem.indices().unwrap_or(0)).map(|i| (i * 7919 % rows) as u32);
            indices.flat_map(u32::to_le_bytes).collect()
        }
        Role::Offsets => {
            let ends = problem.grouping.even_ends(problem.m, problem.k);
            // All words that are bound are filled; nobody reads the words before the first end.
            let bound: u64 = problem.grouping.operands().map(|(_, words)| words).sum();
            let before = vec![0; (bound as usize).saturating_sub(ends.len())];
            before.into_iter().chain(ends).flat_map(u32::to_le_bytes).collect()
        }
        _ => random(Format::Dense(DType::F32)),
    }
}
