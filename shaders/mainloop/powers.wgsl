// Finds powers of two, for passes (scale.wgsl, split.wgsl) that copy an operand of a wider range
// before a mainloop of matrix units of f16. Each row of A, or column of B, is divided by the power
// of two that brings the exponent of its largest number to TOP. The powers are stored too: the
// mainloop multiplies its sums by those of both operands. With the powers p of a row and q of a
// column this gives their product as it was:
//
//     Σ a·b = 2^p · 2^q · Σ (a / 2^p) · (b / 2^q)
//
// Division by a power of two changes the exponent alone and is exact, except for numbers that
// become subnormal in f16. No finite number becomes infinite, because the largest does not:
//
//                  some 2^-29 of the largest           the largest
//     a row    ........|.......................................|        exponents of f32
//     divided  ........|.......................................|..      2^p less
//             subnormal|              normal in f16         TOP| 65504
//
// All arithmetic is that of integers on the bits of numbers: a power of two changes exponents, and
// digits of subnormal numbers only.
//
// A workgroup goes over a strip of rows or columns twice. First its invocations find the largest
// numbers, which meet in workgroup memory. Then they divide and store. They keep their first
// vectors in registers for the second time.
//
//     row 0  v v v v ...  ->  largest  -+                 +->  v / 2^power  ->  packed
//     row 1  v v v v ...  ->  largest  -+->  powers  -----+->  v / 2^power  ->  packed
//     ...                                                 +->  2^power      ->  x_powers
//
// Here params.m is the operand's extent along the axis that is not K, c_ld and c_batch are the
// strides of the copy, and tiles_m counts the strips of an entry.
// needs: TOP X_Eight X_K_CONTIGUOUS before_last params row_end x_apart x_at x_load8 x_widen8
// provides: ABREAST AHEAD DOWN INFINITE SHARES STRIP Sharing THREADS VECTOR Vector X_POWERS
//        find_powers further inside is_unwanted largest line_of loaded loaded_from magnitude packed
//        place_of powers significand_of store_powers upper_half_of vector_at x_powers

const STRIP: u32 = 4u; //param
const THREADS: u32 = 256u; //param
// Invocations side by side along the storage; those of a strip along K share a line.
const ABREAST: u32 = 64u; //param
// Invocations that share a row or column.
const SHARES: u32 = 64u; //param
const X_POWERS: u32 = 15u; //param
const DOWN: u32 = THREADS / ABREAST;
// Vectors that an invocation has on their way at a time.
const AHEAD: u32 = 4u;
// Elements in 16 bytes of the copy.
const VECTOR: u32 = 8u;
// The bits of an infinity in f32. Those of a NaN are larger.
const INFINITE: u32 = 0x7f800000u;

@group(0) @binding(10) var<storage, read_write> packed: array<vec4<u32>>;
// The powers of an entry fill whole fours.
@group(0) @binding(X_POWERS) var<storage, read_write> x_powers: array<u32>;

// The largest magnitude that each invocation has found in a row or column, as bits: their order is
// that of the numbers.
var<workgroup> largest: array<u32, STRIP * SHARES>;
// The divisors of rows or columns.
var<workgroup> powers: array<i32, STRIP>;

// The part of an entry that shares powers.
struct Sharing {
    // Its first step along K, and the elements of the copy before it.
    first: u32,
    to: u32,
    // Steps along K, and elements of the copy.
    k: u32,
    size: u32,
}

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

// The vector that lies `steps` further along K.
fn further(vector: Vector, steps: u32) -> Vector {
    if X_K_CONTIGUOUS {
        return Vector(vector.line, vector.at + steps);
    }
    return Vector(vector.line + steps, vector.at);
}

// Whether the copy has this vector, in its last segment.
fn inside(sharing: Sharing, vector: Vector) -> bool {
    let last = further(vector, before_last());
    return last.at < params.c_ld && last.line * params.c_ld < sharing.size;
}

// Whether a strip begins behind the lines that are wanted of an entry. Powers fill whole fours.
fn is_unwanted(entry: u32, strip: u32) -> bool {
    return strip >= (row_end(entry) + 3u) / 4u * 4u;
}

// The place of this vector in the copy.
fn place_of(sharing: Sharing, vector: Vector) -> u32 {
    let place = x_at(vector.line, vector.at, x_apart(params.m, params.c_ld));
    return (sharing.to + place) / VECTOR;
}

// Which row or column of the strip has element j of an invocation's vectors.
fn line_of(thread: u32, j: u32) -> u32 {
    return select(thread % ABREAST * VECTOR + j, thread / ABREAST, X_K_CONTIGUOUS);
}

// A vector of the operand; zeros beyond its ends.
fn loaded(base: u32, sharing: Sharing, vector: Vector) -> X_Eight {
    let lines = select(sharing.k, params.m, X_K_CONTIGUOUS);
    let length = select(params.m, sharing.k, X_K_CONTIGUOUS);
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

// AHEAD vectors of an invocation, from number i on.
fn loaded_from(
    base: u32,
    sharing: Sharing,
    strip: u32,
    thread: u32,
    i: u32,
) -> array<X_Eight, AHEAD> {
    var vectors: array<X_Eight, AHEAD>;
    for (var j = 0u; j < AHEAD; j += 1u) { //unroll
        vectors[j] = loaded(base, sharing, vector_at(strip, thread, i + j));
    }
    return vectors;
}

// Finds the largest number of every row or column of the strip, and by that its power of two. Gives
// the invocation's first vectors.
fn find_powers(
    base: u32,
    sharing: Sharing,
    strip: u32,
    thread: u32,
) -> array<X_Eight, AHEAD> {
    let first = loaded_from(base, sharing, strip, thread, 0u);
    var vectors = first;
    var most = array<vec4<u32>, 2>();
    for (var i = AHEAD; ; i += AHEAD) {
        for (var j = 0u; j < AHEAD; j += 1u) { //unroll
            let numbers = x_widen8(vectors[j]);
            most[0] = max(most[0], magnitude(numbers[0]));
            most[1] = max(most[1], magnitude(numbers[1]));
        }
        if !inside(sharing, vector_at(strip, thread, i)) {
            break;
        }
        vectors = loaded_from(base, sharing, strip, thread, i);
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
    return first;
}

// The upper half of the bits of 2^power in f32; the lower one is 0.
fn upper_half_of(power: i32) -> u32 {
    return u32(power + 127) << 7u;
}

// Stores each power of two as two factors: f32 has them even if it lacks the power.
fn store_powers(entry: u32, strip: u32, thread: u32) {
    let lines = (params.m + 3u) / 4u * 4u;
    if thread < STRIP && strip + thread < lines {
        let half = powers[thread] / 2;
        x_powers[entry * lines + strip + thread] =
            upper_half_of(half) | (upper_half_of(powers[thread] - half) << 16u);
    }
}
