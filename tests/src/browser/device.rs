//! Checks what a page learns of its device, and what happens when a device is lost.

use super::custom::same;
use super::{Check, Outcome, options};
use tilewise::{Context, ContextOptions, DType, Error, Gemm, Tensor};

pub(super) fn checks(_: &Context) -> Vec<Check> {
    vec![
        Check::new("a name, and what would run", names),
        Check::new("a product in a pass of the caller's", recorded),
        Check::new("a product with its time", timed),
        Check::new("tensors go there and back", there_and_back),
        Check::new("lost: the library's own", own_is_lost),
        Check::new("lost: the library's own, as a read waits", lost_beneath_a_read),
        Check::new("lost: the caller's", callers_is_lost),
        Check::new("lost: after it another context", another_after_it),
    ]
}

/// A product without zeros, and its right numbers.
pub(super) fn product(context: &Context) -> tilewise::Result<(Tensor, Vec<f32>)> {
    let a = Tensor::upload(context, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let b = Tensor::upload(context, &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2])?;
    Ok((context.matmul(&a, &b)?, vec![4.0, 5.0, 10.0, 11.0]))
}

/// An error unless the product is right.
pub(super) async fn works(context: &Context) -> Outcome {
    let (c, wanted) = product(context)?;
    same(c.read::<f32>().await?, wanted)
}

async fn names(context: Context) -> Outcome {
    if context.adapter_name().trim().is_empty() {
        return Err("the adapter has no name".into());
    }
    let [a, b] = [[64, 96], [96, 32]].map(|shape| Tensor::zeros(&context, DType::F32, &shape));
    let text = Gemm::new(&a?, &b?).explain()?;
    match text.contains("64") && text.contains(context.adapter_name()) {
        true => Ok(()),
        false => Err(text.into()),
    }
}

async fn recorded(context: Context) -> Outcome {
    let (c, wanted) = product(&context)?;
    let (device, queue) = (context.device().ok_or("no device")?, context.queue().ok_or("none")?);
    let twice = Tensor::upload(&context, &[f32::NAN; 4], &[2, 2])?;
    let two = Tensor::upload(&context, &[2.0f32, 0.0, 0.0, 2.0], &[2, 2])?;
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        Gemm::new(&c, &two).record(&mut pass, &twice)?;
    }
    queue.submit([encoder.finish()]);
    same(twice.read::<f32>().await?, wanted.into_iter().map(|x| 2.0 * x).collect())
}

async fn timed(context: Context) -> Outcome {
    let a = Tensor::upload(&context, &[1.5f32; 64 * 64], &[64, 64])?;
    let (c, timing) = Gemm::new(&a, &a).run_timed().await?;
    same(c.read::<f32>().await?, vec![144.0; 64 * 64])?;
    match format!("{timing:?}") {
        text if timing.seconds > 0.0 && timing.seconds < 60.0 => drop(text),
        text => return Err(text.into()),
    }
    Ok(())
}

async fn there_and_back(context: Context) -> Outcome {
    let words: Vec<u32> = (0..10_007u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let all = Tensor::upload(&context, &words, &[words.len()])?;
    let part = all.narrow(0, 3, 9000)?;
    let (first, second) = (part.read::<u32>(), all.read::<u32>());
    same(second.await?, words.clone())?;
    same(first.await?, words[3..9003].to_vec())
}

/// An error unless the result says that the device is lost.
fn lost<T>(result: Result<T, Error>) -> Outcome {
    match result {
        Err(Error::DeviceLost(_)) => Ok(()),
        Err(other) => Err(format!("another error than DeviceLost: {other}").into()),
        Ok(_) => Err("the device is lost, and the call is Ok".into()),
    }
}

/// Uses a context whose device is lost. Reading fails with that error, and so do later calls.
async fn finds_the_loss(context: &Context, c: Tensor) -> Outcome {
    lost(c.read::<f32>().await)?;
    lost(async { product(context)?.0.read::<f32>().await }.await)?;
    lost(Tensor::upload(context, &[1.0f32], &[1]))
}

async fn own_is_lost(_: Context) -> Outcome {
    let context = Context::request(&options()).await?;
    let (c, _) = product(&context)?;
    context.device().ok_or("no device")?.destroy();
    finds_the_loss(&context, c).await
}

async fn lost_beneath_a_read(_: Context) -> Outcome {
    let context = Context::request(&options()).await?;
    let (c, wanted) = product(&context)?;
    let mut read = std::pin::pin!(c.read::<f32>());
    let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(read.as_mut().poll(cx)));
    if let std::task::Poll::Ready(done) = begun.await {
        return same(done?, wanted);
    }
    context.device().ok_or("no device")?.destroy();
    // The output may have been read before the loss.
    match read.await {
        Ok(numbers) => same(numbers, wanted)?,
        failed => lost(failed)?,
    }
    finds_the_loss(&context, c.clone()).await
}

async fn callers_is_lost(_: Context) -> Outcome {
    let owner = Context::request(&options()).await?;
    let device = owner.device().ok_or("no device")?.clone();
    let queue = owner.queue().ok_or("no queue")?.clone();
    let context = Context::from_device(device.clone(), queue, &ContextOptions::default())?;
    works(&context).await?;
    let (c, _) = product(&context)?;
    device.destroy();
    finds_the_loss(&context, c).await
}

async fn another_after_it(_: Context) -> Outcome {
    let context = Context::request(&options()).await?;
    context.device().ok_or("no device")?.destroy();
    works(&Context::request(&options()).await?).await
}
