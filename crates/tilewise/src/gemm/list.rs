//! Products of a list.

use super::Gemm;
use super::groups::Groups;
use crate::gemm::product_list::ProductList;
use crate::right::RightOperand;
use crate::tensor::Tensor;
use crate::tensor::operands::Operands;
use crate::tensor::storage::Bundle;
use tilewise_core::kernel::Role;
use tilewise_core::{Epilogue, Error, Format, Grouping, Operand, Problem, Result};

impl Gemm {
    /// Products of any sizes, each from its place in A, B and C: C_i = A_i·B_i for the sizes,
    /// places and row strides of a list, which may live on the device. One launch computes all.
    /// With a list from the host, each product has workgroups for its own tiles. With a list on the
    /// device, each has as many workgroups as the largest needs; if that makes many, the device
    /// first counts those that are needed.
    ///
    /// A, B and C are tensors of any shape whose elements follow one another: places count their
    /// elements. No two products write one element of C. Elements of C that no product writes stay
    /// as they are. For a list from the host, [`run`](Self::run) gives a vector up to the last
    /// element that is written, with zeros between. C is f32, or f16 on devices that store single
    /// numbers of f16. alpha, beta and an activation apply to all products; a bias or a residual is
    /// an error.
    ///
    /// Matrix units (`coop`) multiply f16 if all places and row strides in A and in B, and the
    /// elements of both, are multiples of 8. Lists from the host are checked for this; for a list
    /// on the device, [`aligned`](ProductList::aligned) promises it. M, N, K and the places in C
    /// may be anything. `simt` and `naive` take all other products, and f32 and bf16;
    /// [`explain`](Self::explain) says why.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, ProductList, ProductShape, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let a = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[6])?;
    /// let b = Tensor::upload(&ctx, &[1.0f32, 10.0, 100.0], &[3])?;
    /// // [1, 2] × [1, 10] as [1,2]×[2,1], and [3, 4, 5]ᵀ × [100] as [3,1]×[1,1].
    /// let shape = ProductShape { m: 1, n: 1, k: 2, lda: 2, ldb: 1, ldc: 1, ..Default::default() };
    /// let next = ProductShape { m: 3, k: 1, a: 2, lda: 1, b: 2, c: 1, ..shape };
    /// let list = ProductList::upload(&ctx, &[shape, next])?;
    /// let c = Gemm::list(&a, &b, &list).run()?;
    /// assert_eq!(c.read_blocking::<f32>()?, [21.0, 300.0, 400.0, 500.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(a: &Tensor, b: &Tensor, list: &ProductList) -> Self {
        let groups = Some(Groups::Listed(list.clone()));
        // A tensor of one dimension is no vector here.
        let [a, b] = [a, b].map(|operand| operand.view());
        Gemm { a: a.clone(), vectors: [false; 2], groups, b: b.clone().into(), ..Gemm::new(&a, b) }
    }

    /// Like [`bundle`](Self::bundle), for a list.
    pub(super) fn bundle_of_list<'s>(
        &'s self,
        list: &'s ProductList,
        c: Option<&'s Tensor>,
    ) -> Result<Bundle<'s>> {
        let RightOperand::Dense(b) = &self.b else {
            return Err(Error::Unsupported("a list of products of quantized weights".into()));
        };
        let given = [
            ("row index", self.rows.is_some()),
            ("bias", self.bias.is_some()),
            ("gate", self.gate.is_some()),
            ("residual", self.residual.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(Error::Unsupported(format!(
                "a {name} beside products of a list, which have a shape each"
            )));
        }
        let mut operands = Operands::new(self.context(), c);
        let placed = |tensor: &'s Tensor| tensor.vector([0, 0, 0, tensor.elem_count() as u64]);
        let (numbers, bound) = placed(&list.numbers);
        let owner = list.numbers.context();
        operands.add_buffer(Role::Offsets, "the list of products", owner, bound)?;
        let mut add = |role: Role, name: &'static str, tensor: &'s Tensor, turned: bool| {
            if !tensor.is_contiguous() {
                return Err(Error::Shape(format!(
                    "strides: {name} has {:?}: products of a list lie in a tensor whose \
                     elements follow one another",
                    tensor.strides()
                )));
            }
            let (operand, bound) = placed(tensor);
            match role {
                Role::C => operands.add_output(name, tensor, bound),
                _ => operands.add(role, name, tensor, bound),
            }?;
            Ok(Operand { ld: 1, transposed: turned, ..operand })
        };
        let [a_turned, b_turned] = list.transposed;
        let a = add(Role::A, "A", &self.a, a_turned)?;
        let b_operand = add(Role::B, "B", b, b_turned)?;
        let c_operand = match c {
            Some(c) => add(Role::C, "C", c, false)?,
            None => {
                // Plans do not depend on a length that only the device knows.
                let elements = list.c_elements().unwrap_or(0) as u64;
                let format = Format::Dense(self.output_dtype());
                Operand { ld: 1, ..Operand::packed(format, 1, 1, elements) }
            }
        };
        // Elements in 16 bytes. Rows are planned to begin at multiples of them, if that is known.
        let vectors = [a, b_operand].map(|operand| 16 / operand.format.element_bytes() as u64);
        let aligned = list.is_aligned(vectors);
        let [a_ld, b_ld] = [0, 1].map(|own| if aligned[own] { vectors[own] } else { 1 });
        list.check([&a, &b_operand, &c_operand].map(|operand| operand.batch_stride as usize))?;
        let [m, n, k] = list.most.map(|size| size as u64);
        let groups = list.count() as u64;
        let problem = Problem {
            m,
            n,
            k,
            batch: groups,
            a: Operand { ld: a_ld, ..a },
            b: Operand { ld: b_ld, ..b_operand },
            c: c_operand,
            grouping: Grouping::Listed { groups, offset: numbers.offset, sizes: list.sizes() },
            epilogue: Epilogue {
                alpha: self.factors[0].planned(),
                beta: self.factors[1].planned(),
                activation: self.activation,
                ..Epilogue::default()
            },
            gathered: None,
            precision: self.precision,
            copies: [None; 2],
            beside_c: operands.beside_out,
        };
        self.check_factors()?;
        Ok(Bundle { problem, buffers: operands.buffers })
    }
}
