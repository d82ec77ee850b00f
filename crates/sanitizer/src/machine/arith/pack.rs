//! Packing and unpacking, by the formulas of WGSL.

use super::float::{maximum, minimum};
use super::half;
use crate::program::Packing;

/// Packs or unpacks. Results and sources are planes, in the order of a vector's components.
pub(crate) fn pack(f: Packing, out: &mut [&mut [u32]], sources: &[&[u32]]) {
    match f {
        Packing::Pack4x8snorm => join(8, out, sources, |x| norm(x, -1.0, 127.0)),
        Packing::Pack4x8unorm => join(8, out, sources, |x| norm(x, 0.0, 255.0)),
        Packing::Pack2x16snorm => join(16, out, sources, |x| norm(x, -1.0, 32767.0)),
        Packing::Pack2x16unorm => join(16, out, sources, |x| norm(x, 0.0, 65535.0)),
        Packing::Pack2x16float => join(16, out, sources, |x| half::round(f32::from_bits(x))),
        Packing::Pack4xI8 | Packing::Pack4xU8 => join(8, out, sources, |x| x),
        Packing::Pack4xI8Clamp => join(8, out, sources, |x| (x as i32).clamp(-128, 127) as u32),
        Packing::Pack4xU8Clamp => join(8, out, sources, |x| x.min(255)),
        Packing::Unpack4x8snorm => split(8, out, sources, |x| snorm(f32::from(x as i8), 127.0)),
        Packing::Unpack4x8unorm => {
            split(8, out, sources, |x| (f32::from(x as u8) / 255.0).to_bits())
        }
        Packing::Unpack2x16snorm => {
            split(16, out, sources, |x| snorm(f32::from(x as i16), 32767.0))
        }
        Packing::Unpack2x16unorm => {
            split(16, out, sources, |x| (f32::from(x as u16) / 65535.0).to_bits())
        }
        Packing::Unpack2x16float => split(16, out, sources, |x| half::widen(x).to_bits()),
        Packing::Unpack4xI8 => split(8, out, sources, |x| i32::from(x as i8) as u32),
        Packing::Unpack4xU8 => split(8, out, sources, |x| x),
        Packing::Dot4I8 => dot(out, sources, |x| i32::from(x as i8) as u32),
        Packing::Dot4U8 => dot(out, sources, |x| u32::from(x as u8)),
    }
}

/// Joins fields of `width` bits, the first lowest. `field` gives at least the low `width` bits of
/// each.
#[inline]
fn join(width: u32, out: &mut [&mut [u32]], sources: &[&[u32]], field: impl Fn(u32) -> u32) {
    let mask = (1 << width) - 1;
    out[0].fill(0);
    for (source, offset) in sources.iter().zip((0..).step_by(width as usize)) {
        for (out, &x) in out[0].iter_mut().zip(*source) {
            *out |= (field(x) & mask) << offset;
        }
    }
}

/// The inverse of [`join`]; `value` gets the field with zeros above.
#[inline]
fn split(width: u32, out: &mut [&mut [u32]], sources: &[&[u32]], value: impl Fn(u32) -> u32) {
    let mask = (1 << width) - 1;
    for (out, offset) in out.iter_mut().zip((0_u32..).step_by(width as usize)) {
        for (out, &x) in out.iter_mut().zip(sources[0]) {
            *out = value(x >> offset & mask);
        }
    }
}

/// The sum of the four products of bytes, which `value` extends.
#[inline]
fn dot(out: &mut [&mut [u32]], sources: &[&[u32]], value: impl Fn(u32) -> u32) {
    for (out, (&x, &y)) in out[0].iter_mut().zip(sources[0].iter().zip(sources[1])) {
        *out = [0, 8, 16, 24]
            .map(|offset| value(x >> offset).wrapping_mul(value(y >> offset)))
            .into_iter()
            .fold(0, u32::wrapping_add);
    }
}

/// floor(0.5 + scale * clamp(x, low, 1)), in two's complement. It is computed in f64, in which only
/// the last step rounds.
#[inline]
fn norm(bits: u32, low: f32, scale: f64) -> u32 {
    let x = minimum(maximum(f32::from_bits(bits), low), 1.0);
    (0.5 + scale * f64::from(x)).floor() as i32 as u32
}

#[inline]
fn snorm(value: f32, scale: f32) -> u32 {
    (value / scale).max(-1.0).to_bits()
}
