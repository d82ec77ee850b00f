// Pass before a mainloop of matrix units of f16: copies an operand of bf16, as pack.wgsl does, with
// each row of A, or column of B, divided by a power of two (powers.wgsl). bf16 has fewer digits
// than f16, so numbers down to 2^-29 of the largest lose nothing. Smaller ones are subnormal in
// f16. They are cut off, but not to zero: their products with an infinity are infinite. (If the
// largest is an infinity or a NaN, so are all sums.)
// needs: AHEAD INFINITE STRIP THREADS VECTOR find_powers inside is_unwanted line_of
//        linear_id loaded_from packed params place_of powers significand_of store_powers sharing_of
//        vector_at x_base x_widen8
// provides: Division SIGNS TOP before_last division_by main moved scaled

// The exponent of the numbers next below 2^16, in f32.
const TOP: i32 = 142;
// The signs of the two numbers in a word.
const SIGNS: vec4<u32> = vec4<u32>(0x80008000u);

// The copy has one segment along K.
fn before_last() -> u32 {
    return 0u;
}

// How the numbers of two lines are divided, one line in each half of a word. If numbers stay normal
// in f16, only the exponent changes.
struct Division {
    // Numbers taken from the magnitudes in bf16. f16 has three bits of exponent fewer.
    less: u32,
    // The least magnitudes that stay normal; beyond all for a line that has infinities, or only
    // numbers below 2^-97.
    least: u32,
}

fn division_by(powers: vec2<i32>) -> Division {
    let usual = (powers >= vec2<i32>(-112)) & (powers <= vec2<i32>(254 - TOP));
    let less = select(vec2<u32>(), vec2<u32>(powers + 112) << vec2<u32>(7u), usual);
    let least = select(vec2<u32>(0x8000u), less + 0x80u, usual);
    return Division(less.x | (less.y << 16u), least.x | (least.y << 16u));
}

// Four words of bf16 divided, as words of f16, if every number is zero or stays normal.
fn moved(words: vec4<u32>, less: vec4<u32>, nonzero: vec4<u32>) -> vec4<u32> {
    let signs = words & SIGNS;
    // All bits of the halves that are not zero.
    let halves = (nonzero - (nonzero >> vec4<u32>(15u))) | nonzero;
    return signs | (((words ^ signs) - (less & halves)) << vec4<u32>(3u));
}

// A number, by its bits in f32, divided by a power of two, as bits of f16.
fn scaled(bits: u32, power: i32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude == 0u {
        return sign;
    }
    if magnitude >= INFINITE {
        return sign | select(0x7c00u, 0x7e00u, magnitude > INFINITE);
    }
    let own = significand_of(magnitude);
    // The exponent in f16; below 1 for subnormal numbers, which lose digits.
    let exponent = own.x - power - 112;
    let digits = own.y >> u32(clamp(14 - exponent, 13, 31));
    return sign | max(u32((max(exponent - 1, 0) << 10u) + digits), 1u);
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
    let base = x_base(entry) + sharing.first * params.x_ld;
    var vectors = find_powers(base, sharing, strip, thread);
    var less: vec4<u32>;
    var least: vec4<u32>;
    for (var j = 0u; j < VECTOR / 2u; j += 1u) { //unroll
        let pair = vec2<i32>(powers[line_of(thread, 2u * j)], powers[line_of(thread, 2u * j + 1u)]);
        let division = division_by(pair);
        less[j] = division.less;
        least[j] = division.least;
    }
    for (var i = 0u; inside(sharing, vector_at(strip, thread, i)); i += AHEAD) {
        if i > 0u {
            vectors = loaded_from(base, sharing, strip, thread, i);
        }
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            let vector = vector_at(strip, thread, i + j);
            if inside(sharing, vector) {
                let numbers = x_widen8(vectors[j]);
                let low = bitcast<vec4<u32>>(numbers[0]);
                let high = bitcast<vec4<u32>>(numbers[1]);
                var words = (vec4<u32>(low.xz, high.xz) >> vec4<u32>(16u))
                    | (vec4<u32>(low.yw, high.yw) & vec4<u32>(0xffff0000u));
                // The first bit of each half: whether it is not zero, and whether it stays normal.
                let nonzero = ((words & ~SIGNS) + ~SIGNS) & SIGNS;
                let normal = (words | SIGNS) - least;
                if all((nonzero & ~normal) == vec4<u32>()) {
                    words = moved(words, less, nonzero);
                } else {
                    for (var pair = 0u; pair < VECTOR / 2u; pair += 1u) { //unroll
                        let line = 2u * pair;
                        let first = scaled(words[pair] << 16u, powers[line_of(thread, line)]);
                        let second = scaled(words[pair] & 0xffff0000u,
                            powers[line_of(thread, line + 1u)]);
                        words[pair] = first | (second << 16u);
                    }
                }
                packed[place_of(sharing, vector)] = words;
            }
        }
    }
    store_powers(entry, strip, thread);
}
