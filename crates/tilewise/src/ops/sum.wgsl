// The header of sums.

alias Part = f32;

fn nothing() -> Part {
    return 0.0;
}

fn block(v: vec4<f32>, first: u32, count: u32) -> Part {
    let there = select(vec4<f32>(), v, vec4(0u, 1u, 2u, 3u) < vec4(count));
    return (there.x + there.y) + (there.z + there.w);
}

fn joined(a: Part, b: Part) -> Part {
    return a + b;
}
