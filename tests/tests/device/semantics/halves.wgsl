let at = global_id.x;
let x = f16(f[at]);
let y = f16(f[at + 256u]);
let z = f16(f[at + 512u]);
put_f(0u, f32(x + y));
put_f(1u, f32(x - y));
put_f(2u, f32(x * y));
put_f(3u, f32(min(x, y)));
put_f(4u, f32(max(x, y)));
put_f(5u, f32(floor(x)));
// The operands are results: a driver may skip the rounding of a number that it only converts,
// negates and converts back.
put_f(6u, f32(-(x + y)));
put_f(7u, f32(abs(x - y)));
put(8u, u32(x < y) + 2u * u32(x == y));
put_f(9u, f32(fma(round(x), 4.0h, 0.5h)));
put(10u, bitcast<u32>(i32(x)));
put_f(11u, f32(f16(bitcast<i32>(u[at]) >> 20u)));
let v = vec4<f16>(x, y, z, 1.0h);
put_f(12u, f32(v[u[at] % 4u]));
put_f(13u, f32(select(x, y, z > 0.0h)));
