// Pass before a mainloop of matrix units of f16: copies an operand of bf16, as pack.wgsl does, with
// each row of A, or column of B, divided by a power of two (powers.wgsl). bf16 has fewer digits
// than f16, so numbers down to 2^-29 of the largest lose nothing. Smaller ones are subnormal in
// f16. They are cut off, but not to zero: their products with an infinity are infinite. (Where the
// largest is an infinity or a NaN, so are all sums.)
// needs: AHEAD INFINITE STRIP THREADS VECTOR X_Eight find_powers inside is_unwanted line_of
//        linear_id loaded packed params place_of powers significand_of store_powers sharing_of
//        vector_at x_base x_widen8
// provides: TOP before_last divided main scaled

// The exponent of the numbers next below 2^16, in f32.
const TOP: i32 = 142;

// The copy has one segment along K.
fn before_last() -> u32 {
    return 0u;
}

// Numbers divided by powers of two, as bits of f16.
fn divided(numbers: vec4<f32>, powers: vec4<i32>) -> vec4<u32> {
    let bits = bitcast<vec4<u32>>(numbers);
    let magnitudes = bits & vec4<u32>(0x7fffffffu);
    let zero = magnitudes == vec4<u32>();
    // The smallest that is normal in both types.
    let least = bitcast<vec4<u32>>(max(powers + 113, vec4<i32>(1)) * 0x800000);
    let moves = (magnitudes >= least) & (magnitudes < vec4<u32>(INFINITE));
    if all(zero | moves) {
        let moved = bitcast<vec4<u32>>(bitcast<vec4<i32>>(magnitudes) - (powers + 112) * 0x800000);
        return ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u))
            | select(moved >> vec4<u32>(13u), vec4<u32>(), zero);
    }
    return vec4<u32>(
        scaled(numbers.x, powers.x),
        scaled(numbers.y, powers.y),
        scaled(numbers.z, powers.z),
        scaled(numbers.w, powers.w),
    );
}

// A number divided by a power of two, as bits of f16.
fn scaled(number: f32, power: i32) -> u32 {
    let bits = bitcast<u32>(number);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude == 0u {
        return sign;
    }
    if magnitude >= INFINITE {
        return sign | select(0x7c00u, 0x7e00u, magnitude > INFINITE);
    }
    let own = significand_of(magnitude);
    // In f16; below 1 for subnormal numbers, which lose digits.
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
    find_powers(base, sharing, strip, thread);
    var own: array<vec4<i32>, 2>;
    for (var j = 0u; j < VECTOR; j += 1u) { //unroll
        own[j / 4u][j % 4u] = powers[line_of(thread, j)];
    }
    for (var i = 0u; inside(sharing, vector_at(strip, thread, i)); i += AHEAD) {
        var vectors: array<X_Eight, AHEAD>;
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            vectors[j] = loaded(base, sharing, vector_at(strip, thread, i + j));
        }
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            let vector = vector_at(strip, thread, i + j);
            if inside(sharing, vector) {
                let numbers = x_widen8(vectors[j]);
                let low = divided(numbers[0], own[0]);
                let high = divided(numbers[1], own[1]);
                packed[place_of(sharing, vector)] =
                    vec4<u32>(low.xz, high.xz) | (vec4<u32>(low.yw, high.yw) << vec4<u32>(16u));
            }
        }
    }
    store_powers(entry, strip, thread);
}
