//! Integers against i128, exhaustively for 16 bits.

use super::*;

/// The number that a register of `ty` stands for.
fn decode(ty: Ty, bits: u64) -> i128 {
    match ty {
        Ty::I16 | Ty::I32 => i128::from(bits as u32 as i32),
        Ty::I64 => i128::from(bits as i64),
        _ => i128::from(bits),
    }
}

/// The register that holds a number modulo 2^width.
fn encode(ty: Ty, value: i128) -> u64 {
    match ty {
        Ty::I16 => u64::from(i32::from(value as i16) as u32),
        Ty::U16 => u64::from(value as u16),
        Ty::I32 | Ty::U32 => u64::from(value as u32),
        _ => value as u64,
    }
}

/// Zero, the ends, neighbours of powers of two, and some without structure; every value of 16 bits
/// if `all`.
fn values(ty: Ty, all: bool) -> Vec<u64> {
    if all && ty.bits() == 16 {
        return (0..=0xffff).map(|x| encode(ty, x)).collect();
    }
    let powers = (0..=ty.bits()).flat_map(|k| [-1, 0, 1].map(|d| (1_i128 << k) + d));
    let mut values: Vec<u64> = powers
        .flat_map(|x| [x, -x])
        .chain(random().map(i128::from).take(20))
        .map(|x| encode(ty, x))
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The bits of a number as text, highest first.
fn binary_text(ty: Ty, x: i128) -> String {
    let width = ty.bits() as usize;
    format!("{:0width$b}", x & ((1 << width) - 1))
}

fn from_text(ty: Ty, text: &str) -> i128 {
    decode(ty, encode(ty, i128::from_str_radix(text, 2).unwrap()))
}

fn check1(f: Unary, expected: impl Fn(Ty, i128) -> i128) {
    for ty in INTEGERS {
        let values = values(ty, true);
        for (&x, got) in values.iter().zip(apply1(f, ty, ty, &values)) {
            assert_same(ty, got, encode(ty, expected(ty, decode(ty, x))), (f, x));
        }
    }
}

#[test]
fn signs() {
    check1(Unary::Negate, |_, x| -x);
    check1(Unary::Abs, |_, x| x.abs());
    check1(Unary::Sign, |_, x| x.signum());
    check1(Unary::BitwiseNot, |_, x| -1 - x);
}

#[test]
fn bits() {
    check1(Unary::CountOneBits, |ty, x| binary_text(ty, x).matches('1').count() as i128);
    check1(Unary::CountLeadingZeros, |ty, x| {
        binary_text(ty, x).find('1').map_or(i128::from(ty.bits()), |k| k as i128)
    });
    check1(Unary::CountTrailingZeros, |ty, x| {
        let reversed: String = binary_text(ty, x).chars().rev().collect();
        reversed.find('1').map_or(i128::from(ty.bits()), |k| k as i128)
    });
    check1(Unary::ReverseBits, |ty, x| {
        from_text(ty, &binary_text(ty, x).chars().rev().collect::<String>())
    });
    check1(Unary::FirstTrailingBit, |ty, x| {
        let reversed: String = binary_text(ty, x).chars().rev().collect();
        reversed.find('1').map_or(-1, |k| k as i128)
    });
    check1(Unary::FirstLeadingBit, |ty, x| {
        let wanted = if ty.is_signed() && x < 0 { '0' } else { '1' };
        binary_text(ty, x).find(wanted).map_or(-1, |k| i128::from(ty.bits()) - 1 - k as i128)
    });
}

fn check2(f: Binary, expected: impl Fn(i128, i128) -> i128) {
    for ty in INTEGERS {
        let (a, b) = pairs(&values(ty, false));
        for ((&x, &y), got) in a.iter().zip(&b).zip(apply2(f, [ty; 3], &a, &b)) {
            assert_same(ty, got, encode(ty, expected(decode(ty, x), decode(ty, y))), (f, x, y));
        }
    }
}

#[test]
fn arithmetic_wraps_and_division_is_total() {
    check2(Binary::Add, |x, y| x + y);
    check2(Binary::Subtract, |x, y| x - y);
    check2(Binary::Multiply, i128::wrapping_mul);
    check2(Binary::Divide, |x, y| if y == 0 { x } else { x / y });
    check2(Binary::Modulo, |x, y| if y == 0 { 0 } else { x % y });
    check2(Binary::And, |x, y| x & y);
    check2(Binary::Or, |x, y| x | y);
    check2(Binary::Xor, |x, y| x ^ y);
    check2(Binary::Min, i128::min);
    check2(Binary::Max, i128::max);
}

#[test]
fn the_least_integer_over_minus_one_is_itself() {
    for ty in [Ty::I16, Ty::I32, Ty::I64] {
        let (least, minus_one) = (encode(ty, -1 << (ty.bits() - 1)), encode(ty, -1));
        assert_eq!(apply2(Binary::Divide, [ty; 3], &[least], &[minus_one]), [least]);
        assert_eq!(apply2(Binary::Modulo, [ty; 3], &[least], &[minus_one]), [0]);
        assert_eq!(apply1(Unary::Abs, ty, ty, &[least]), [least]);
        assert_eq!(apply1(Unary::Negate, ty, ty, &[least]), [least]);
    }
}

#[test]
fn comparisons_are_of_numbers() {
    let functions: [(Binary, Relation<i128>); 6] = [
        (Binary::Equal, i128::eq),
        (Binary::NotEqual, i128::ne),
        (Binary::Less, i128::lt),
        (Binary::LessEqual, i128::le),
        (Binary::Greater, i128::gt),
        (Binary::GreaterEqual, i128::ge),
    ];
    for (f, expected) in functions {
        for ty in INTEGERS {
            let (a, b) = pairs(&values(ty, false));
            for ((&x, &y), got) in a.iter().zip(&b).zip(apply2(f, [ty, ty, Ty::Bool], &a, &b)) {
                assert_same(
                    ty,
                    got,
                    u64::from(expected(&decode(ty, x), &decode(ty, y))),
                    (f, x, y),
                );
            }
        }
    }
}

#[test]
fn shifts_are_modulo_the_width() {
    for ty in INTEGERS {
        for count in [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, u64::from(u32::MAX)] {
            let values = values(ty, false);
            let counts = vec![count; values.len()];
            let shifted = |f| apply2(f, [ty, Ty::U32, ty], &values, &counts);
            let by = count as u32 % ty.bits();
            for ((&x, left), right) in
                values.iter().zip(shifted(Binary::ShiftLeft)).zip(shifted(Binary::ShiftRight))
            {
                assert_same(ty, left, encode(ty, decode(ty, x) << by), (x, "<<", count));
                assert_same(ty, right, encode(ty, decode(ty, x) >> by), (x, ">>", count));
            }
        }
    }
}

#[test]
fn clamp_is_min_of_max_even_where_the_bounds_are_swapped() {
    let (x, low, high) = ([5_i32, 5, 5, -5], [1, 7, 9, 0], [3, 9, 7, 3]);
    for ty in INTEGERS {
        let x = x.map(|x| encode(ty, i128::from(x)));
        let last = if ty.is_signed() { 0 } else { 3 };
        assert_eq!(apply3(Ternary::Clamp, [ty; 2], &x, &low, &high), [3, 7, 7, last], "{ty:?}");
    }
}

#[test]
fn bit_fields() {
    let fields = [0, 1, 4, 15, 16, 17, 31, 32, 40, 63, 64, 100, u64::from(u32::MAX)];
    for ty in INTEGERS {
        let values = values(ty, false);
        for (offset, count) in fields.into_iter().flat_map(|o| fields.map(|c| (o, c))) {
            let (offsets, counts) = (vec![offset; values.len()], vec![count; values.len()]);
            let width = ty.bits() as usize;
            let from = (offset as usize).min(width);
            let length = (count as usize).min(width - from);
            // In text, the highest bit first, the field ends `from` digits before the end.
            let range = width - from - length..width - from;

            let got = apply3(Ternary::ExtractBits, [ty, Ty::U32], &values, &offsets, &counts);
            for (&x, got) in values.iter().zip(got) {
                let text = &binary_text(ty, decode(ty, x))[range.clone()];
                let fill = if ty.is_signed() && text.starts_with('1') { "1" } else { "0" };
                let extended = fill.repeat(width - length) + text;
                assert_same(
                    ty,
                    got,
                    encode(ty, from_text(ty, &extended)),
                    ("extractBits", x, offset, count),
                );
            }

            let new: Vec<u64> = values.iter().copied().rev().collect();
            let mut out = Planes::blank(ty, values.len());
            let planes = [&values, &new, &offsets, &counts].map(|list| Planes::of(list));
            let [x, y] = [planes[0].input(ty), planes[1].input(ty)];
            insert_bits(ty, out.output(), x, y, planes[2].input(Ty::U32), planes[3].input(Ty::U32));
            for ((&x, &y), got) in values.iter().zip(&new).zip(out.values()) {
                let mut text = binary_text(ty, decode(ty, x));
                text.replace_range(
                    range.clone(),
                    &binary_text(ty, decode(ty, y))[width - length..],
                );
                assert_same(
                    ty,
                    got,
                    encode(ty, from_text(ty, &text)),
                    ("insertBits", x, y, offset, count),
                );
            }
        }
    }
}
