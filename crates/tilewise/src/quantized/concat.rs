//! Joining quantized weights: their rows one after the other, or by turns.

use crate::quantized::QuantizedTensor;
#[cfg(feature = "custom-kernels")]
use crate::tensor::Tensor;
#[cfg(feature = "custom-kernels")]
use tilewise_core::DType;
use tilewise_core::{Error, Result};

impl QuantizedTensor {
    /// Joins the rows of weights of one format and K into weights \[ΣN,K\], so that one product
    /// takes the place of several. The device copies them; the work is submitted, not waited for.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, QuantFormat, QuantizedTensor, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let w = |w: f32| QuantizedTensor::quantize(&ctx, &[w; 128], [4, 32], QuantFormat::MXFP4);
    /// let gate_up = QuantizedTensor::concat(&[&w(1.0)?, &w(2.0)?])?;
    /// let x = Tensor::upload(&ctx, &[1.0f32; 32], &[1, 32])?;
    /// let y = Gemm::new(&x, &gate_up).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [[32.0; 4], [64.0; 4]].concat());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stacks \[G,N,K\] of equally many matrices are joined matrix by matrix. The result
    /// has no [`check`](Self::check): call it on weights that the device quantized before joining.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for no weights, for other formats, numbers of matrices or K, and for
    /// rows that would begin inside a word of 4 bytes on a device, which multiples of 4 rows of
    /// whole weights never do; `Misuse` for weights of different factors ([`factor`](Self::factor),
    /// or the power of two by which their scales were [divided](Self::upload)), for columns in
    /// [another order](Self::with_order), for a [transpose](Self::t), and for a buffer of yours
    /// without `COPY_SRC`.
    pub fn concat(weights: &[&QuantizedTensor]) -> Result<Self> {
        let whole = Self::room(weights)?;
        let (context, format, to) = (&whole.context, whole.format, whole.operand);
        let mut before = 0;
        for own in weights.iter().filter(|own| own.n * own.k > 0) {
            let from = own.operand;
            // Rows that lie as far apart as those of the result are copied at once.
            let (pieces, length) = match from.ld == to.ld {
                true => (1, (own.n - 1) * from.ld + own.k),
                false => (own.n, own.k),
            };
            let places: Vec<_> = (0..own.entries)
                .flat_map(|entry| (0..pieces).map(move |row| (entry, row)))
                .map(|(entry, row)| {
                    let at = from.offset + entry * from.batch_stride + row * from.ld;
                    (at..at + length, entry * to.batch_stride + (before + row) * to.ld)
                })
                .collect();
            let planes = whole.planes.iter().zip(&own.planes).zip(format.planes());
            for ((target, source), plane) in planes {
                let bytes = |weights| plane.bytes_of(format.block(), weights);
                let places = places.iter();
                let pieces =
                    places.map(|(from, to)| (bytes(from.start)..bytes(from.end), bytes(*to)));
                target.copy_from(context, source, pieces)?;
            }
            before += own.n;
        }
        Ok(whole)
    }

    /// Joins weights as [`concat`](Self::concat) does, with their rows by turns: the first row of
    /// each, then the second of each. [`Gemm::glu`](crate::Gemm::glu) takes rows of gate and up in
    /// this order.
    ///
    /// ```
    /// use tilewise::{Activation, Context, Gemm, QuantFormat, QuantizedTensor, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let w = |w: f32| QuantizedTensor::quantize(&ctx, &[w; 512], [4, 128], QuantFormat::MXFP4);
    /// let gate_up = QuantizedTensor::interleave(&[&w(1.0)?, &w(2.0)?])?;
    /// let x = Tensor::upload(&ctx, &[1.0f32; 128], &[1, 128])?;
    /// let y = Gemm::new(&x, &gate_up).glu(Activation::Relu).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [128.0 * 256.0; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`concat`](Self::concat); [`Shape`](crate::Error) for different numbers of
    /// rows, and if a row does not fill whole words of 4 bytes in each plane.
    #[cfg(feature = "custom-kernels")]
    pub fn interleave(weights: &[&QuantizedTensor]) -> Result<Self> {
        let whole = Self::room(weights)?;
        let turns = weights.len() as u64;
        for (turn, own) in weights.iter().enumerate() {
            if own.n != weights[0].n {
                return Err(Error::Shape(format!(
                    "weights to be joined by turns: {:?} and {:?} have different numbers of rows",
                    weights[0].shape(),
                    own.shape()
                )));
            }
            for plane in 0..whole.planes.len() {
                let rows = whole.words(plane, own.n, [turns, turn as u64])?;
                rows.copy_from(&own.words(plane, own.n, [1, 0])?)?;
            }
        }
        Ok(whole)
    }

    /// Words of a plane, \[entries, rows, words of a row\]: each `step`-th row from one on.
    #[cfg(feature = "custom-kernels")]
    fn words(&self, plane: usize, rows: u64, [step, first]: [u64; 2]) -> Result<Tensor> {
        let (operand, storage) = (self.operand, &self.planes[plane]);
        let part = &self.format.planes()[plane];
        let words = |weights: u64| {
            let bytes = part.bytes_of(self.format.block(), weights);
            if bytes.is_multiple_of(4) {
                return Ok(bytes as usize / 4);
            }
            Err(Error::Shape(format!(
                "weights to be joined by turns: {} rows of {} have {bytes} bytes of {}, no whole \
                 words of 4 bytes",
                self.format, self.k, part.name
            )))
        };
        let shape = [self.entries as usize, rows as usize, words(self.k)?];
        let strides = [words(operand.batch_stride)?, words(step * operand.ld)?, 1];
        let offset = words(operand.offset + first * operand.ld)?;
        let all = [storage.bytes() as usize / 4];
        Tensor::packed(&self.context, DType::U32, &all, storage.clone())
            .as_strided(&shape, &strides, offset)
    }

    /// Room for the rows of weights that can be joined.
    fn room(weights: &[&QuantizedTensor]) -> Result<Self> {
        let Some(&first) = weights.first() else {
            return Err(Error::Shape("no quantized weights to be joined are given".into()));
        };
        first.context.not_recording()?;
        weights.iter().try_for_each(|own| own.joins(first))?;
        let mut shape = first.shape();
        let rows = shape.len() - 2;
        shape[rows] = weights.iter().map(|own| own.n as usize).sum();
        Ok(QuantizedTensor {
            factor: first.factor,
            ..Self::empty(&first.context, first.format, &shape)?
        })
    }

    /// Checks that these weights can be joined with the first ones.
    fn joins(&self, first: &Self) -> Result<()> {
        first.context.same(&self.context, "weights to be joined")?;
        let refused = |why: String| Err(Error::Misuse(format!("weights to be joined: {why}")));
        if self.is_transposed() {
            return refused("a transpose: join these, before t()".into());
        }
        if self.order.is_some() {
            return refused("their columns are in another order".into());
        }
        let kind = |own: &Self| (own.format, own.stacked.then_some(own.entries), own.k);
        if kind(self) != kind(first) {
            return Err(Error::Shape(format!(
                "weights to be joined: {} {:?} and {} {:?}",
                first.format,
                first.shape(),
                self.format,
                self.shape()
            )));
        }
        if self.factor != first.factor {
            return refused(format!(
                "their factors are {} and {}; one product has one",
                first.factor, self.factor
            ));
        }
        Ok(())
    }
}
