//! WGSL's built-in functions, taken apart into scalar operations.

use super::shape::Shape;
use super::{Compiler, Frame};
use crate::Error;
use crate::machine::to_odd;
use crate::program::{Binary, Op, Packing, Reg, SiteId, Ternary, Ty, Unary};
use naga::{Expression, Handle, MathFunction, RelationalFunction};

/// Functions that apply to each component by itself.
fn component_wise(fun: MathFunction) -> Option<Unary> {
    use MathFunction as F;
    Some(match fun {
        F::Abs => Unary::Abs,
        F::Saturate => Unary::Saturate,
        F::Cos => Unary::Cos,
        F::Cosh => Unary::Cosh,
        F::Sin => Unary::Sin,
        F::Sinh => Unary::Sinh,
        F::Tan => Unary::Tan,
        F::Tanh => Unary::Tanh,
        F::Acos => Unary::Acos,
        F::Asin => Unary::Asin,
        F::Atan => Unary::Atan,
        F::Asinh => Unary::Asinh,
        F::Acosh => Unary::Acosh,
        F::Atanh => Unary::Atanh,
        F::Radians => Unary::Radians,
        F::Degrees => Unary::Degrees,
        F::Ceil => Unary::Ceil,
        F::Floor => Unary::Floor,
        F::Round => Unary::Round,
        F::Fract => Unary::Fract,
        F::Trunc => Unary::Trunc,
        F::Exp => Unary::Exp,
        F::Exp2 => Unary::Exp2,
        F::Log => Unary::Log,
        F::Log2 => Unary::Log2,
        F::Sign => Unary::Sign,
        F::Sqrt => Unary::Sqrt,
        F::InverseSqrt => Unary::InverseSqrt,
        F::QuantizeToF16 => Unary::QuantizeToF16,
        F::CountTrailingZeros => Unary::CountTrailingZeros,
        F::CountLeadingZeros => Unary::CountLeadingZeros,
        F::CountOneBits => Unary::CountOneBits,
        F::ReverseBits => Unary::ReverseBits,
        F::FirstTrailingBit => Unary::FirstTrailingBit,
        F::FirstLeadingBit => Unary::FirstLeadingBit,
        _ => return None,
    })
}

fn of_two(fun: MathFunction) -> Option<Binary> {
    Some(match fun {
        MathFunction::Min => Binary::Min,
        MathFunction::Max => Binary::Max,
        MathFunction::Pow => Binary::Pow,
        MathFunction::Atan2 => Binary::Atan2,
        MathFunction::Step => Binary::Step,
        MathFunction::Ldexp => Binary::Ldexp,
        _ => return None,
    })
}

fn of_three(fun: MathFunction) -> Option<Ternary> {
    Some(match fun {
        MathFunction::Clamp => Ternary::Clamp,
        MathFunction::Fma => Ternary::Fma,
        MathFunction::Mix => Ternary::Mix,
        MathFunction::SmoothStep => Ternary::SmoothStep,
        MathFunction::ExtractBits => Ternary::ExtractBits,
        _ => return None,
    })
}

/// The packing function, and the registers of its result.
fn packing(fun: MathFunction) -> Option<(Packing, u32)> {
    use MathFunction as F;
    Some(match fun {
        F::Pack4x8snorm => (Packing::Pack4x8snorm, 1),
        F::Pack4x8unorm => (Packing::Pack4x8unorm, 1),
        F::Pack2x16snorm => (Packing::Pack2x16snorm, 1),
        F::Pack2x16unorm => (Packing::Pack2x16unorm, 1),
        F::Pack2x16float => (Packing::Pack2x16float, 1),
        F::Pack4xI8 => (Packing::Pack4xI8, 1),
        F::Pack4xU8 => (Packing::Pack4xU8, 1),
        F::Pack4xI8Clamp => (Packing::Pack4xI8Clamp, 1),
        F::Pack4xU8Clamp => (Packing::Pack4xU8Clamp, 1),
        F::Unpack4x8snorm => (Packing::Unpack4x8snorm, 4),
        F::Unpack4x8unorm => (Packing::Unpack4x8unorm, 4),
        F::Unpack2x16snorm => (Packing::Unpack2x16snorm, 2),
        F::Unpack2x16unorm => (Packing::Unpack2x16unorm, 2),
        F::Unpack2x16float => (Packing::Unpack2x16float, 2),
        F::Unpack4xI8 => (Packing::Unpack4xI8, 4),
        F::Unpack4xU8 => (Packing::Unpack4xU8, 4),
        F::Dot4I8Packed => (Packing::Dot4I8, 1),
        F::Dot4U8Packed => (Packing::Dot4U8, 1),
        _ => return None,
    })
}

impl<'a> Compiler<'a> {
    pub(super) fn math(
        &mut self,
        frame: &mut Frame<'a>,
        fun: MathFunction,
        arguments: [Option<Handle<Expression>>; 4],
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let mut args = Vec::new();
        let mut types = Vec::new();
        for argument in arguments.into_iter().flatten() {
            types.push(self.scalars(frame, argument)?.1);
            args.push(self.regs(frame, argument)?);
        }
        let ty = types[0];
        if let Some(f) = component_wise(fun) {
            return Ok(self.map1(f, ty, ty, &args[0], site));
        }
        if let Some(f) = of_two(fun) {
            return Ok(self.map2(f, ty, types[1], &args[0], &args[1], site));
        }
        if fun == MathFunction::Fma && !self.fused {
            let product = self.map2(Binary::Multiply, ty, ty, &args[0], &args[1], site);
            return Ok(self.map2(Binary::Add, ty, ty, &product, &args[2], site));
        }
        if let Some(f) = of_three(fun) {
            return Ok(self.map3(
                f,
                [ty, types[1], types[2]],
                [&args[0], &args[1], &args[2]],
                site,
            ));
        }
        if let Some((f, planes)) = packing(fun) {
            let first = self.registers(planes);
            let dst = (first..first + planes).collect();
            self.emit(Op::Pack { f, dst, src: args.concat().into() }, site);
            return Ok((first..first + planes).collect());
        }
        self.geometry(frame, fun, &args, arguments, site)
    }

    fn map3(&mut self, f: Ternary, types: [Ty; 3], args: [&[Reg]; 3], site: SiteId) -> Vec<Reg> {
        let ty = types[0];
        let counts = [0, 1, 2].map(|i| args[i].len() as u32 / types[i].planes());
        let count = counts.into_iter().max().unwrap_or(0);
        let first = self.registers(count * ty.planes());
        for i in 0..count {
            let [a, b, c] =
                [0, 1, 2].map(|k| self.pair(args[k], if counts[k] == 1 { 0 } else { i }, types[k]));
            self.emit(Op::Ternary { f, ty, dst: first + i * ty.planes(), a, b, c }, site);
        }
        (first..first + count * ty.planes()).collect()
    }

    fn geometry(
        &mut self,
        frame: &mut Frame<'a>,
        fun: MathFunction,
        args: &[Vec<Reg>],
        arguments: [Option<Handle<Expression>>; 4],
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        use MathFunction as F;
        let ty = match arguments[0] {
            Some(argument) => self.scalars(frame, argument)?.1,
            None => Ty::F32,
        };
        let x = &args[0];
        Ok(match fun {
            F::Dot => self.dot(ty, x, &args[1], site),
            F::Length => self.length(ty, x, site),
            F::Distance => {
                let d = self.map2(Binary::Subtract, ty, ty, x, &args[1], site);
                self.length(ty, &d, site)
            }
            F::Normalize => {
                let length = self.length(ty, x, site);
                self.map2(Binary::Divide, ty, ty, x, &length, site)
            }
            F::Cross => {
                let p = ty.planes() as usize;
                let part = |v: &[Reg], order: [usize; 3]| -> Vec<Reg> {
                    order.iter().flat_map(|&i| v[i * p..][..p].to_vec()).collect()
                };
                let (x1, y2) = (part(x, [1, 2, 0]), part(&args[1], [2, 0, 1]));
                let (x2, y1) = (part(x, [2, 0, 1]), part(&args[1], [1, 2, 0]));
                let left = self.map2(Binary::Multiply, ty, ty, &x1, &y2, site);
                let right = self.map2(Binary::Multiply, ty, ty, &x2, &y1, site);
                self.map2(Binary::Subtract, ty, ty, &left, &right, site)
            }
            F::FaceForward => {
                // faceForward(e1, e2, e3): e1 where dot(e2, e3) < 0, else -e1.
                let dot = self.dot(ty, &args[1], &args[2], site);
                let zero = vec![self.constant(0); ty.planes() as usize];
                let less = self.map2(Binary::Less, ty, ty, &dot, &zero, site);
                let negative = self.map1(Unary::Negate, ty, ty, x, site);
                self.choose(&less, x, &negative, site)
            }
            F::Reflect => {
                let two = self.number(2.0, ty);
                let dot = self.dot(ty, &args[1], x, site);
                let twice = self.map2(Binary::Multiply, ty, ty, &two, &dot, site);
                let scaled = self.map2(Binary::Multiply, ty, ty, &twice, &args[1], site);
                self.map2(Binary::Subtract, ty, ty, x, &scaled, site)
            }
            F::Refract => self.refract(ty, x, &args[1], &args[2], site),
            F::Modf => {
                let whole = self.map1(Unary::Trunc, ty, ty, x, site);
                let mut fract = self.map2(Binary::Subtract, ty, ty, x, &whole, site);
                fract.extend(whole);
                fract
            }
            F::Frexp => {
                let mut fraction = self.map1(Unary::FrexpFraction, ty, ty, x, site);
                let exponent = self.map1(Unary::FrexpExponent, ty, Ty::I32, x, site);
                fraction.extend(exponent);
                fraction
            }
            F::InsertBits => {
                let n = x.len() as u32 / ty.planes();
                let first = self.registers(n * ty.planes());
                for i in 0..n {
                    let (x, new) = (self.pair(x, i, ty), self.pair(&args[1], i, ty));
                    let (offset, count) = (args[2][0], args[3][0]);
                    let dst = first + i * ty.planes();
                    self.emit(Op::InsertBits { ty, dst, x, new, offset, count }, site);
                }
                (first..first + n * ty.planes()).collect()
            }
            F::Transpose | F::Determinant | F::Outer => {
                let shapes =
                    arguments.map(|argument| argument.map(|argument| self.shape(frame, argument)));
                let shape = |at: usize| shapes[at].clone().unwrap_or(Ok(Shape::Scalar(ty)));
                self.matrix_function(fun, shape(0)?, args, ty, site)?
            }
            other => {
                return Err(Error::Unsupported {
                    what: format!("the function {other:?}"),
                    at: None,
                });
            }
        })
    }

    fn matrix_function(
        &mut self,
        fun: MathFunction,
        shape: Shape,
        args: &[Vec<Reg>],
        ty: Ty,
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let p = ty.planes();
        match (fun, shape) {
            (MathFunction::Transpose, Shape::Matrix { columns, rows, .. }) => {
                let at = |c: u32, r: u32| {
                    args[0][((c * rows + r) * p) as usize..][..p as usize].to_vec()
                };
                Ok((0..rows)
                    .flat_map(|r| (0..columns).flat_map(move |c| [(c, r)]))
                    .flat_map(|(c, r)| at(c, r))
                    .collect())
            }
            (MathFunction::Outer, _) => {
                let n = args[1].len() as u32 / p;
                let mut all = Vec::new();
                for column in 0..n {
                    let factor = args[1][(column * p) as usize..][..p as usize].to_vec();
                    all.extend(self.map2(Binary::Multiply, ty, ty, &args[0], &factor, site));
                }
                Ok(all)
            }
            (MathFunction::Determinant, Shape::Matrix { columns, .. }) => {
                let all: Vec<u32> = (0..columns).collect();
                Ok(self.determinant(&args[0], columns, &all, 0, ty, site))
            }
            _ => Err(Error::Unsupported { what: format!("{fun:?} of {shape:?}"), at: None }),
        }
    }

    /// The determinant of the remaining rows and the columns from `column` on, by expansion along
    /// columns.
    fn determinant(
        &mut self,
        m: &[Reg],
        n: u32,
        rows: &[u32],
        column: u32,
        ty: Ty,
        site: SiteId,
    ) -> Vec<Reg> {
        let p = ty.planes() as usize;
        let at = |row: u32| m[(column * n + row) as usize * p..][..p].to_vec();
        if let [row] = rows {
            return at(*row);
        }
        let mut sum: Option<Vec<Reg>> = None;
        for (i, &row) in rows.iter().enumerate() {
            let rest: Vec<u32> = rows.iter().copied().filter(|&r| r != row).collect();
            let minor = self.determinant(m, n, &rest, column + 1, ty, site);
            let term = self.map2(Binary::Multiply, ty, ty, &at(row), &minor, site);
            sum = Some(match sum {
                None => term,
                Some(sum) if i % 2 == 1 => self.map2(Binary::Subtract, ty, ty, &sum, &term, site),
                Some(sum) => self.map2(Binary::Add, ty, ty, &sum, &term, site),
            });
        }
        sum.unwrap_or_default()
    }

    /// A scalar constant of a float type.
    fn number(&mut self, value: f64, ty: Ty) -> Vec<Reg> {
        match ty {
            Ty::F64 => {
                let bits = value.to_bits();
                vec![self.constant(bits as u32), self.constant((bits >> 32) as u32)]
            }
            Ty::F16 => vec![self.constant(u32::from(half::f16::from_f32(to_odd(value)).to_bits()))],
            _ => vec![self.constant((value as f32).to_bits())],
        }
    }

    fn choose(
        &mut self,
        condition: &[Reg],
        accept: &[Reg],
        reject: &[Reg],
        site: SiteId,
    ) -> Vec<Reg> {
        let first = self.registers(accept.len() as u32);
        for (dst, (&b, &a)) in (first..).zip(accept.iter().zip(reject)) {
            self.emit(
                Op::Ternary { f: Ternary::Select, ty: Ty::U32, dst, a, b, c: condition[0] },
                site,
            );
        }
        (first..first + accept.len() as u32).collect()
    }

    /// Products added from the first component to the last.
    fn dot(&mut self, ty: Ty, a: &[Reg], b: &[Reg], site: SiteId) -> Vec<Reg> {
        let products = self.map2(Binary::Multiply, ty, ty, a, b, site);
        self.fold(Binary::Add, ty, &products, site)
    }

    fn fold(&mut self, f: Binary, ty: Ty, values: &[Reg], site: SiteId) -> Vec<Reg> {
        let p = ty.planes() as usize;
        let mut sum = values[..p].to_vec();
        for next in values[p..].chunks(p) {
            sum = self.map2(f, ty, ty, &sum, next, site);
        }
        sum
    }

    fn length(&mut self, ty: Ty, x: &[Reg], site: SiteId) -> Vec<Reg> {
        if x.len() as u32 == ty.planes() {
            return self.map1(Unary::Abs, ty, ty, x, site);
        }
        let squares = self.dot(ty, x, x, site);
        self.map1(Unary::Sqrt, ty, ty, &squares, site)
    }

    /// WGSL's refract: k = 1 - e3² (1 - dot(e2, e1)²); 0 where k < 0, else e3 e1 - (e3 dot(e2, e1)
    /// + sqrt(k)) e2.
    fn refract(&mut self, ty: Ty, x: &[Reg], n: &[Reg], eta: &[Reg], site: SiteId) -> Vec<Reg> {
        let one = self.number(1.0, ty);
        let dot = self.dot(ty, n, x, site);
        let squared = self.map2(Binary::Multiply, ty, ty, &dot, &dot, site);
        let rest = self.map2(Binary::Subtract, ty, ty, &one, &squared, site);
        let eta2 = self.map2(Binary::Multiply, ty, ty, eta, eta, site);
        let bent = self.map2(Binary::Multiply, ty, ty, &eta2, &rest, site);
        let k = self.map2(Binary::Subtract, ty, ty, &one, &bent, site);
        let root = self.map1(Unary::Sqrt, ty, ty, &k, site);
        let along = self.map2(Binary::Multiply, ty, ty, eta, &dot, site);
        let sum = self.map2(Binary::Add, ty, ty, &along, &root, site);
        let scaled = self.map2(Binary::Multiply, ty, ty, &sum, n, site);
        let first = self.map2(Binary::Multiply, ty, ty, eta, x, site);
        let result = self.map2(Binary::Subtract, ty, ty, &first, &scaled, site);
        let zero = vec![self.constant(0); ty.planes() as usize];
        let negative = self.map2(Binary::Less, ty, ty, &k, &zero, site);
        let zeros = vec![zero[0]; result.len()];
        self.choose(&negative, &zeros, &result, site)
    }

    pub(super) fn relational(
        &mut self,
        frame: &mut Frame<'a>,
        fun: RelationalFunction,
        argument: Handle<Expression>,
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let (_, ty) = self.scalars(frame, argument)?;
        let regs = self.regs(frame, argument)?;
        Ok(match fun {
            RelationalFunction::All => self.fold(Binary::And, Ty::Bool, &regs, site),
            RelationalFunction::Any => self.fold(Binary::Or, Ty::Bool, &regs, site),
            RelationalFunction::IsNan => self.map1(Unary::IsNan, ty, Ty::Bool, &regs, site),
            RelationalFunction::IsInf => self.map1(Unary::IsInf, ty, Ty::Bool, &regs, site),
        })
    }

    /// Products of linear algebra; `None` for products that are computed component by component.
    pub(super) fn matrix_product(
        &mut self,
        left: Shape,
        right: Shape,
        a: &[Reg],
        b: &[Reg],
        site: SiteId,
    ) -> Option<Vec<Reg>> {
        match (left, right) {
            (Shape::Matrix { rows, ty, .. }, Shape::Vector { .. }) => {
                Some(self.combine(ty, rows, a, b, site))
            }
            (Shape::Matrix { rows, columns: inner, ty }, Shape::Matrix { columns, .. }) => {
                let width = (inner * ty.planes()) as usize;
                let mut all = Vec::new();
                for column in 0..columns as usize {
                    all.extend(self.combine(ty, rows, a, &b[column * width..][..width], site));
                }
                Some(all)
            }
            (Shape::Vector { size, ty }, Shape::Matrix { columns, .. }) => {
                let width = (size * ty.planes()) as usize;
                let mut all = Vec::new();
                for column in 0..columns as usize {
                    all.extend(self.dot(ty, a, &b[column * width..][..width], site));
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// The sum of a matrix's columns, each times its component of a vector, from the first on.
    fn combine(
        &mut self,
        ty: Ty,
        rows: u32,
        matrix: &[Reg],
        vector: &[Reg],
        site: SiteId,
    ) -> Vec<Reg> {
        let (width, p) = ((rows * ty.planes()) as usize, ty.planes() as usize);
        let mut sum: Option<Vec<Reg>> = None;
        for (column, factor) in matrix.chunks(width).zip(vector.chunks(p)) {
            let term = self.map2(Binary::Multiply, ty, ty, column, factor, site);
            sum = Some(match sum {
                None => term,
                Some(sum) => self.map2(Binary::Add, ty, ty, &sum, &term, site),
            });
        }
        sum.unwrap_or_default()
    }
}
