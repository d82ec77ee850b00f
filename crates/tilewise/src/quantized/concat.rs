//! Joining quantized weights.

use crate::quantized::QuantizedTensor;
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
        let Some(&first) = weights.first() else {
            return Err(Error::Shape("concat: no quantized weights are given".into()));
        };
        let (context, format) = (&first.context, first.format);
        context.not_recording()?;
        weights.iter().try_for_each(|own| own.joins(first))?;
        let mut shape = first.shape();
        let rows = shape.len() - 2;
        shape[rows] = weights.iter().map(|own| own.n as usize).sum();
        let whole =
            QuantizedTensor { factor: first.factor, ..Self::empty(context, format, &shape)? };
        let to = whole.operand;
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
