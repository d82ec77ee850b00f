//! Errors: bad input, which is refused at once.

use super::device::works;
use super::{Check, Outcome};
use tilewise::{Context, DType, Error, QuantFormat, Quantize, QuantizedTensor, Tensor};

pub(super) fn checks(_: &Context) -> Vec<Check> {
    type Call = fn(&Context) -> tilewise::Result<Tensor>;
    let rows: [(&str, Call); 6] = [
        ("Shape", |context| {
            let a = Tensor::zeros(context, DType::F32, &[4, 5])?;
            context.matmul(&a, &a)
        }),
        ("Overflow", |context| Tensor::zeros(context, DType::F32, &[1 << 30, 1 << 30, 1 << 30])),
        ("TooLarge", |context| {
            let most = context.caps().max_buffer_bytes as usize;
            Tensor::zeros(context, DType::F32, &[most / 4 + 1])
        }),
        ("Aliased", |context| {
            let a = Tensor::upload(context, &[1.0f32; 16], &[4, 4])?;
            tilewise::Gemm::new(&a, &a).run_into(&a).map(|()| a.clone())
        }),
        ("UnknownKernel", |context| {
            let a = Tensor::upload(context, &[1.0f32; 16], &[4, 4])?;
            tilewise::Gemm::new(&a, &a).kernel("nothing").run()
        }),
        ("WrongContext", |context| {
            let a = Tensor::upload(context, &[1.0f32; 16], &[4, 4])?;
            context.matmul(&a, &Tensor::upload(&Context::cpu(), &[1.0f32; 16], &[4, 4])?)
        }),
    ];
    let check = |(kind, call): (&'static str, Call)| {
        Check::new(kind, move |context| async move {
            match call(&context) {
                Err(error) if format!("{error:?}").starts_with(kind) => works(&context).await,
                other => Err(format!("{:?}", other.map(|_| ())).into()),
            }
        })
    };
    let weights = Check::new("weights that no format holds", weights);
    rows.into_iter().map(check).chain([weights]).collect()
}

async fn weights(context: Context) -> Outcome {
    let nan = Tensor::upload(&context, &[f32::NAN; 32], &[1, 32])?;
    let made = QuantizedTensor::zeros(&context, QuantFormat::MXFP8, &[1, 32])?;
    Quantize::new(&nan, QuantFormat::MXFP8).run_into(&made)?;
    match made.check().await {
        Err(Error::InvalidValue(_)) => works(&context).await,
        other => Err(format!("{other:?}").into()),
    }
}
