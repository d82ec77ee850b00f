//! Packing, by hand and by round trips over all fields.

use super::*;
use crate::program::Packing;

fn apply<const R: usize>(f: Packing, sources: &[&[u32]]) -> [Vec<u32>; R] {
    let mut planes = std::array::from_fn(|_| vec![0xdead_beef; sources[0].len()]);
    let mut out: Vec<&mut [u32]> = planes.iter_mut().map(Vec::as_mut_slice).collect();
    pack(f, &mut out, sources);
    planes
}

/// One vector of floats into one word.
fn packed<const N: usize>(f: Packing, vector: [f32; N]) -> u32 {
    let planes = vector.map(|x| [x.to_bits()]);
    let sources: Vec<&[u32]> = planes.iter().map(|plane| plane.as_slice()).collect();
    apply::<1>(f, &sources)[0][0]
}

fn unpacked<const N: usize>(f: Packing, word: u32) -> [f32; N] {
    apply::<N>(f, &[&[word]]).map(|plane| f32::from_bits(plane[0]))
}

#[test]
fn normalised_fields_are_clamped_and_rounded_by_the_formula() {
    assert_eq!(packed(Packing::Pack4x8snorm, [-1.0, 1.0, 0.0, 0.5]), 0x4000_7f81);
    assert_eq!(packed(Packing::Pack4x8snorm, [-7.0, 7.0, -0.5, f32::INFINITY]), 0x7fc1_7f81);
    assert_eq!(packed(Packing::Pack4x8unorm, [-1.0, 1.0, 0.5, 2.0]), 0xff80_ff00);
    assert_eq!(packed(Packing::Pack2x16snorm, [-1.0, 0.5]), 0x4000_8001);
    assert_eq!(packed(Packing::Pack2x16unorm, [0.5, 9.0]), 0xffff_8000);
    // Just below half a step: an addition in f32 would round it up.
    assert_eq!(
        packed(Packing::Pack2x16unorm, [(0.5_f32 / 65535.0).next_down(), 0.5 / 65535.0]) & 0xffff,
        0
    );
}

#[test]
fn every_normalised_field_survives_a_round_trip() {
    for field in 0..=0xffff_u32 {
        let (bytes, halves) = ((field & 0xff) * 0x0101_0101, field * 0x0001_0001);
        let x = unpacked::<4>(Packing::Unpack4x8unorm, bytes);
        assert_eq!(x, [(f64::from(field & 0xff) / 255.0) as f32; 4]);
        assert_eq!(packed(Packing::Pack4x8unorm, x), bytes);
        let x = unpacked::<4>(Packing::Unpack4x8snorm, bytes);
        assert_eq!(x, [(f64::from(field as i8) / 127.0).max(-1.0) as f32; 4]);
        assert_eq!(
            packed(Packing::Pack4x8snorm, x),
            if field & 0xff == 0x80 { 0x8181_8181 } else { bytes }
        );
        let x = unpacked::<2>(Packing::Unpack2x16unorm, halves);
        assert_eq!(x, [(f64::from(field) / 65535.0) as f32; 2]);
        assert_eq!(packed(Packing::Pack2x16unorm, x), halves);
        let x = unpacked::<2>(Packing::Unpack2x16snorm, halves);
        assert_eq!(x, [(f64::from(field as i16) / 32767.0).max(-1.0) as f32; 2]);
        assert_eq!(
            packed(Packing::Pack2x16snorm, x),
            if field == 0x8000 { 0x8001_8001 } else { halves }
        );
    }
}

#[test]
fn components_go_from_low_to_high() {
    assert_eq!(unpacked(Packing::Unpack4x8unorm, 0xff00_00ff), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(unpacked(Packing::Unpack2x16snorm, 0x8001_7fff), [1.0, -1.0]);
    assert_eq!(unpacked(Packing::Unpack2x16float, 0xc000_3c01), [1.0 + 1.0 / 1024.0, -2.0]);
    assert_eq!(packed(Packing::Pack2x16float, [1.0, -65520.0]), 0xfc00_3c00);
}

#[test]
fn integer_bytes() {
    let minus = |x: i32| x as u32;
    let signed: [&[u32]; 4] = [
        &[1, minus(-1)],
        &[minus(-128), 127],
        &[300, minus(-300)],
        &[minus(i32::MIN), 0x1234_5678],
    ];
    assert_eq!(apply(Packing::Pack4xI8, &signed), [[0x002c_8001, 0x78d4_7fff]]);
    assert_eq!(apply(Packing::Pack4xI8Clamp, &signed), [[0x807f_8001, 0x7f80_7fff]]);
    let unsigned: [&[u32]; 4] = [&[1], &[255], &[256], &[u32::MAX]];
    assert_eq!(apply(Packing::Pack4xU8, &unsigned), [[0xff00_ff01]]);
    assert_eq!(apply(Packing::Pack4xU8Clamp, &unsigned), [[0xffff_ff01]]);
    let word: [&[u32]; 1] = [&[0x80ff_7f01]];
    assert_eq!(apply(Packing::Unpack4xI8, &word), [[1], [127], [minus(-1)], [minus(-128)]]);
    assert_eq!(apply(Packing::Unpack4xU8, &word), [[1], [127], [255], [128]]);
}

#[test]
fn dot_products_of_bytes() {
    let (a, b): (&[u32], &[u32]) =
        (&[0x8080_8080, 0x0403_0201, 0xff00_0002], &[0x8080_8080, 0x0807_0605, 0x02ff_fffe]);
    assert_eq!(apply(Packing::Dot4I8, &[a, b]), [[65536, 70, -6_i32 as u32]]);
    assert_eq!(apply(Packing::Dot4U8, &[a, b]), [[65536, 70, 510 + 508]]);
}
