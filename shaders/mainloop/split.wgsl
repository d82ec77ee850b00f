// Pass before a mainloop of matrix units of f16: copies an operand of f32 in two terms of f16, high
// + low, with each row of A, or column of B, divided by a power of two (powers.wgsl). The product
// of two numbers is then low·high + high·low + high·high, and the product of low terms that is left
// out is at most 2^-22 of it. So K becomes three segments, the small products first: low, high,
// high of one operand meet high, low, high of the other.
//
// The high term is the nearest f16, the low term the f16 nearest to what is left. Numbers below
// 2^-17 of the largest lose digits, as their low term is subnormal in f16: all of what two terms
// leave of a number is below 2^-23 of it or 2^-39 of the largest.
//
// If the largest is an infinity or a NaN, so are all sums, and the last segment alone gives them:
// the others are zero. This is right because only a zero has a high term of zero, so that the
// product of any other number with an infinity is infinite.
// needs: AHEAD INFINITE STRIP THREADS VECTOR X_K_CONTIGUOUS find_powers further inside
//        is_unwanted line_of linear_id loaded_from packed params place_of powers significand_of
//        store_powers sharing_of vector_at x_base x_widen8
// provides: BIAS LOW_FIRST TOP before_last f16_of finite in_words main nearest parts_of parts_of4
//        segment shift_of

// Whether the first segment has the low terms, or the second.
const LOW_FIRST: bool = false; //param
// The exponent of the numbers next below 2^15, in f32: a high term that is rounded up is finite.
const TOP: i32 = 141;
// Difference of the exponents of f32 and of f16, in the bits of an f32.
const BIAS: u32 = 112u << 23u;

// Steps along K from one segment to the next, whole vectors.
fn segment() -> u32 {
    return (params.k + VECTOR - 1u) / VECTOR * VECTOR;
}

fn before_last() -> u32 {
    return 2u * segment();
}

// Whether no number of a row or column with this power is an infinity or a NaN.
fn finite(powers: vec4<i32>) -> vec4<u32> {
    return vec4<u32>(powers <= vec4<i32>(254 - TOP));
}

// By how many bits 24 digits are longer than those of an f16 with this exponent, which is below 1
// for subnormal numbers. With 25, none are left.
fn shift_of(exponent: i32) -> u32 {
    return u32(clamp(14 - exponent, 13, 25));
}

// Digits without the lowest `shift` bits, rounded. Between two f16 the choice is free: the low term
// of a number holds what the high one leaves, in either case.
fn nearest(digits: u32, shift: u32) -> u32 {
    return (digits + (1u << (shift - 1u))) >> shift;
}

// The bits of an f16 with `steps` steps of its last digit; 2^11 steps are the next power of two.
fn f16_of(steps: u32, exponent: i32) -> u32 {
    return (u32(max(exponent - 1, 0)) << 10u) + steps;
}

// A number divided by a power of two: the bits of its low and of its high term.
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
        // The smallest f16 and its negative: their sum is 0, and the high term is not.
        return vec2<u32>(sign ^ 0x8001u, sign | 1u);
    }
    let rest = i32(digits) - i32(high << shift);
    let left = u32(abs(rest));
    let zeros = countLeadingZeros(left) - 8u;
    let low_exponent = exponent - i32(zeros);
    let low = select(f16_of(nearest(left << zeros, shift_of(low_exponent)), low_exponent), 0u,
        left == 0u);
    let opposite = (bitcast<u32>(rest) >> 16u) & 0x8000u;
    return vec2<u32>((sign ^ opposite) | low, sign | f16_of(high, exponent));
}

// Like parts_of, for four numbers: low terms, and high terms.
fn parts_of4(numbers: vec4<f32>, powers: vec4<i32>) -> array<vec4<u32>, 2> {
    let bits = bitcast<vec4<u32>>(numbers);
    let magnitudes = bits & vec4<u32>(0x7fffffffu);
    let zero = magnitudes == vec4<u32>();
    // The smallest whose high term is normal in both types.
    let least = bitcast<vec4<u32>>(max(powers + 113, vec4<i32>(1)) * 0x800000);
    let moves = (magnitudes >= least) & (magnitudes < vec4<u32>(INFINITE));
    if all(zero | moves) {
        let signs = (bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
        let moved = select(magnitudes - bitcast<vec4<u32>>(powers * 0x800000), vec4<u32>(), zero);
        let rounded = (moved + vec4<u32>(0x1000u)) & vec4<u32>(0xffffe000u);
        // Exact, and normal in f32 or zero.
        let rest = bitcast<vec4<f32>>(moved) - bitcast<vec4<f32>>(rounded);
        let opposite = (bitcast<vec4<u32>>(rest) >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
        let normal = (bitcast<vec4<u32>>(abs(rest)) + vec4<u32>(0x1000u) - vec4<u32>(BIAS))
            >> vec4<u32>(13u);
        // Added to a half, a number ends at the last digit of f16's subnormal numbers.
        let subnormal = bitcast<vec4<u32>>(abs(rest) + vec4<f32>(0.5)) - vec4<u32>(0x3f000000u);
        let low = select(normal, subnormal, abs(rest) < vec4<f32>(0x1p-14f));
        let high = select((rounded - vec4<u32>(BIAS)) >> vec4<u32>(13u), vec4<u32>(), zero);
        return array<vec4<u32>, 2>((signs ^ opposite) | low, signs | high);
    }
    let terms = array<vec2<u32>, 4>(
        parts_of(numbers.x, powers.x),
        parts_of(numbers.y, powers.y),
        parts_of(numbers.z, powers.z),
        parts_of(numbers.w, powers.w),
    );
    return array<vec4<u32>, 2>(
        vec4<u32>(terms[0].x, terms[1].x, terms[2].x, terms[3].x),
        vec4<u32>(terms[0].y, terms[1].y, terms[2].y, terms[3].y),
    );
}

// Eight f16 in words.
fn in_words(first: vec4<u32>, second: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(first.xz, second.xz) | (vec4<u32>(first.yw, second.yw) << vec4<u32>(16u));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = linear_id(workgroup);
    let entry = id / params.tiles_m;
    let strip = id % params.tiles_m * STRIP;
    if entry >= params.entries || is_unwanted(entry, strip) {
        return;
    }
    let sharing = sharing_of(entry);
    let base = x_base(entry);
    var vectors = find_powers(base, sharing, strip, thread);
    var own: array<vec4<i32>, 2>;
    for (var j = 0u; j < VECTOR; j += 1u) { //unroll
        own[j / 4u][j % 4u] = powers[line_of(thread, j)];
    }
    for (var i = 0u; inside(sharing, vector_at(strip, thread, i)); i += AHEAD) {
        if i > 0u {
            vectors = loaded_from(base, sharing, strip, thread, i);
        }
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            let vector = vector_at(strip, thread, i + j);
            if inside(sharing, vector) {
                let numbers = x_widen8(vectors[j]);
                let first = parts_of4(numbers[0], own[0]);
                let second = parts_of4(numbers[1], own[1]);
                // The last segment goes on with zeros to whole steps of the mainloop.
                if select(vector.line, vector.at, X_K_CONTIGUOUS) < segment() {
                    let low = in_words(first[0] * finite(own[0]), second[0] * finite(own[1]));
                    let high = in_words(first[1] * finite(own[0]), second[1] * finite(own[1]));
                    packed[place_of(sharing, vector)] = select(high, low, LOW_FIRST);
                    packed[place_of(sharing, further(vector, segment()))] =
                        select(low, high, LOW_FIRST);
                }
                packed[place_of(sharing, further(vector, before_last()))] =
                    in_words(first[1], second[1]);
            }
        }
    }
    store_powers(entry, strip, thread);
}
