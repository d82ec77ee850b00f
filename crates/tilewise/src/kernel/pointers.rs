//! A check against pointers to parts of variables as arguments of functions: naga's SPIR-V writer
//! panics on them.

use super::definition::Kernel;
use naga::{Block, Expression, Function, Statement, valid::FunctionInfo};
use tilewise_core::{Error, Result};
use tilewise_sanitizer::Shader;

/// `Misuse` for a text that passes a pointer to an element or a member to a function.
pub(super) fn passed(kernel: &Kernel, shader: &Shader) -> Result<()> {
    let (module, info) = (shader.module(), shader.info());
    let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
    let entries = module.entry_points.iter().enumerate();
    let entries = entries.map(|(index, entry)| (&entry.function, info.get_entry_point(index)));
    for (function, info) in functions.chain(entries) {
        if let Some(argument) = part(shader, function, info) {
            let span = function.expressions.get_span(argument).to_range();
            let place = span.and_then(|span| shader.locate(span));
            let at = place.unwrap_or_else(|| kernel.name.clone());
            return Err(Error::Misuse(format!(
                "{at}: a pointer to a part of a variable cannot be passed to a function: pass one \
                 to the whole variable, or the part's value"
            )));
        }
    }
    Ok(())
}

/// The first argument of a call that points to an element or a member.
fn part(
    shader: &Shader,
    function: &Function,
    info: &FunctionInfo,
) -> Option<naga::Handle<Expression>> {
    let types = &shader.module().types;
    let is_part = |argument: naga::Handle<Expression>| {
        let access = matches!(
            function.expressions[argument],
            Expression::Access { .. } | Expression::AccessIndex { .. }
        );
        access && info[argument].ty.inner_with(types).pointer_space().is_some()
    };
    // A stack of blocks, each with its next statement: they are visited in the order of the text.
    let mut blocks: Vec<(&Block, usize)> = vec![(&function.body, 0)];
    while let Some((block, next)) = blocks.pop() {
        let Some(statement) = block.get(next) else { continue };
        blocks.push((block, next + 1));
        match statement {
            Statement::Call { arguments, .. } => {
                if let Some(&argument) = arguments.iter().find(|argument| is_part(**argument)) {
                    return Some(argument);
                }
            }
            Statement::Block(inner) => blocks.push((inner, 0)),
            Statement::If { accept, reject, .. } => blocks.extend([(reject, 0), (accept, 0)]),
            Statement::Switch { cases, .. } => {
                blocks.extend(cases.iter().rev().map(|case| (&case.body, 0)));
            }
            Statement::Loop { body, continuing, .. } => {
                blocks.extend([(continuing, 0), (body, 0)]);
            }
            _ => {}
        }
    }
    None
}
