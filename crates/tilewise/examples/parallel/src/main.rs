//! A decoder shared among processes. Each process has a device, some heads of attention, some
//! hidden numbers of a dense layer, and some experts. It computes a part of each sum, and MPI adds
//! the parts. README.md says how to run it.

use mpi::traits::{Communicator, CommunicatorCollectives};
use mpi::{collective::SystemOperation, topology::SimpleCommunicator};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use tilewise::moe::{MoeLayer, Router};
use tilewise::{Activation, Context, DType, Gemm, Result, Tensor, ops};

const WORDS: usize = 80;
const WIDTH: usize = 64;
const HEADS: usize = 4; // of keys, and of values
const QUERIES: usize = 2; // heads of queries for each
const D: usize = 16; // width of a head
const HIDDEN: usize = 96; // width within the dense layer
const EXPERTS: usize = 7;
const INNER: usize = 32; // width within an expert
const PROMPT: [u32; 4] = [3, 14, 15, 9];
const TOKENS: usize = 16; // to be generated

fn main() {
    let universe = mpi::initialize().expect("nobody else starts MPI");
    // A panic ends this process at once (see Cargo.toml), and `mpirun` then ends the others.
    generate(&universe.world()).unwrap();
}

fn generate(world: &SimpleCommunicator) -> Result<()> {
    let ctx = &Context::new()?;
    eprintln!("process {} of {} on {}", world.rank(), world.size(), ctx.adapter_name());
    let own = Own { ctx, world };
    let mut layers = [own.attention(1)?, own.dense(2)?, own.attention(3)?, own.experts(4)?];
    let embedding = own.random([0, 0], 0..WORDS, 0..WIDTH)?;
    let head = own.random([0, 1], 0..WORDS, 0..WIDTH)?;
    let ones = Tensor::upload(ctx, &[1f32; WIDTH], &[WIDTH])?;
    let norm = |x: &Tensor| ops::rms_norm(x, &ones, 1e-6).run();

    let (mut text, mut new) = (Vec::new(), PROMPT.to_vec());
    while text.len() < TOKENS {
        let ids = Tensor::upload(ctx, &new, &[new.len()])?;
        let mut x = ops::scale(&embedding.rows(&ids)?, 8.0).run()?;
        for layer in &mut layers {
            let part = layer(&norm(&x)?)?;
            x = ops::add(&x, &own.sum(&part)?).run()?;
        }
        let last = norm(&x.narrow(0, new.len() - 1, 1)?)?;
        let [logits, best] = ops::top_k(&Gemm::new(&last, head.t()).run()?, 2).run()?;
        let (logits, best) = (logits.read_blocking::<f32>()?, best.read_blocking::<u32>()?[0]);
        // Other shares give other roundings, which must not decide between two tokens.
        assert!(logits[0] - logits[1] > 1e-3, "two tokens are about equally likely: {logits:?}");
        let mut all = vec![0; world.size() as usize];
        world.all_gather_into(&best, &mut all[..]);
        assert!(all.iter().all(|id| *id == best), "processes chose different tokens: {all:?}");
        new = vec![best];
        text.push(best);
    }
    if world.rank() == 0 {
        println!("{text:?}");
    }
    Ok(())
}

/// Gives this process's part of a layer's output.
type Layer = Box<dyn FnMut(&Tensor) -> Result<Tensor>>;

/// A process and its device.
struct Own<'a> {
    ctx: &'a Context,
    world: &'a SimpleCommunicator,
}

impl Own<'_> {
    fn attention(&self, layer: u32) -> Result<Layer> {
        let (queries, keys) = (self.share(HEADS, QUERIES * D), self.share(HEADS, D));
        let rows = |matrix, rows: &Range<_>| self.random([layer, matrix], rows.clone(), 0..WIDTH);
        let (q, k, v) = (rows(0, &queries)?, rows(1, &keys)?, rows(2, &keys)?);
        let o = self.random([layer, 3], 0..WIDTH, queries.clone())?;
        let room = [1, keys.len() / D, PROMPT.len() + TOKENS, D];
        let mut cache = ops::KvCache::new(self.ctx, DType::F32, 1, room)?;
        Ok(Box::new(move |x| {
            let (ctx, tokens) = (x.context(), x.shape()[0]);
            let heads = |y: &Tensor| y.reshape(&[1, tokens, y.shape()[1] / D, D])?.transpose(1, 2);
            let [q, k, v] = [&q, &k, &v].map(|w| heads(&Gemm::new(x, w.t()).run()?));
            let (q, k, v) = (q?, k?, v?);
            let y = Tensor::zeros(ctx, DType::F32, &[tokens, queries.len()])?;
            ctx.submit(|to| {
                cache.append(to, 0, &k, &v)?;
                cache.attention(0, &q).record(to, &heads(&y)?)?;
                cache.advance(to, tokens)
            })?;
            Gemm::new(&y, o.t()).run()
        }))
    }

    fn dense(&self, layer: u32) -> Result<Layer> {
        let hidden = self.share(HIDDEN, 1);
        let gate = self.random([layer, 0], hidden.clone(), 0..WIDTH)?;
        let up = self.random([layer, 1], hidden.clone(), 0..WIDTH)?;
        let down = self.random([layer, 2], 0..WIDTH, hidden)?;
        Ok(Box::new(move |x| {
            let gate = Gemm::new(x, gate.t()).run()?;
            let h = Gemm::new(x, up.t()).gated_by(&gate, Activation::Silu).run()?;
            Gemm::new(&h, down.t()).run()
        }))
    }

    fn experts(&self, layer: u32) -> Result<Layer> {
        let held = self.share(EXPERTS, 1);
        let stack = |matrix, rows, columns| {
            let all = self.random([layer, matrix], self.share(EXPERTS, rows), 0..columns)?;
            all.reshape(&[held.len(), rows, columns])
        };
        let (gate, up) = (stack(0, INNER, WIDTH)?, stack(1, INNER, WIDTH)?);
        let experts = MoeLayer::new(&gate, &up, &stack(2, WIDTH, INNER)?, 2);
        // Each process counts the experts from its own first one. The numbers behind its last one
        // are experts of others, for which `MoeLayer` adds nothing.
        let order: Vec<_> = (0..EXPERTS).map(|i| ((held.start + i) % EXPERTS) as u32).collect();
        let order = Tensor::upload(self.ctx, &order, &[EXPERTS])?;
        let router = self.random([layer, 3], 0..EXPERTS, 0..WIDTH)?.rows(&order)?;
        Ok(Box::new(move |x| {
            let logits = Gemm::new(x, router.t()).run()?;
            experts.forward(x, Router::new(2).choose(&logits).run()?)
        }))
    }

    /// The rows of this process, of `count` heads, hidden numbers or experts.
    fn share(&self, count: usize, rows: usize) -> Range<usize> {
        let [rank, size] = [self.world.rank(), self.world.size()].map(|n| n as usize);
        rank * count / size * rows..(rank + 1) * count / size * rows
    }

    /// A part of a random matrix. A number depends on its place alone, so nobody needs the rest.
    fn random(&self, id: [u32; 2], rows: Range<usize>, columns: Range<usize>) -> Result<Tensor> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let shape = [rows.len(), columns.len()];
        let places = rows.flat_map(|row| columns.clone().map(move |column| (id, row, column)));
        let number = |place| (hasher.hash_one(place) >> 40) as f32 / 2f32.powi(25) - 0.25;
        Tensor::upload(self.ctx, &places.map(number).collect::<Vec<_>>(), &shape)
    }

    /// The sum of what all processes have.
    fn sum(&self, part: &Tensor) -> Result<Tensor> {
        let numbers = part.read_blocking::<f32>()?;
        let mut sums = vec![0.0; numbers.len()];
        self.world.all_reduce_into(&numbers[..], &mut sums[..], SystemOperation::sum());
        Tensor::upload(self.ctx, &sums, part.shape())
    }
}
