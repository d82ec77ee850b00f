//! Compiling naga's IR: calls are inlined, composites are spread over registers, and pointers are
//! resolved to a variable and an offset.

mod built_in;
mod expression;
mod globals;
mod math;
mod operator;
mod parts;
mod pointer;
mod shape;
mod spans;
mod statement;

use crate::program::{CONSTANT, Check, Global, Inst, Local, Node, Op, Program, Reg, Site, SiteId};
use crate::{Error, Launch, Options, Shader};
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Span};
use pointer::Place;
use shape::Types;
use std::collections::HashMap;

/// The parts of a launch, beside the shader, that the compiled form depends on.
#[derive(Debug, PartialEq)]
pub(crate) struct Key {
    entry: Option<String>,
    overrides: HashMap<String, f64>,
    subgroup_size: u32,
    zero_init: crate::ZeroInit,
    fused: bool,
}

impl Key {
    pub(crate) fn of(launch: &Launch<'_>) -> Self {
        let Options { subgroup_size, zero_init, fused, .. } = launch.options;
        Key {
            entry: launch.entry.clone(),
            overrides: launch.overrides.clone(),
            subgroup_size,
            zero_init,
            fused,
        }
    }
}

/// Compiles the entry point that a launch names, with its overrides.
pub(crate) fn compile(launch: &Launch<'_>) -> Result<Program, Error> {
    let shader = launch.shader;
    let name = entry_name(shader, launch.entry.as_deref())?;
    let constants = launch.overrides.iter().map(|(name, value)| (name.clone(), *value)).collect();
    let entry = Some((naga::ShaderStage::Compute, name.as_str()));
    let (module, info) = naga::back::pipeline_constants::process_overrides(
        shader.module(),
        shader.info(),
        entry,
        &constants,
    )
    .map_err(|error| Error::Override(chain(&error)))?;
    let index = module
        .entry_points
        .iter()
        .position(|point| point.stage == naga::ShaderStage::Compute && point.name == name)
        .ok_or_else(|| Error::Entry {
            name: name.clone(),
            why: "lost by the overrides".to_owned(),
        })?;
    let entry = &module.entry_points[index];
    let subgroup_size = launch.options.subgroup_size;

    let mut compiler = Compiler {
        shader,
        module: &module,
        info: &info,
        types: Types { module: &module, arena: &module.types, subgroup_size },
        zero_init: launch.options.zero_init,
        fused: launch.options.fused,
        constants: HashMap::new(),
        constant_values: Vec::new(),
        next: 0,
        registers: 0,
        next_plane: 0,
        planes: 0,
        nodes: Vec::new(),
        built_ins: Vec::new(),
        globals: Vec::new(),
        global_places: HashMap::new(),
        locals: Vec::new(),
        checks: Vec::new(),
        sites: Vec::new(),
        site_ids: HashMap::new(),
    };
    let body = compiler.entry_point(&entry.function, info.get_entry_point(index))?;
    let workgroup_size = entry.workgroup_size;
    let Compiler {
        constant_values,
        registers,
        planes,
        built_ins,
        globals,
        locals,
        checks,
        sites,
        ..
    } = compiler;
    Ok(Program {
        workgroup_size,
        body,
        registers,
        planes,
        constants: constant_values,
        built_ins,
        globals,
        locals,
        checks,
        sites,
        module: module.into_owned(),
    })
}

/// The text of an error and of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn entry_name(shader: &Shader, asked: Option<&str>) -> Result<String, Error> {
    let names: Vec<_> = shader.entry_points().collect();
    match asked {
        Some(name) if names.contains(&name) => Ok(name.to_owned()),
        Some(name) => Err(Error::Entry {
            name: name.to_owned(),
            why: format!("the shader has no such compute entry point; it has {names:?}"),
        }),
        None => match names[..] {
            [name] => Ok(name.to_owned()),
            [] => Err(Error::Entry {
                name: String::new(),
                why: "the shader has no compute entry point".to_owned(),
            }),
            _ => Err(Error::Entry { name: String::new(), why: format!("name one of {names:?}") }),
        },
    }
}

/// Registers or place that an expression stands for.
#[derive(Clone, Debug)]
enum Value {
    Regs(Vec<Reg>),
    Place(Place),
}

/// One function being compiled; an inlined call has its own.
struct Frame<'a> {
    function: &'a Function,
    info: &'a FunctionInfo,
    arguments: Vec<Value>,
    values: HashMap<Handle<Expression>, Value>,
    locals: HashMap<Handle<LocalVariable>, u32>,
    /// The local that takes the value of `return`.
    result: Option<u32>,
    caller: Option<SiteId>,
    /// Spans for expressions to which naga gave none: the spans of their users.
    spans: HashMap<Handle<Expression>, Span>,
    /// The used parts of loads whose value is only ever used in part.
    parts: HashMap<Handle<Expression>, Vec<u32>>,
}

struct Compiler<'a> {
    shader: &'a Shader,
    module: &'a Module,
    info: &'a ModuleInfo,
    types: Types<'a>,
    zero_init: crate::ZeroInit,
    fused: bool,
    constants: HashMap<u32, Reg>,
    constant_values: Vec<u32>,
    /// The next free register; `registers` is the most that were ever in use. A register lives
    /// until the end of its block.
    next: Reg,
    registers: Reg,
    next_plane: u32,
    planes: u32,
    /// Blocks under construction, innermost last.
    nodes: Vec<Vec<Node>>,
    built_ins: Vec<(Reg, crate::program::BuiltIn)>,
    globals: Vec<Global>,
    global_places: HashMap<Handle<GlobalVariable>, Place>,
    locals: Vec<Local>,
    checks: Vec<Check>,
    sites: Vec<Site>,
    site_ids: HashMap<Site, SiteId>,
}

impl<'a> Compiler<'a> {
    fn entry_point(
        &mut self,
        function: &'a Function,
        info: &'a FunctionInfo,
    ) -> Result<Vec<Node>, Error> {
        let arguments = self.built_in_arguments(function)?;
        self.nodes.push(Vec::new());
        self.declare_globals(info)?;
        let declarations = self.nodes.pop().unwrap_or_default();
        let mut frame = Frame {
            function,
            info,
            arguments,
            values: HashMap::new(),
            locals: HashMap::new(),
            result: None,
            caller: None,
            spans: spans::borrowed(function),
            parts: parts::used(function, info),
        };
        let mut body = declarations;
        body.append(&mut self.function_body(&mut frame)?);
        Ok(body)
    }

    fn emit(&mut self, op: Op, site: SiteId) {
        let cost = arithmetic(&op);
        let Some(block) = self.nodes.last_mut() else { return };
        if let Some(Node::Code { insts, arithmetic }) = block.last_mut() {
            insts.push(Inst { op, site });
            *arithmetic += cost;
        } else {
            block.push(Node::Code { insts: vec![Inst { op, site }], arithmetic: cost });
        }
    }

    fn push(&mut self, node: Node) {
        if let Some(block) = self.nodes.last_mut() {
            block.push(node);
        }
    }

    /// Takes consecutive registers, which are free again at the end of the block.
    fn registers(&mut self, count: u32) -> Reg {
        let first = self.next;
        self.next += count;
        self.registers = self.registers.max(self.next);
        first
    }

    fn constant(&mut self, bits: u32) -> Reg {
        let values = &mut self.constant_values;
        *self.constants.entry(bits).or_insert_with(|| {
            values.push(bits);
            CONSTANT | (values.len() as u32 - 1)
        })
    }

    /// The value of a register that holds a constant.
    fn constant_of(&self, reg: Reg) -> Option<u32> {
        (reg & CONSTANT != 0).then(|| self.constant_values[(reg & !CONSTANT) as usize])
    }

    fn local(&mut self, local: Local) -> u32 {
        self.next_plane += local.planes;
        self.planes = self.planes.max(self.next_plane);
        self.locals.push(local);
        self.locals.len() as u32 - 1
    }

    fn site(&mut self, span: Span, caller: Option<SiteId>) -> SiteId {
        let span = span.to_range().map(|range| (range.start as u32, range.end as u32));
        let site = Site { span, caller };
        let sites = &mut self.sites;
        *self.site_ids.entry(site.clone()).or_insert_with(|| {
            sites.push(site);
            sites.len() as u32 - 1
        })
    }

    fn unsupported(&self, what: impl Into<String>, span: Span) -> Error {
        let at = span.to_range().and_then(|range| self.shader.locate(range));
        Error::Unsupported { what: what.into(), at }
    }

    /// Adds the place in the source to an error that has none.
    fn located(&self, error: Error, span: Span) -> Error {
        match error {
            Error::Unsupported { what, at: None } => self.unsupported(what, span),
            other => other,
        }
    }
}

/// The number of scalar operations of arithmetic in one operation.
fn arithmetic(op: &Op) -> u32 {
    match op {
        Op::Unary { .. }
        | Op::Binary { .. }
        | Op::Ternary { .. }
        | Op::InsertBits { .. }
        | Op::Convert { .. } => 1,
        Op::Pack { dst, src, .. } => dst.len().max(src.len()) as u32,
        Op::CoopMultiplyAdd { c, a_shape, .. } => c.len() as u32 * a_shape.columns,
        _ => 0,
    }
}
