// Pass before a mainloop of matrix units of f16: copies an operand of a wider range, as pack.wgsl
// does. Each row of A, or column of B, is divided by the power of two that brings its largest number
// between 2^15 and 2^16, and the exponents are stored too: the mainloop multiplies its sums by both
// powers. All of it is integer arithmetic on the bits of numbers. bf16 has fewer digits than f16, so
// numbers down to 2^-29 of the largest lose nothing. Smaller ones are subnormal in f16. They are cut
// off, but not to zero: their products with an infinity are infinite. (Where the largest is an
// infinity or a NaN, so are all sums.)
//
// A workgroup takes a strip of rows or columns twice: first it finds their largest numbers. Here
// params.m is the operand's extent along the axis that is not K, c_ld and c_batch are the strides of
// the copy, and tiles_m counts the strips of an entry.
// needs: X_Eight X_K_CONTIGUOUS linear_id params x_base x_load8 x_widen8
// provides: ABREAST AHEAD DOWN INFINITE SHARES STRIP THREADS TOP VECTOR Vector X_EXPONENTS divided
//        inside largest line_of loaded magnitude main packed powers scaled significand_of vector_at x_exponents

const STRIP: u32 = 4u; //param
const THREADS: u32 = 256u; //param
// Invocations side by side along the storage; those of a strip along K share a line.
const ABREAST: u32 = 64u; //param
// Invocations that share a row or column.
const SHARES: u32 = 64u; //param
const X_EXPONENTS: u32 = 15u; //param
const DOWN: u32 = THREADS / ABREAST;
// Vectors that an invocation has on their way at a time.
const AHEAD: u32 = 4u;
// Elements in 16 bytes of the copy.
const VECTOR: u32 = 8u;
// The exponent of the numbers next below 2^16, in f32.
const TOP: i32 = 142;
// The bits of an infinity in f32. Those of a NaN are larger.
const INFINITE: u32 = 0x7f800000u;

@group(0) @binding(10) var<storage, read_write> packed: array<vec4<u32>>;
// Those of an entry fill whole fours.
@group(0) @binding(X_EXPONENTS) var<storage, read_write> x_exponents: array<i32>;

// The largest magnitude that each invocation has found in a row or column, as bits: their order is
// that of the numbers.
var<workgroup> largest: array<u32, STRIP * SHARES>;
// What the rows or columns are divided by.
var<workgroup> powers: array<i32, STRIP>;

// A storage line, and the first of a vector's elements in it.
struct Vector {
    line: u32,
    at: u32,
}

// The vectors of an invocation run along a line of the strip, or down its columns.
fn vector_at(strip: u32, thread: u32, i: u32) -> Vector {
    let abreast = thread % ABREAST;
    let down = thread / ABREAST;
    if X_K_CONTIGUOUS {
        return Vector(strip + down, (i * ABREAST + abreast) * VECTOR);
    }
    return Vector(i * DOWN + down, strip + abreast * VECTOR);
}

// Whether the copy has this vector.
fn inside(vector: Vector) -> bool {
    return vector.at < params.c_ld && vector.line * params.c_ld < params.c_batch;
}

// Which row or column of the strip has element j of an invocation's vectors.
fn line_of(thread: u32, j: u32) -> u32 {
    return select(thread % ABREAST * VECTOR + j, thread / ABREAST, X_K_CONTIGUOUS);
}

// A vector of the operand; zeros beyond its ends.
fn loaded(base: u32, vector: Vector) -> X_Eight {
    let lines = select(params.k, params.m, X_K_CONTIGUOUS);
    let length = select(params.m, params.k, X_K_CONTIGUOUS);
    if vector.line >= lines || vector.at >= length {
        return X_Eight();
    }
    return x_load8(base + vector.line * params.x_ld + vector.at, length - vector.at);
}

// The bits of numbers without their signs.
fn magnitude(numbers: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(numbers) & vec4<u32>(0x7fffffffu);
}

// The exponent of a magnitude in f32, below 1 for subnormal numbers, and its 24 digits.
fn significand_of(magnitude: u32) -> vec2<i32> {
    if magnitude < 0x800000u {
        let zeros = countLeadingZeros(magnitude) - 8u;
        return vec2<i32>(1 - i32(zeros), i32(magnitude << zeros));
    }
    return vec2<i32>(i32(magnitude >> 23u), i32(0x800000u | (magnitude & 0x7fffffu)));
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
        return ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u)) | select(moved >> vec4<u32>(13u), vec4<u32>(), zero);
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
    if entry >= params.entries {
        return;
    }
    let base = x_base(entry);
    var most = array<vec4<u32>, 2>();
    for (var i = 0u; inside(vector_at(strip, thread, i)); i += AHEAD) {
        var vectors: array<X_Eight, AHEAD>;
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            vectors[j] = loaded(base, vector_at(strip, thread, i + j));
        }
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            let numbers = x_widen8(vectors[j]);
            most[0] = max(most[0], magnitude(numbers[0]));
            most[1] = max(most[1], magnitude(numbers[1]));
        }
    }
    if X_K_CONTIGUOUS {
        let four = max(most[0], most[1]);
        largest[thread] = max(max(four.x, four.y), max(four.z, four.w));
    } else {
        for (var j = 0u; j < VECTOR; j += 1u) { //unroll
            largest[line_of(thread, j) * SHARES + thread / ABREAST] = most[j / 4u][j % 4u];
        }
    }
    workgroupBarrier();
    if thread < STRIP {
        var magnitude = largest[thread * SHARES];
        for (var i = 1u; i < SHARES; i += 1u) {
            magnitude = max(magnitude, largest[thread * SHARES + i]);
        }
        powers[thread] = significand_of(magnitude).x - TOP;
    }
    workgroupBarrier();

    var own: array<vec4<i32>, 2>;
    for (var j = 0u; j < VECTOR; j += 1u) { //unroll
        own[j / 4u][j % 4u] = powers[line_of(thread, j)];
    }
    for (var i = 0u; inside(vector_at(strip, thread, i)); i += AHEAD) {
        var vectors: array<X_Eight, AHEAD>;
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            vectors[j] = loaded(base, vector_at(strip, thread, i + j));
        }
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            let vector = vector_at(strip, thread, i + j);
            if inside(vector) {
                let numbers = x_widen8(vectors[j]);
                let low = divided(numbers[0], own[0]);
                let high = divided(numbers[1], own[1]);
                packed[(entry * params.c_batch + vector.line * params.c_ld + vector.at) / VECTOR] =
                    vec4<u32>(low.xz, high.xz) | (vec4<u32>(low.yw, high.yw) << vec4<u32>(16u));
            }
        }
    }
    let lines = (params.m + 3u) / 4u * 4u;
    if thread < STRIP && strip + thread < lines {
        x_exponents[entry * lines + strip + thread] = powers[thread];
    }
}
