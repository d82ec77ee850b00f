//! Work on a deep stack. naga's parser calls itself once per term of an expression: generated text
//! of a few hundred terms would overflow a common stack.

/// The size of the stack: enough for tens of thousands of terms. Memory that is not touched costs
/// nothing.
#[cfg(not(target_family = "wasm"))]
const STACK_BYTES: usize = 256 << 20;

/// Does the work on a thread with a deep stack. It is public for other code that hands long WGSL to
/// naga.
///
/// # Errors
/// The system's error if it has no thread to give.
#[cfg(not(target_family = "wasm"))]
pub fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Does the work on the calling thread, because there are no others here. Never fails.
#[cfg(target_family = "wasm")]
pub fn deep<T>(work: impl FnOnce() -> T) -> std::io::Result<T> {
    Ok(work())
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, Launch, Shader};

    #[test]
    fn long_expressions() {
        let terms = "+ o[1]".repeat(30_000);
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
             @compute @workgroup_size(1) fn main() {{ o[0] = o[1] {terms}; }}"
        );
        let shader = Shader::parse("long.wgsl", &source).unwrap();
        let report =
            Launch::new(&shader).bind(0, 0, Buffer::new([0, 0, 0, 0, 2, 0, 0, 0])).run().unwrap();
        assert_eq!(report.buffers[&(0, 0)], [0x62, 0xEA, 0, 0, 2, 0, 0, 0]);
    }
}
