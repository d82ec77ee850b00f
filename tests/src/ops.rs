//! Cases of ready operations: their answers in f64, and ways to run them.

mod cases;
#[cfg(not(target_family = "wasm"))]
mod sanitized;

pub use cases::{FAMILIES, all, in_parts, large, small};
#[cfg(not(target_family = "wasm"))]
pub use sanitized::{Ran, units};

use half::{bf16, f16};
use std::pin::pin;
use std::task::{Poll, Waker};
use tilewise::ops::{Op, Operation};
use tilewise::{Call, Context, DType, Kernel, Result, Tensor};
use tilewise_core::convert;

/// Gives the text of a file, from its path and its own text.
pub type Text<'a> = &'a dyn Fn((&'static str, &'static str)) -> String;

/// An operation of any kind.
pub trait AnyOp {
    /// [`Op::run_into`].
    fn run_into(&self, out: &Tensor) -> Result<()>;
    /// [`Op::calls_of`].
    fn calls_of(&self, out: &Tensor, text: Text<'_>) -> Result<Vec<(Kernel, Call)>>;
}

impl<K: Operation> AnyOp for Op<K> {
    fn run_into(&self, out: &Tensor) -> Result<()> {
        Op::run_into(self, out)
    }

    fn calls_of(&self, out: &Tensor, text: Text<'_>) -> Result<Vec<(Kernel, Call)>> {
        Op::calls_of(self, out, text)
    }
}

/// One output of an operation with two: its place, and type and shape of the other output. If no
/// shape is given, both have the same.
pub struct Half<K>(pub Op<K, 2>, pub usize, pub (DType, Option<Vec<usize>>));

impl<K: Operation<2>> Half<K> {
    fn outs(&self, out: &Tensor) -> Result<[Tensor; 2]> {
        let (dtype, shape) = &self.2;
        let shape = shape.as_deref().unwrap_or(out.shape());
        let mut outs = [out.clone(), Tensor::zeros(out.context(), *dtype, shape)?];
        outs.rotate_right(self.1);
        Ok(outs)
    }
}

impl<K: Operation<2>> AnyOp for Half<K> {
    fn run_into(&self, out: &Tensor) -> Result<()> {
        self.0.run_into(self.outs(out)?.each_ref())
    }

    fn calls_of(&self, out: &Tensor, text: Text<'_>) -> Result<Vec<(Kernel, Call)>> {
        self.0.calls_of(self.outs(out)?.each_ref(), text)
    }
}

/// How a tensor lies in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// Row-major, and alone in its buffer.
    Packed,
    /// With its last two axes exchanged; a vector is one column of two.
    Transposed,
    /// Within a larger tensor.
    Within,
    /// Transposed, and within a larger tensor.
    TransposedWithin,
}

impl Lies {
    fn base(self, shape: &[usize]) -> Vec<usize> {
        let mut base = shape.to_vec();
        match (self, base.len()) {
            (Lies::Packed | Lies::Within, _) | (_, 0) => {}
            (_, 1) => base.push(2),
            (_, rank) => base.swap(rank - 2, rank - 1),
        }
        if matches!(self, Lies::Within | Lies::TransposedWithin) {
            base.iter_mut().for_each(|size| *size += 3);
        }
        base
    }

    fn view(self, base: &Tensor, rank: usize) -> Tensor {
        let mut view = base.clone();
        if matches!(self, Lies::Within | Lies::TransposedWithin) {
            let ranges: Vec<_> = base.shape().iter().map(|size| 1..size - 2).collect();
            view = view.slice(&ranges).unwrap();
        }
        match (self, rank) {
            (Lies::Packed | Lies::Within, _) | (_, 0) => view,
            (_, 1) => view.narrow(1, 0, 1).unwrap().squeeze(1).unwrap(),
            _ => view.t(),
        }
    }

    /// For each element of a view of this shape, in its order, its place in the base.
    fn places(self, shape: &[usize]) -> Vec<usize> {
        let base = self.base(shape);
        let count = base.iter().product::<usize>() as u32;
        let numbers: Vec<u32> = (0..count).collect();
        let base = Tensor::upload(&Context::cpu(), &numbers, &base).unwrap();
        let view = self.view(&base, shape.len());
        let places = now(view.read::<u32>()).unwrap();
        places.into_iter().map(|place| place as usize).collect()
    }
}

/// The output of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the CPU executor is never waited for"),
    }
}

/// A tensor of a case.
#[derive(Clone, Debug)]
pub struct Given {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its type.
    pub dtype: DType,
    /// Where it lies.
    pub lies: Lies,
    /// Its elements, row-major, as its type holds them.
    pub values: Vec<f64>,
}

impl Given {
    /// A tensor with these elements, rounded to the type.
    pub fn new(dtype: DType, lies: Lies, shape: &[usize], values: Vec<f64>) -> Self {
        assert_eq!(values.len(), shape.iter().product::<usize>());
        let values = values.into_iter().map(|value| rounded(dtype, value)).collect();
        Given { shape: shape.to_vec(), dtype, lies, values }
    }

    fn tensor(&self, context: &Context) -> Tensor {
        let base = self.lies.base(&self.shape);
        // NaN lies wherever nothing should be read.
        let mut elements = vec![f64::NAN; base.iter().product()];
        for (place, &value) in self.lies.places(&self.shape).into_iter().zip(&self.values) {
            elements[place] = value;
        }
        self.lies.view(&upload(context, self.dtype, &elements, &base), self.shape.len())
    }
}

fn upload(context: &Context, dtype: DType, elements: &[f64], shape: &[usize]) -> Tensor {
    let bytes: Vec<u8> = match dtype {
        DType::I32 => elements.iter().flat_map(|&x| (x as i32).to_le_bytes()).collect(),
        DType::U32 => elements.iter().flat_map(|&x| (x as u32).to_le_bytes()).collect(),
        float => {
            let rounded = elements.iter().map(|&x| convert::round_f64(float, x) as f32);
            convert::encode(float, &rounded.collect::<Vec<_>>())
        }
    };
    Tensor::from_bytes(context, dtype, &bytes, shape).unwrap()
}

/// A number as a type holds it.
pub fn rounded(dtype: DType, value: f64) -> f64 {
    if dtype.is_float() { convert::round_f64(dtype, value) } else { value }
}

/// The number that an operation ought to give before it is rounded to the output's type, and the
/// permitted error.
pub type Wanted = (f64, f64);

/// An operation on these tensors.
pub type Make = Box<dyn Fn(&[Tensor]) -> Box<dyn AnyOp> + Send + Sync>;

/// An operation, its operands, and the results wanted.
pub struct Case {
    /// For messages.
    pub name: String,
    /// The operands.
    pub inputs: Vec<Given>,
    /// Type, shape and place of the output.
    pub out: (DType, Vec<usize>, Lies),
    /// The operand that is also the output.
    pub in_place: Option<usize>,
    /// Whether matrix units compute it, if the context has some.
    pub on_units: bool,
    /// The operation on these tensors.
    pub op: Make,
    /// The results, row-major.
    pub wanted: Vec<Wanted>,
}

impl Case {
    /// Runs the case on a context. Compares the output with the wanted results, and checks that
    /// nothing around it has changed.
    ///
    /// # Errors
    /// The first number that is wrong, or the error of the operation.
    pub async fn outcome(&self, context: &Context) -> std::result::Result<(), String> {
        let (inputs, out, base) = self.prepared(context);
        (self.op)(&inputs).run_into(&out).map_err(|error| error.to_string())?;
        self.hold(&out).await?;
        let Some(base) = base else { return Ok(()) };
        let mut left = read(&base).await?;
        for place in self.out.2.places(&self.out.1) {
            left[place] = f64::NAN;
        }
        match left.iter().position(|value| !value.is_nan()) {
            Some(at) => Err(format!("element {at} around the output became {}", left[at])),
            None => Ok(()),
        }
    }

    /// Whether there is nothing to compute.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The kernels of the case on a context, with their calls.
    ///
    /// # Errors
    /// The errors of the operation.
    #[cfg(not(target_family = "wasm"))]
    pub fn calls(&self, context: &Context) -> Result<Vec<(Kernel, Call)>> {
        let (inputs, out, _) = self.prepared(context);
        let own = |(_, text): (&str, &str)| text.to_owned();
        (self.op)(&inputs).calls_of(&out, &own)
    }

    /// Operands, output, and the tensor around it.
    fn prepared(&self, context: &Context) -> (Vec<Tensor>, Tensor, Option<Tensor>) {
        let inputs: Vec<_> = self.inputs.iter().map(|given| given.tensor(context)).collect();
        if let Some(at) = self.in_place {
            let out = inputs[at].clone();
            return (inputs, out, None);
        }
        let (dtype, shape, lies) = &self.out;
        let base = lies.base(shape);
        let nothing = if dtype.is_float() { f64::NAN } else { 0.0 };
        let base = upload(context, *dtype, &vec![nothing; base.iter().product()], &base);
        let around = dtype.is_float().then(|| base.clone());
        (inputs, lies.view(&base, shape.len()), around)
    }

    async fn hold(&self, out: &Tensor) -> std::result::Result<(), String> {
        let got = read(out).await?;
        assert_eq!(got.len(), self.wanted.len(), "{}", self.name);
        let gl = out.context().backend_name() == "gl" && !self.out.0.is_float();
        for (at, (&got, &(value, error))) in got.iter().zip(&self.wanted).enumerate() {
            if gl && ENDS.contains(&value) {
                continue;
            }
            if !agrees(self.out.0, got, value, error) {
                return Err(format!("element {at} is {got:e}, wanted {value:e} ± {error:e}"));
            }
        }
        Ok(())
    }
}

/// The integers that floats beyond an integer's range are converted to. On OpenGL the driver
/// decides instead (docs/platforms.md).
const ENDS: [f64; 3] = [-2_147_483_648.0, 2_147_483_520.0, 4_294_967_040.0];

async fn read(tensor: &Tensor) -> std::result::Result<Vec<f64>, String> {
    let numbers = match tensor.dtype() {
        DType::I32 => {
            tensor.read::<i32>().await.map(|all| all.into_iter().map(f64::from).collect())
        }
        DType::U32 => {
            tensor.read::<u32>().await.map(|all| all.into_iter().map(f64::from).collect())
        }
        _ => tensor.read_f32().await.map(|all| all.into_iter().map(f64::from).collect()),
    };
    numbers.map_err(|error| error.to_string())
}

/// Whether a stored number is the wanted one, within its error and the rounding to its type.
pub fn agrees(dtype: DType, got: f64, value: f64, error: f64) -> bool {
    if value.is_nan() || error.is_infinite() {
        return value.is_nan() == got.is_nan() || error.is_infinite();
    }
    if value.is_infinite() || !dtype.is_float() {
        return got == value;
    }
    let (reach, least) = (value.abs() + error, min_normal(dtype));
    let power = 2f64.powf(reach.max(least).log2().floor());
    // Small results may be flushed to zero.
    let flushed = if value.abs() - error < least { reach.min(least) } else { 0.0 };
    let allowed = error + power * dtype.unit_roundoff() + flushed;
    let overflows = reach + power * dtype.unit_roundoff() >= largest(dtype);
    (got - value).abs() <= allowed || overflows && got == value.signum() * f64::INFINITY
}

fn min_normal(dtype: DType) -> f64 {
    if dtype == DType::F16 { f16::MIN_POSITIVE.into() } else { f32::MIN_POSITIVE.into() }
}

fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::MAX.into(),
        DType::BF16 => bf16::MAX.into(),
        _ => f32::MAX.into(),
    }
}
