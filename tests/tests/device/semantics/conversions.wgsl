let at = global_id.x;
let x = f[at];
let bits = u[at];
put(0u, bitcast<u32>(i32(x)));
put(1u, u32(abs(x)));
// 24 bits at most: a device may choose how to round more, and SwiftShader rounds twice.
put_f(2u, f32(bits >> 8u));
put_f(3u, f32(bitcast<i32>(bits) >> 8u));
put(4u, u32(bool(bits & 1u)) + 2u * u32(bool(x)));
put_f(5u, f32(x > 0.0));
// These are within f16's range: beyond it WGSL defines nothing.
put(6u, pack2x16float(clamp(vec2<f32>(x, x * 1000.0), vec2<f32>(-65504.0), vec2<f32>(65504.0))));
// No exponent is all ones: the bits of a NaN differ between devices.
let halves = unpack2x16float(bits & 0xBFFFBFFFu);
put_f(7u, halves.x);
put_f(8u, halves.y);
let bytes = unpack4x8unorm(bits);
put_f(9u, floor(bytes.x * 255.0 + 0.5) + 256.0 * floor(bytes.w * 255.0 + 0.5));
let integers = unpack4xI8(bits);
put(10u, bitcast<u32>(integers.x + 3 * integers.y - integers.z + 5 * integers.w));
put(11u, pack4xU8(unpack4xU8(bits)));
put(12u, bitcast<u32>(bitcast<f32>(bits & 0x7F7FFFFFu)));
