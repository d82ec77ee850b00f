// Pass before a mainloop of matrix units of f16: copies an operand of f32 in two parts of f16, high +
// low, with each row of A, or column of B, divided by a power of two (powers.wgsl). The product of two
// numbers is then low·high + high·low + high·high, and the product of low parts that is left out is
// at most 2^-22 of it. So K becomes three segments, the small products first: low, high, high of one
// operand meet high, low, high of the other.
//
// The high part is the nearest f16, the low part the f16 nearest to what is left. Numbers below 2^-17
// of the largest lose digits, as their low part is subnormal in f16: all of what two parts leave of a
// number is below 2^-23 of it or 2^-39 of the largest.
//
// Where the largest is an infinity or a NaN, so are all sums, and the last segment alone gives them:
// the others are zero. That holds as a high part is zero only for a zero, so that its product with an
// infinity is infinite.
// needs: INFINITE STRIP THREADS VECTOR find_powers further inside line_of linear_id loaded packed
//        params place_of powers significand_of store_powers vector_at x_base x_widen8 X_K_CONTIGUOUS
// provides: LOW_FIRST TOP before_last f16_of finite main nearest parts_of segment shift_of

// Whether the first segment has the low parts, or the second.
const LOW_FIRST: bool = false; //param
// The exponent of the numbers next below 2^15, in f32: a high part that is rounded up is finite.
const TOP: i32 = 141;

// Steps along K from one segment to the next, whole vectors.
fn segment() -> u32 {
    return (params.k + VECTOR - 1u) / VECTOR * VECTOR;
}

fn before_last() -> u32 {
    return 2u * segment();
}

// Whether no number of a row or column of the strip is an infinity or a NaN.
fn finite(line: u32) -> bool {
    return powers[line] <= 254 - TOP;
}

// By how many bits 24 digits are longer than those of an f16 with this exponent, which is below 1 for
// subnormal numbers. With 25, none are left.
fn shift_of(exponent: i32) -> u32 {
    return u32(clamp(14 - exponent, 13, 25));
}

// Digits rounded to so many fewer bits. Between two f16 the choice is free: the low part of a number
// holds what the high one leaves, on either side.
fn nearest(digits: u32, shift: u32) -> u32 {
    return (digits + (1u << (shift - 1u))) >> shift;
}

// The bits of an f16 with so many units of its last digit; 2^11 units are the next power of two.
fn f16_of(units: u32, exponent: i32) -> u32 {
    return (u32(max(exponent - 1, 0)) << 10u) + units;
}

// A number divided by a power of two: the bits of its low and of its high part.
fn parts_of(number: f32, power: i32) -> vec2<u32> {
    let bits = bitcast<u32>(number);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude == 0u {
        return vec2<u32>();
    }
    if magnitude >= INFINITE {
        return vec2<u32>(sign | select(0x7c00u, 0x7e00u, magnitude > INFINITE));
    }
    let own = significand_of(magnitude);
    let digits = u32(own.y);
    let exponent = own.x - power - 112;
    let shift = shift_of(exponent);
    let high = nearest(digits, shift);
    if high == 0u {
        // The smallest of f16, and the same less.
        return vec2<u32>(sign ^ 0x8001u, sign | 1u);
    }
    let rest = i32(digits) - i32(high << shift);
    let left = u32(abs(rest));
    let zeros = countLeadingZeros(left) - 8u;
    let low_exponent = exponent - i32(zeros);
    let low = select(f16_of(nearest(left << zeros, shift_of(low_exponent)), low_exponent), 0u, left == 0u);
    let opposite = (bitcast<u32>(rest) >> 16u) & 0x8000u;
    return vec2<u32>((sign ^ opposite) | low, sign | f16_of(high, exponent));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = linear_id(workgroup);
    let entry = id / params.tiles_m;
    let strip = id % params.tiles_m * STRIP;
    if entry >= params.entries {
        return;
    }
    let base = x_base(entry);
    find_powers(base, strip, thread);
    for (var i = 0u; inside(vector_at(strip, thread, i)); i += 1u) {
        let vector = vector_at(strip, thread, i);
        let numbers = x_widen8(loaded(base, vector));
        // Of the small products, and of the last segment.
        var low: vec4<u32>;
        var high: vec4<u32>;
        var last: vec4<u32>;
        for (var j = 0u; j < 4u; j += 1u) { //unroll
            let lines = vec2<u32>(line_of(thread, 2u * j), line_of(thread, 2u * j + 1u));
            let even = parts_of(numbers[j / 2u][j % 2u * 2u], powers[lines.x]);
            let odd = parts_of(numbers[j / 2u][j % 2u * 2u + 1u], powers[lines.y]);
            let small = even * u32(finite(lines.x)) | (odd * u32(finite(lines.y))) << vec2<u32>(16u);
            low[j] = small.x;
            high[j] = small.y;
            last[j] = even.y | (odd.y << 16u);
        }
        // The last segment goes on with zeros to whole steps of the mainloop.
        if select(vector.line, vector.at, X_K_CONTIGUOUS) < segment() {
            packed[place_of(entry, vector)] = select(high, low, LOW_FIRST);
            packed[place_of(entry, further(vector, segment()))] = select(low, high, LOW_FIRST);
        }
        packed[place_of(entry, further(vector, before_last()))] = last;
    }
    store_powers(entry, strip, thread);
}
