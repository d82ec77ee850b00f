//! Checks that a plan's passes bind no more than a device allows, and that together they compute
//! every element of C once, over all of K.

use std::collections::HashMap;
use tilewise_core::kernel::{Params, Role};
use tilewise_core::plan::{Binding, Pass};
use tilewise_core::{Caps, Format, Plan, Problem};

/// Checks passes against the limits of a device.
///
/// # Errors
/// The fault, in words.
pub fn fit(passes: &[Pass], caps: &Caps) -> Result<(), String> {
    let bytes = caps.max_binding_bytes.min(caps.max_buffer_bytes);
    for pass in passes {
        let counts = [
            ("invocations", pass.threads, caps.max_threads()),
            ("bytes of workgroup memory", pass.workgroup_bytes, caps.max_workgroup_bytes),
            ("storage buffers", pass.bindings.len() as u32, caps.max_storage_buffers),
            ("workgroups along x", pass.grid[0], caps.max_workgroups),
            ("workgroups along y", pass.grid[1], caps.max_workgroups),
        ];
        if let Some((what, count, most)) = counts.iter().find(|(_, count, most)| count > most) {
            return Err(format!("{count} {what}, at most {most}: {pass:?}"));
        }
        let unbound = |binding: &&Binding| {
            binding.bytes > bytes || !binding.start.is_multiple_of(caps.storage_alignment.into())
        };
        if let Some(Binding { role, bytes, start, .. }) = pass.bindings.iter().find(unbound) {
            return Err(format!("{role:?} binds {bytes} bytes from {start}: {pass:?}"));
        }
    }
    Ok(())
}

/// Checks a plan against the limits, and against the product that it is for.
///
/// # Errors
/// The fault, in words.
pub fn check(plan: &Plan, caps: &Caps) -> Result<(), String> {
    fit(&plan.passes, caps)?;
    let limit = caps.max_binding_bytes.min(caps.max_buffer_bytes);
    let wrong = |what: &str, pass: &Pass| Err(format!("{what}: {pass:?}"));
    let scratch = caps.max_scratch_bytes;
    if plan.packed_bytes > caps.max_buffer_bytes.min(scratch)
        || plan.scratch_bytes > limit.min(scratch)
    {
        return Err(format!(
            "{} bytes of packed operands, {} of scratch",
            plan.packed_bytes, plan.scratch_bytes
        ));
    }
    // If an operand is packed, zeros extend K.
    let (mut summed, mut packed_k) = (0, 0);
    let mut written: HashMap<u64, u64> = HashMap::new();
    let columns = plan.problem.epilogue.columns();
    for pass in &plan.passes {
        for Binding { role, from, start, bytes, .. } in &pass.bindings {
            if storage(plan, *from).is_some_and(|end| start + bytes > end) {
                return wrong(&format!("{role:?} reaches beyond its storage"), pass);
            }
        }
        let params = &pass.params;
        let [m, n, entries] = [params.m, params.n, params.entries].map(u64::from);
        let k = u64::from(params.k);
        // A table of groups lies in the memory for packed operands, too.
        let is_packed =
            |binding: &Binding| binding.from == Role::Packed && binding.role != Role::Packed;
        match pass.label.as_str() {
            "finish" | "groups" => {}
            label if label.starts_with("pack ") => packed_k = k,
            _ if pass.bindings.iter().any(is_packed) => summed += packed_k,
            _ => summed += k,
        }
        let Some(c) = pass.bindings.iter().find(|binding| binding.role == Role::C) else {
            continue;
        };
        if std::mem::take(&mut summed) != plan.problem.k {
            return wrong("not all of K", pass);
        }
        let first = c.start / plan.problem.c.format.planes()[0].bytes + u64::from(params.c_offset);
        // Each row of a grouped product belongs to one of the groups, and every group must look for
        // it.
        let grouped = plan.problem.grouping.traits().shares_rows;
        let (copies, times) = if grouped { (1, entries) } else { (entries, 1) };
        for entry in 0..copies {
            let own = entry_of(params, entry);
            for row in 0..m {
                for col in 0..n / columns {
                    let at = first + own + row * u64::from(params.c_ld) + col;
                    *written.entry(at).or_default() += times;
                }
            }
        }
    }
    let Problem { m, n, batch, c, .. } = plan.problem;
    let times = plan.problem.entries() / batch.max(1);
    for entry in 0..batch {
        for row in 0..m {
            for col in 0..n / columns {
                let at = plan.problem.entry(&c, entry).offset + row * c.ld + col;
                let got = written.remove(&at).unwrap_or_default();
                if got != times && !plan.passes.is_empty() {
                    return Err(format!(
                        "({entry}, {row}, {col}) of C is written {got} times for {times} groups"
                    ));
                }
            }
        }
    }
    if written.is_empty() {
        Ok(())
    } else {
        Err(format!("written, but not C's: elements {written:?}"))
    }
}

/// The distance from the first entry of C to this one.
fn entry_of(params: &Params, entry: u64) -> u64 {
    if params.nest == [0; 4] {
        return entry * u64::from(params.c_batch);
    }
    let (mut rest, mut at) = (entry, 0);
    for (size, stride) in params.nest.into_iter().zip(params.c_nest).rev() {
        at += rest % u64::from(size) * u64::from(stride);
        rest /= u64::from(size);
    }
    at
}

/// Bytes of a dense operand's storage, in whole words and vectors; or of the memory for packed
/// operands.
fn storage(plan: &Plan, role: Role) -> Option<u64> {
    let problem = &plan.problem;
    let operand = match role {
        Role::Packed => return Some(plan.packed_bytes),
        Role::A => problem.a,
        Role::B => problem.b,
        Role::C => problem.c,
        Role::Bias => problem.epilogue.bias?.operand,
        Role::Residual => problem.epilogue.residual?,
        _ => return None,
    };
    match operand.format {
        Format::Dense(dtype) => Some((operand.len * dtype.bytes()).next_multiple_of(16)),
        Format::Quantized(..) => None,
    }
}
