//! Loads of parts of variables. naga loads a whole variable even if the source names a part of it,
//! such as `v.xy`. Reading a part must not count as reading the rest.

use naga::valid::FunctionInfo;
use naga::{Expression, Function, Handle};
use std::collections::HashMap;

/// For every load of which only parts are used: the components or members that are used.
pub(super) fn used(
    function: &Function,
    info: &FunctionInfo,
) -> HashMap<Handle<Expression>, Vec<u32>> {
    let mut parts: HashMap<Handle<Expression>, (usize, Vec<u32>)> = HashMap::new();
    let is_load = |handle: Handle<Expression>| {
        matches!(function.expressions[handle], Expression::Load { .. })
    };
    for (_, expression) in function.expressions.iter() {
        match *expression {
            Expression::AccessIndex { base, index } if is_load(base) => {
                let (users, parts) = parts.entry(base).or_default();
                *users += 1;
                parts.push(index);
            }
            Expression::Swizzle { size, vector, pattern } if is_load(vector) => {
                let (users, parts) = parts.entry(vector).or_default();
                *users += 1;
                parts.extend(pattern[..size as usize].iter().map(|&component| component as u32));
            }
            _ => {}
        }
    }
    let only = |(load, (users, mut parts)): (Handle<Expression>, (usize, Vec<u32>))| {
        parts.sort_unstable();
        parts.dedup();
        (users == info[load].ref_count).then_some((load, parts))
    };
    parts.into_iter().filter_map(only).collect()
}
