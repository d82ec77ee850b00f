// Arithmetic of f32 on bits, by integers alone: every device gets what IEEE 754 says, subnormal
// numbers, infinities and ties to even included. WGSL lets devices divide to 2.5 units in the last
// place, take subnormal numbers for zero, and fuse products with sums.
// needs: nothing
// offers: FLOAT_INFINITY FLOAT_NAN FLOAT_SIGN Unpacked float_add float_div float_f32 float_finite
//        float_integer float_key float_level float_mul float_of_half float_of_key float_pack
//        float_rint float_rounded float_sub float_to_half float_unpack

const FLOAT_SIGN: u32 = 0x80000000u;
const FLOAT_INFINITY: u32 = 0x7f800000u;
const FLOAT_NAN: u32 = 0x7fc00000u;

// A positive number: significand / 2^30 · 2^exponent, the significand from 2^30 on and below 2^31.
struct Unpacked {
    exponent: i32,
    significand: u32,
}

// Parts of a number that is not NaN, without its sign. The significand of 0 is 0.
fn float_unpack(x: u32) -> Unpacked {
    let field = (x & FLOAT_INFINITY) >> 23u;
    let significand = (x & 0x7fffffu) | (min(field, 1u) << 23u);
    let zeros = countLeadingZeros(significand);
    return Unpacked(i32(max(field, 1u)) - i32(zeros) - 119, significand << (zeros - 1u));
}

// Drops the lowest n bits of a number below 2^31; rounds to nearest, ties to even. n is not 0. Its
// lowest bit may stand for all that lie below it.
fn float_rounded(x: u32, n: u32) -> u32 {
    if n > 31u {
        return 0u;
    }
    let half = 1u << (n - 1u);
    let kept = x >> n;
    let rest = x & (2u * half - 1u);
    return kept + select(0u, 1u, rest + (kept & 1u) > half);
}

// The bits of a positive number in a format with `fraction` bits of fraction, whose least normal
// number is 2^least. Beyond the format's range they are at least the bits of its infinity.
fn float_pack(unpacked: Unpacked, fraction: u32, least: i32) -> u32 {
    let above = u32(max(unpacked.exponent - least, 0));
    let below = u32(max(least - unpacked.exponent, 0));
    return (above << fraction) + float_rounded(unpacked.significand, 30u - fraction + below);
}

fn float_f32(sign: u32, exponent: i32, significand: u32) -> u32 {
    return (sign & FLOAT_SIGN)
        | min(float_pack(Unpacked(exponent, significand), 23u, -126), FLOAT_INFINITY);
}

fn float_add(a: u32, b: u32) -> u32 {
    let swap = (a & ~FLOAT_SIGN) < (b & ~FLOAT_SIGN);
    let larger = select(a, b, swap);
    let smaller = select(b, a, swap);
    let x = larger & ~FLOAT_SIGN;
    let y = smaller & ~FLOAT_SIGN;
    let differ = ((a ^ b) & FLOAT_SIGN) != 0u;
    if x > FLOAT_INFINITY || (y == FLOAT_INFINITY && differ) {
        return FLOAT_NAN;
    }
    if x == FLOAT_INFINITY {
        return larger;
    }
    if y == 0u {
        return select(larger, a & b, x == 0u);
    }
    let p = float_unpack(x);
    let q = float_unpack(y);
    // One bit is left for a carry. What is shifted out counts as one bit below all others.
    let shift = min(u32(p.exponent - q.exponent), 31u);
    let shifted = (q.significand >> 1u) >> shift;
    let lost = select(0u, 1u, (shifted << shift) != q.significand >> 1u);
    let sum = (p.significand >> 1u) + select(shifted | lost, 0u - (shifted | lost), differ);
    if sum == 0u {
        return 0u;
    }
    let zeros = countLeadingZeros(sum);
    return float_f32(larger, p.exponent + 2 - i32(zeros), sum << (zeros - 1u));
}

fn float_sub(a: u32, b: u32) -> u32 {
    return float_add(a, b ^ FLOAT_SIGN);
}

fn float_mul(a: u32, b: u32) -> u32 {
    let x = a & ~FLOAT_SIGN;
    let y = b & ~FLOAT_SIGN;
    let sign = (a ^ b) & FLOAT_SIGN;
    if max(x, y) > FLOAT_INFINITY || (max(x, y) == FLOAT_INFINITY && min(x, y) == 0u) {
        return FLOAT_NAN;
    }
    if max(x, y) == FLOAT_INFINITY {
        return sign | FLOAT_INFINITY;
    }
    if min(x, y) == 0u {
        return sign;
    }
    let p = float_unpack(x);
    let q = float_unpack(y);
    // The factors have 24 bits each, in halves of 12. The upper 32 of the product's 48 bits are
    // kept.
    let u = vec2<u32>(p.significand >> 19u, (p.significand >> 7u) & 0xfffu);
    let v = vec2<u32>(q.significand >> 19u, (q.significand >> 7u) & 0xfffu);
    let low = u.y * v.y;
    let middle = u.x * v.y + u.y * v.x + (low >> 12u);
    let high = ((u.x * v.x) << 8u) + (middle >> 4u);
    let lost = select(0u, 1u, (middle & 15u) + (low & 0xfffu) != 0u);
    let carry = high >> 31u;
    return float_f32(sign, p.exponent + q.exponent + i32(carry),
        (high >> carry) | (high & carry) | lost);
}

fn float_div(a: u32, b: u32) -> u32 {
    let x = a & ~FLOAT_SIGN;
    let y = b & ~FLOAT_SIGN;
    let sign = (a ^ b) & FLOAT_SIGN;
    if max(x, y) > FLOAT_INFINITY || (x == y && (x == 0u || x == FLOAT_INFINITY)) {
        return FLOAT_NAN;
    }
    if x == FLOAT_INFINITY || y == 0u {
        return sign | FLOAT_INFINITY;
    }
    if x == 0u || y == FLOAT_INFINITY {
        return sign;
    }
    let p = float_unpack(x);
    let q = float_unpack(y);
    let divisor = q.significand >> 7u;
    var rest = p.significand >> 7u;
    let less = select(0u, 1u, rest < divisor);
    rest = (rest << less) - divisor;
    // The quotient is at least 1: its integer, and 24 bits behind the point.
    var quotient = 1u;
    for (var i = 0u; i < 3u; i += 1u) {
        rest <<= 8u;
        quotient = (quotient << 8u) | (rest / divisor);
        rest %= divisor;
    }
    return float_f32(sign, p.exponent - q.exponent - i32(less), (quotient << 6u) | min(rest, 1u));
}

fn float_finite(x: u32) -> bool {
    return (x & FLOAT_INFINITY) != FLOAT_INFINITY;
}

// The nearest integer to |x| if that is below 2^23, otherwise 0. A tie goes to the even one, or
// away from 0.
fn float_integer(x: u32, away: bool) -> u32 {
    let magnitude = x & ~FLOAT_SIGN;
    if magnitude < 0x3f000000u || magnitude >= 0x4b000000u { // 0.5 and 2^23
        return 0u;
    }
    let significand = (magnitude & 0x7fffffu) | 0x800000u;
    let n = 150u - (magnitude >> 23u);
    let up = (significand + (1u << (n - 1u))) >> n;
    return select(float_rounded(significand, n), up, away);
}

// The nearest integer, ties to even.
fn float_rint(x: u32) -> u32 {
    if (x & ~FLOAT_SIGN) >= 0x4b000000u { // 2^23: all are integers
        return x;
    }
    return (x & FLOAT_SIGN) | bitcast<u32>(f32(float_integer(x, false)));
}

// Like `float_rint`, between 0 and `most`; 0 for NaN.
fn float_level(x: u32, most: u32) -> u32 {
    if x > FLOAT_INFINITY {
        return 0u;
    }
    if x >= 0x4b000000u {
        return most;
    }
    return min(float_integer(x, false), most);
}

// An integer for each number, in the order of the numbers.
fn float_key(x: u32) -> u32 {
    return select(x | FLOAT_SIGN, ~x, x >= FLOAT_SIGN);
}

fn float_of_key(key: u32) -> u32 {
    return select(~key, key ^ FLOAT_SIGN, key >= FLOAT_SIGN);
}

// Rounded to bf16 or f16, ties to even. NaN becomes quiet, and keeps its upper bits.
fn float_to_half(x: u32, bf16: bool) -> u32 {
    let magnitude = x & ~FLOAT_SIGN;
    let sign = (x & FLOAT_SIGN) >> 16u;
    if magnitude > FLOAT_INFINITY {
        return sign | select(0x7e00u | ((x & 0x7fffffu) >> 13u), 0x40u | (magnitude >> 16u), bf16);
    }
    let unpacked = float_unpack(magnitude);
    if bf16 {
        return sign | float_pack(unpacked, 7u, -126);
    }
    return sign | min(float_pack(unpacked, 10u, -14), 0x7c00u);
}

// A bf16 or an f16 widened. NaN becomes quiet.
fn float_of_half(x: u32, bf16: bool) -> u32 {
    let sign = (x & 0x8000u) << 16u;
    let magnitude = x & 0x7fffu;
    if bf16 {
        return sign | (magnitude << 16u) | select(0u, 0x400000u, magnitude > 0x7f80u);
    }
    if magnitude >= 0x7c00u {
        return sign | FLOAT_INFINITY | ((magnitude & 0x3ffu) << 13u)
            | select(0u, 0x400000u, magnitude > 0x7c00u);
    }
    if magnitude >= 0x400u {
        return sign | ((magnitude << 13u) + 0x38000000u);
    }
    if magnitude == 0u {
        return sign;
    }
    let zeros = countLeadingZeros(magnitude);
    return sign | (((133u - zeros) << 23u) + (magnitude << (zeros - 8u)));
}
