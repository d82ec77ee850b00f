// Adds up the sums of invocations that share a tile, each along its own stripe of K, in a tree
// whose order is fixed. An invocation has ROUND vectors in workgroup memory, THREADS apart. Vectors
// that lie within THREADS are in the order of stripes.
// needs: LANES ROUND STRIPES THREADS stripe_at stripe_put
// offers: add_stripes

// Up to 512 stripes take three levels. Levels are repeated in the text, so that the driver knows
// each level's width: it had two divisions at run time for each, 0.4 µs of a product of one row.
const_assert STRIPES <= 512u;

// The sums come to lie where the first stripe's were, LANES of them in each round. The invocation
// that adds them last is the one of that number.
fn add_stripes(thread: u32) {
    var stripes = STRIPES;
    for (var level = 0u; level < 3u; level += 1u) { //unroll
        if stripes > 1u {
            workgroupBarrier();
            let fan = min(stripes, 8u);
            stripes /= fan;
            let width = LANES * stripes;
            for (var i = thread; i < ROUND * width; i += THREADS) {
                let at = i / width * THREADS + i % width;
                var sum = stripe_at(at);
                for (var other = 1u; other < fan; other += 1u) {
                    sum += stripe_at(at + other * width);
                }
                stripe_put(at, sum);
            }
        }
    }
}
