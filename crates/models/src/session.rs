//! A text that grows.

use crate::fault::misuse;
use crate::pass::{Call, Calls, Text};
use crate::sampling::Sampling;
use crate::weights::Weighed;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;
use tilewise::{Context, Recorder, Recording, Result, Tensor, timing};
use web_time::Instant;

/// A text that grows: the keys and values of its tokens, and the token that is under way.
/// [`Decoder`](crate::Decoder) has an example.
///
/// The host is always one step behind the device. [`next`](Self::next) submits the step that
/// follows the token it gives, and that step takes the token from the device's memory.
pub struct Session {
    weights: Arc<Weighed>,
    text: Text,
    /// A step, once a prompt was fed. It binds the same tensors for all tokens. Its input is the
    /// newest token, and so is its output.
    step: Option<Arc<Recording>>,
    /// The newest token on its way to the host.
    coming: Option<Reading>,
}

type Reading = Pin<Box<dyn Future<Output = Result<Vec<u32>>>>>;

/// The times of a pass over some tokens, from [`Session::profile`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The host's time to record and submit the pass. A pass of one token is recorded once and
    /// submitted again, as a session does.
    pub recording: Duration,
    /// The device's time for the pass.
    pub pass: Duration,
    /// The calls by their names, in the order of their first.
    pub calls: Vec<Timed>,
}

/// The time of the calls of one name in a pass.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timed {
    /// Their purpose, in GGUF's words: `attn_qkv`, `ffn_down`, `rope`.
    pub name: &'static str,
    /// How many calls there are.
    pub calls: usize,
    /// The device's time for them, one after the other.
    pub time: Duration,
}

/// Passes of which a [`Profile`] takes the median.
const PASSES: usize = 5;

impl Session {
    pub(crate) fn new(weights: &Arc<Weighed>, room: usize, sampling: Sampling) -> Result<Self> {
        if room == 0 {
            return Err(misuse("a session needs room for a token"));
        }
        if let Some(most) = weights.config.context.filter(|&most| room > most) {
            return Err(misuse(format!(
                "room for {room} tokens, the prompt's and new ones: the model takes {most} at most"
            )));
        }
        let named = |error: tilewise::Error| {
            error
                .map_text(|why| format!("room for {room} tokens, the prompt's and new ones: {why}"))
        };
        let text = Text::new(weights, room, sampling).map_err(named)?;
        Ok(Session { weights: weights.clone(), text, step: None, coming: None })
    }

    /// Appends tokens in one pass: a prompt, or more of a text. The work is submitted, not waited
    /// for. A token that [`next`](Self::next) has not given yet is dropped.
    ///
    /// # Errors
    /// [`Misuse`](tilewise::Error) without tokens, for a token beyond the vocabulary, and when the
    /// room is used up.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<()> {
        let (past, room) = (self.past(), self.text.past.room());
        let (count, vocabulary) = (tokens.len(), self.weights.vocabulary());
        if count == 0 || count > room - past {
            return Err(misuse(format!("{count} tokens behind {past}, room for {room}")));
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(misuse(format!("token {token} of a vocabulary of {vocabulary}")));
        }
        let input = Tensor::upload(self.context(), tokens, &[count])?;
        let calls = Calls::of(&self.weights, &self.text, &input)?;
        if self.step.is_none() {
            let step = Calls::of(&self.weights, &self.text, &self.text.next)?;
            // Compiles the kernels of the prompt and of all later steps at once.
            self.weights.context.warm_up(|to| {
                record(&calls, to)?;
                record(&step, to)?;
                self.text.past.advance(to, count)
            })?;
            let step = Recording::new(self.context(), move |to| record(&step, to))?;
            self.step = Some(Arc::new(step));
        }
        self.advance(|to| record(&calls, to), count)
    }

    /// The next token, which then belongs to the text.
    ///
    /// # Errors
    /// [`Misuse`](tilewise::Error) when nothing was fed, or the room is used up; otherwise the
    /// errors of the device.
    pub async fn next(&mut self) -> Result<u32> {
        let (past, room) = (self.past(), self.text.past.room());
        let coming = self.coming.take();
        let coming = coming.ok_or_else(|| {
            misuse(format!("no token follows: {past} are fed, and there is room for {room}"))
        })?;
        if let Some(step) = self.step.clone().filter(|_| past < room) {
            self.advance(|to| step.record(to), 1)?;
        }
        Ok(coming.await?[0])
    }

    /// [`next`](Self::next), and waits for the token.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next).
    #[cfg(not(target_family = "wasm"))]
    pub fn next_blocking(&mut self) -> Result<u32> {
        pollster::block_on(self.next())
    }

    /// The logits \[1, vocabulary\], f32, behind the last token that was fed or submitted.
    pub fn logits(&self) -> &Tensor {
        &self.text.logits
    }

    /// The number of tokens that were fed or submitted.
    pub fn past(&self) -> usize {
        self.text.past.length()
    }

    /// Times a pass over `rows` tokens at the beginning of the text: the whole, and the calls of
    /// each name. The text is lost.
    ///
    /// # Errors
    /// [`Misuse`](tilewise::Error) without room for `rows` tokens; the errors of the device.
    pub async fn profile(mut self, rows: usize) -> Result<Profile> {
        let room = self.text.past.room();
        if rows == 0 || rows > room {
            return Err(misuse(format!("a profile of {rows} tokens, room for {room}")));
        }
        let input = Tensor::upload(self.context(), &vec![0u32; rows], &[rows])?;
        let calls = Arc::new(Calls::of(&self.weights, &self.text, &input)?);
        self.text.past.rewind(&[0])?;
        let context = self.context();
        let step = calls.clone();
        let step = Recording::new(context, move |to| record(&step, to))?;
        let mut recording = Vec::new();
        for _ in 0..=PASSES {
            let start = Instant::now();
            context.submit(|to| if rows == 1 { step.record(to) } else { record(&calls, to) })?;
            recording.push(start.elapsed());
            context.wait().await?;
        }
        let pass = self.time(&calls, |_| true).await?;
        let mut of_names: Vec<Timed> = Vec::new();
        for name in calls.iter().map(|call| call.name) {
            if of_names.iter().all(|timed| timed.name != name) {
                let number = calls.iter().filter(|call| call.name == name).count();
                let time = self.time(&calls, |call| call.name == name).await?;
                of_names.push(Timed { name, calls: number, time });
            }
        }
        Ok(Profile { recording: median(recording.split_off(1)), pass, calls: of_names })
    }

    /// The device's time for some calls.
    async fn time(&self, calls: &[Call], which: impl Fn(&Call) -> bool) -> Result<Duration> {
        let mut times = Vec::new();
        for _ in 0..PASSES {
            let mut work = |to: &mut Recorder<'_>| {
                calls.iter().filter(|call| which(call)).try_for_each(|call| call.record(to))
            };
            let time = timing::time(self.context(), &mut work).await?;
            times.push(Duration::from_secs_f64(time.seconds));
        }
        Ok(median(times))
    }

    /// [`profile`](Self::profile), and waits for it.
    ///
    /// # Errors
    /// The errors of [`profile`](Self::profile).
    #[cfg(not(target_family = "wasm"))]
    pub fn profile_blocking(self, rows: usize) -> Result<Profile> {
        pollster::block_on(self.profile(rows))
    }

    fn context(&self) -> &Context {
        &self.weights.context
    }

    /// Submits a pass over `count` tokens, and begins to read the token that follows.
    fn advance(
        &mut self,
        pass: impl FnOnce(&mut Recorder<'_>) -> Result<()>,
        count: usize,
    ) -> Result<()> {
        self.coming = None;
        self.weights.context.submit(|to| {
            pass(to)?;
            self.text.past.advance(to, count)
        })?;
        let token = self.text.next.clone();
        let mut reading: Reading = Box::pin(async move { token.read().await });
        // The first poll submits the copy, before another step overwrites the token.
        let poll = reading.as_mut().poll(&mut task::Context::from_waker(Waker::noop()));
        self.coming = Some(match poll {
            Poll::Ready(read) => Box::pin(ready(read)),
            Poll::Pending => reading,
        });
        Ok(())
    }
}

fn record(calls: &[Call], to: &mut Recorder<'_>) -> Result<()> {
    calls.iter().try_for_each(|call| call.record(to))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("past", &self.past())
            .field("room", &self.text.past.room())
            .finish_non_exhaustive()
    }
}
