//! Errors. Bad input is refused at once. Errors that only the browser finds come at the latest when
//! something is read.

use super::custom::{call, from_a, same};
use super::device::{product, works};
use super::{Check, Outcome, options};
use tilewise::{Context, DType, Error, QuantFormat, Quantize, QuantizedTensor, Tensor};

pub(super) fn checks(_: &Context) -> Vec<Check> {
    type Call = fn(&Context) -> tilewise::Result<Tensor>;
    let rows: [(&str, Call); 6] = [
        ("4×5", |context| {
            let a = Tensor::zeros(context, DType::F32, &[4, 5])?;
            context.matmul(&a, &a)
        }),
        ("overflow: ", |context| Tensor::zeros(context, DType::F32, &[1 << 30, 1 << 30, 1 << 30])),
        ("too large: ", |context| {
            let most = context.caps().max_buffer_bytes as usize;
            Tensor::zeros(context, DType::F32, &[most / 4 + 1])
        }),
        ("aliasing: ", |context| {
            let a = Tensor::upload(context, &[1.0f32; 16], &[4, 4])?;
            tilewise::Gemm::new(&a, &a).run_into(&a).map(|()| a.clone())
        }),
        ("no kernel is named ", |context| {
            let a = Tensor::upload(context, &[1.0f32; 16], &[4, 4])?;
            tilewise::Gemm::new(&a, &a).kernel("nothing").run()
        }),
        ("wrong context: ", |context| {
            let a = Tensor::upload(context, &[1.0f32; 16], &[4, 4])?;
            context.matmul(&a, &Tensor::upload(&Context::cpu(), &[1.0f32; 16], &[4, 4])?)
        }),
    ];
    let check = |(words, call): (&'static str, Call)| {
        Check::new(words, move |context| async move {
            match call(&context) {
                Err(error) if error.to_string().contains(words) => works(&context).await,
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
        Err(Error::Misuse(_)) => works(&context).await,
        other => Err(format!("{other:?}").into()),
    }
}

pub(super) fn planted(_: &Context) -> Vec<Check> {
    vec![
        Check::new("a text that mixes && and ||", mixed),
        Check::new("a barrier in a loop that looks divergent", divergent),
        Check::new("a product of a destroyed buffer", of_destroyed),
        Check::new("a read of a destroyed buffer", destroyed),
        Check::new("a product into a destroyed buffer", into_destroyed),
        Check::new("a buffer of another device", foreign),
        Check::new("more memory than there is", no_memory),
    ]
}

/// An error unless the numbers are right, or the text is refused and the context works after that.
async fn right_or_refused(context: Context, body: &str) -> Outcome {
    let call = call(&context, &[1.0, 2.0, 3.0], DType::F32, 3)?.workgroup([4, 1, 1]);
    match async { from_a(body).run_one(&call)?.read::<f32>().await }.await {
        Ok(numbers) => same(numbers, vec![7.0, 8.0, 9.0]),
        Err(_) => works(&context).await,
    }
}

async fn mixed(context: Context) -> Outcome {
    let body = "let i = global_id.x;
        out[i] = select(0.0, a[i] + 6.0, a[0] > 5.0 && a[1] > 5.0 || a[2] > 2.0);";
    right_or_refused(context, body).await
}

async fn divergent(context: Context) -> Outcome {
    right_or_refused(context, include_str!("divergent.wgsl")).await
}

/// An error unless the result is one, and the context works after it.
async fn is_error<T>(context: &Context, result: tilewise::Result<T>) -> Outcome {
    match result {
        Ok(_) => Err("Ok, where the browser had an error".into()),
        Err(_) => works(context).await,
    }
}

fn destroy(tensor: &Tensor) {
    if let Some((buffer, _)) = tensor.buffer() {
        buffer.destroy();
    }
}

async fn of_destroyed(context: Context) -> Outcome {
    let (a, _) = product(&context)?;
    destroy(&a);
    let read = async { context.matmul(&a, &a)?.read::<f32>().await };
    let read = read.await;
    is_error(&context, read).await
}

async fn destroyed(context: Context) -> Outcome {
    let (c, _) = product(&context)?;
    destroy(&c);
    let read = c.read::<f32>().await;
    is_error(&context, read).await
}

async fn into_destroyed(context: Context) -> Outcome {
    let (a, _) = product(&context)?;
    let c = Tensor::upload(&context, &[1.0f32; 4], &[2, 2])?;
    destroy(&c);
    let read = async { tilewise::Gemm::new(&a, &a).run_into(&c).and(c.read::<f32>().await) };
    let read = read.await;
    is_error(&context, read).await
}

async fn foreign(context: Context) -> Outcome {
    let other = Context::request(&options()).await?;
    let (theirs, _) = product(&other)?;
    let (buffer, at) = theirs.buffer().ok_or("no buffer")?;
    let ours = Tensor::from_buffer(&context, buffer.clone(), at, DType::F32, &[2, 2]);
    let read = async { ours.and_then(|a| context.matmul(&a, &a))?.read::<f32>().await };
    let read = read.await;
    is_error(&context, read).await
}

/// Allocates a gigabyte, which the limits permit. Some devices have so much memory, others have
/// not.
async fn no_memory(context: Context) -> Outcome {
    const ROWS: usize = 1 << 14;
    if context.caps().max_buffer_bytes < (ROWS * ROWS * 4) as u64 {
        return Ok(());
    }
    let used = async {
        let large = Tensor::zeros(&context, DType::F32, &[ROWS, ROWS])?;
        let (a, _) = product(&context)?;
        let out = large.slice(&[ROWS - 2..ROWS, ROWS - 2..ROWS])?;
        tilewise::Gemm::new(&a, &a).run_into(&out)?;
        out.read::<f32>().await
    };
    match used.await {
        Ok(numbers) => same(numbers, vec![66.0, 75.0, 150.0, 171.0]),
        Err(Error::OutOfMemory(_)) => works(&context).await,
        Err(other) => Err(format!("another error than OutOfMemory: {other}").into()),
    }
}
