// Square root by Newton's method.
@group(0) @binding(0) var<storage, read> radicand: array<f32>;
@group(0) @binding(1) var<storage, read_write> root: array<f32>;

fn refine(x: f32) -> f32 {
    var guess = x;
    var steps = 0u;
    loop {
        guess = 0.5 * (guess + x / guess);
        continuing {
            steps++;
            break if guess * guess == x || steps == 8u;
        }
    }
    return guess;
}

@compute @workgroup_size(1)
fn main() {
    root[0] = refine(radicand[0]);
}
