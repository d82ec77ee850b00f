//! Checks that the arguments fit the shader, for mistakes with which a run would go on and do
//! something else than was meant.

use super::args::Slot;
use super::dtype::DType;
use super::value::{Fill, Value};
use naga::{
    AddressSpace, Handle, Module, Override, Scalar, ScalarKind, StorageAccess, Type, TypeInner,
};
use tilewise_sanitizer::{Shader, to_odd};

/// Checks that every value is for an override that exists, fits its type, and is its only value.
pub(crate) fn overrides(shader: &Shader, given: &[(String, f64)]) -> Result<(), String> {
    let module = shader.module();
    let mut seen: Vec<Handle<Override>> = Vec::new();
    for (name, value) in given {
        let what = format!("--override {name}={value}");
        let Some((handle, declared)) =
            module.overrides.iter().find(|(_, declared)| is_named(declared, name))
        else {
            let known: Vec<String> =
                module.overrides.iter().map(|(_, declared)| designation(declared)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{what}: the shader has no such override; it has {known}"));
        };
        if seen.contains(&handle) {
            return Err(format!("{what}: the override {} is given twice", designation(declared)));
        }
        seen.push(handle);
        if let TypeInner::Scalar(scalar) = module.types[declared.ty].inner {
            value_fits(*value, scalar).map_err(|why| {
                format!("{what}: the override is of type {}, {why}", name_of(scalar))
            })?;
        }
    }
    Ok(())
}

/// The given overrides, as the end of an error that involves the shader's constants.
pub(crate) fn given(overrides: &[(String, f64)]) -> String {
    let given: Vec<String> =
        overrides.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if given.is_empty() {
        " (no --override is given)".to_owned()
    } else {
        format!(" (with --override {})", given.join(", "))
    }
}

/// Whether `name` names an override. An override with an `@id` is named only by its number.
fn is_named(declared: &Override, name: &str) -> bool {
    match declared.id {
        Some(id) => name.parse() == Ok(id),
        None => declared.name.as_deref() == Some(name),
    }
}

/// The name or number of an override on the command line.
fn designation(declared: &Override) -> String {
    let name = declared.name.as_deref().unwrap_or_default();
    match declared.id {
        Some(id) => format!("{id} (`{name}`)"),
        None => format!("`{name}`"),
    }
}

/// Checks that a value fits a type: naga would cut off fractions, and take any number for a
/// boolean.
fn value_fits(value: f64, scalar: Scalar) -> Result<(), String> {
    let bits = i32::from(scalar.width) * 8;
    let (least, most) = match scalar.kind {
        ScalarKind::Sint => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0),
        ScalarKind::Uint => (0.0, 2f64.powi(bits) - 1.0),
        ScalarKind::Bool if value == 0.0 || value == 1.0 => return Ok(()),
        ScalarKind::Bool => return Err("which is true, false, 1 or 0".to_owned()),
        _ => {
            let rounded = match scalar.width {
                2 => f64::from(half::f16::from_f32(to_odd(value))),
                4 => f64::from(value as f32),
                _ => value,
            };
            return if rounded.is_finite() {
                Ok(())
            } else {
                Err("which has no such finite number".to_owned())
            };
        }
    };
    if value.fract() != 0.0 || !value.is_finite() {
        return Err("which has whole numbers only".to_owned());
    }
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("which goes from {least} to {most}"))
    }
}

/// Checks that there are no more immediates than some variable of the shader takes. The run, which
/// knows the entry point, checks that there are enough.
pub(crate) fn immediates(shader: &Shader, given: usize) -> Result<(), String> {
    let module = shader.module();
    let declared = module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == AddressSpace::Immediate);
    let sizes = declared.map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()));
    match sizes.max() {
        _ if given == 0 => Ok(()),
        None => Err(format!(
            "--immediates: {given} bytes are given, and the shader declares no var<immediate>"
        )),
        Some(size) if given > size as usize => {
            Err(format!("--immediates: {given} bytes are given, and the shader declares {size}"))
        }
        Some(_) => Ok(()),
    }
}

/// Checks that the shader can write what is called an output, and reads no parts of wider elements.
pub(crate) fn binding(
    shader: &Shader,
    slot: Slot,
    value: &Value,
    dtype: DType,
) -> Result<(), String> {
    let module = shader.module();
    let is_here = |variable: &naga::GlobalVariable| {
        variable.binding.is_some_and(|at| (at.group, at.binding) == (slot.group, slot.binding))
    };
    // If nothing is declared, the run says so.
    let Some((_, variable)) =
        module.global_variables.iter().find(|(_, variable)| is_here(variable))
    else {
        return Ok(());
    };
    let name = variable.name.as_deref().unwrap_or_default();
    let is_written = matches!(
        variable.space,
        AddressSpace::Storage { access } if access.contains(StorageAccess::STORE)
    );
    if matches!(value, Value::Made { fill: Fill::Output, .. }) && !is_written {
        let space = if variable.space == AddressSpace::Uniform { "uniform" } else { "read" };
        return Err(format!(
            "the shader declares `{name}` as {space} and cannot write it; out: is for what it \
             writes"
        ));
    }
    match widest(module, variable.ty) {
        Some(scalar) if dtype.bytes() > usize::from(scalar.width) => {
            let (scalar, given) = (name_of(scalar), dtype.name());
            Err(format!(
                "elements of {given} for `{name}`, whose scalars are {scalar}: convert them, or \
                 give bytes as FILE.bin"
            ))
        }
        _ => Ok(()),
    }
}

/// The widest scalar in a type.
fn widest(module: &Module, ty: Handle<Type>) -> Option<Scalar> {
    match module.types[ty].inner {
        TypeInner::Array { base, .. } => widest(module, base),
        TypeInner::Struct { ref members, .. } => members
            .iter()
            .filter_map(|member| widest(module, member.ty))
            .max_by_key(|scalar| scalar.width),
        TypeInner::Atomic(scalar) => Some(scalar),
        ref inner => inner.scalar(),
    }
}

/// The scalar's name in WGSL.
fn name_of(scalar: Scalar) -> String {
    let kind = match scalar.kind {
        ScalarKind::Bool => return "bool".to_owned(),
        ScalarKind::Sint => 'i',
        ScalarKind::Uint => 'u',
        _ => 'f',
    };
    format!("{kind}{}", 8 * u32::from(scalar.width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_the_types() {
        let scalar = |kind, width| Scalar { kind, width };
        for (scalar, fits, refused) in [
            (
                Scalar::U32,
                &[0.0, 4_294_967_295.0][..],
                &[-1.0, 4_294_967_296.0, 1.5, f64::NAN, f64::INFINITY][..],
            ),
            (
                Scalar::I32,
                &[-2_147_483_648.0, 2_147_483_647.0],
                &[-2_147_483_649.0, 2_147_483_648.0, -0.5],
            ),
            (scalar(ScalarKind::Uint, 2), &[65_535.0], &[65_536.0]),
            (Scalar::BOOL, &[0.0, 1.0], &[2.0, 0.5, f64::NAN]),
            (Scalar::F32, &[1.5, -3e38], &[1e39, f64::NAN]),
            (scalar(ScalarKind::Float, 2), &[65_504.0], &[65_520.0]),
            (scalar(ScalarKind::Float, 8), &[1e300], &[f64::INFINITY]),
        ] {
            assert!(
                fits.iter().all(|&value| value_fits(value, scalar).is_ok()),
                "{}",
                name_of(scalar)
            );
            assert!(
                refused.iter().all(|&value| value_fits(value, scalar).is_err()),
                "{}",
                name_of(scalar)
            );
        }
    }
}
