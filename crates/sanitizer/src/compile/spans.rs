//! Places for expressions to which naga gives none, such as the load behind a plain variable's
//! name. They borrow the place of their user.

use naga::{Block, Expression, Function, Handle, Span, Statement};
use std::collections::HashMap;

/// Places for the expressions of a function that have none of their own.
pub(super) fn borrowed(function: &Function) -> HashMap<Handle<Expression>, Span> {
    let mut spans = HashMap::new();
    statements(&function.body, &mut |handle, span| lend(function, &mut spans, handle, span));
    // An expression comes after the expressions that it uses.
    let handles: Vec<_> = function.expressions.iter().map(|(handle, _)| handle).collect();
    for &user in handles.iter().rev() {
        let own = function.expressions.get_span(user);
        let span = if own.is_defined() { own } else { spans.get(&user).copied().unwrap_or(own) };
        operands(&function.expressions[user], &mut |used| lend(function, &mut spans, used, span));
    }
    spans
}

fn lend(
    function: &Function,
    spans: &mut HashMap<Handle<Expression>, Span>,
    handle: Handle<Expression>,
    span: Span,
) {
    if span.is_defined() && !function.expressions.get_span(handle).is_defined() {
        spans.entry(handle).or_insert(span);
    }
}

fn statements(block: &Block, visit: &mut impl FnMut(Handle<Expression>, Span)) {
    for (statement, &span) in block.span_iter() {
        match statement {
            Statement::Block(block) => statements(block, visit),
            Statement::If { condition, accept, reject } => {
                visit(*condition, span);
                statements(accept, visit);
                statements(reject, visit);
            }
            Statement::Switch { selector, cases } => {
                visit(*selector, span);
                cases.iter().for_each(|case| statements(&case.body, visit));
            }
            Statement::Loop { body, continuing, break_if } => {
                statements(body, visit);
                statements(continuing, visit);
                break_if.iter().for_each(|&condition| visit(condition, span));
            }
            Statement::Return { value: Some(value) } => visit(*value, span),
            Statement::Store { pointer, value } => {
                visit(*pointer, span);
                visit(*value, span);
            }
            Statement::Atomic { pointer, value, .. } => {
                visit(*pointer, span);
                visit(*value, span);
            }
            Statement::Call { arguments, .. } => {
                arguments.iter().for_each(|&argument| visit(argument, span))
            }
            _ => {}
        }
    }
}

fn operands(expression: &Expression, visit: &mut impl FnMut(Handle<Expression>)) {
    match *expression {
        Expression::Compose { ref components, .. } => {
            components.iter().for_each(|&component| visit(component))
        }
        Expression::Access { base, index } => {
            visit(base);
            visit(index);
        }
        Expression::AccessIndex { base: used, .. }
        | Expression::Splat { value: used, .. }
        | Expression::Swizzle { vector: used, .. }
        | Expression::Load { pointer: used }
        | Expression::Unary { expr: used, .. }
        | Expression::As { expr: used, .. }
        | Expression::Relational { argument: used, .. } => visit(used),
        Expression::Binary { left, right, .. } => {
            visit(left);
            visit(right);
        }
        Expression::Select { condition, accept, reject } => {
            [condition, accept, reject].into_iter().for_each(visit)
        }
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            [Some(arg), arg1, arg2, arg3].into_iter().flatten().for_each(visit);
        }
        _ => {}
    }
}
