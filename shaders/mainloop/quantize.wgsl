// Mainloop: quantizes weights A [entries, m, k], block by block along k, to codes of a few bits,
// one after the other from the lowest bit on, and numbers that belong to a block. Each invocation
// makes BLOCKS blocks: their numbers fill a word of each plane of numbers.
// needs: A_K_CONTIGUOUS a_base a_bits code_of fit linear_id params put_second
// provides: BITS BLOCK BLOCKS Block CODES NUMBERS THREADS WORDS codes main numbers place status
//        weight

const THREADS: u32 = 64u; //param
// Weights of a block.
const BLOCK: u32 = 64u; //param
// Bits of a code.
const BITS: u32 = 4u; //param
const BLOCKS: u32 = 1u; //param
// Bindings of codes and of the first plane of numbers.
const CODES: u32 = 2u; //param
const NUMBERS: u32 = 7u; //param

// Words of a block's codes.
const WORDS: u32 = BLOCK * BITS / 32u;

@group(0) @binding(CODES) var<storage, read_write> codes: array<u32>;
@group(0) @binding(NUMBERS) var<storage, read_write> numbers: array<u32>;
@group(0) @binding(14) var<storage, read_write> status: array<atomic<u32>>;

// Where the weights of a block lie.
struct Block {
    first: u32,
    step: u32,
}

fn place(line: u32, column: u32) -> Block {
    let base = a_base(line / params.m);
    let row = line % params.m;
    if A_K_CONTIGUOUS {
        return Block(base + row * params.a_ld + column, 1u);
    }
    return Block(base + column * params.a_ld + row, params.a_ld);
}

// The bits of weight i of a block, as f32.
fn weight(block: Block, i: u32) -> u32 {
    return a_bits(block.first + i * block.step);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let share = linear_id(workgroup) * THREADS + thread;
    if share >= params.shares {
        return;
    }
    let held = params.k / BLOCK;
    // Blocks of a row, with those in the gap behind it, which are zeros.
    let width = params.b_ld / BLOCK;
    let blocks = params.entries * params.m * width;
    var words = vec2<u32>();
    for (var i = 0u; i < BLOCKS; i += 1u) {
        let number = share * BLOCKS + i;
        if number >= blocks {
            break;
        }
        let line = number / width;
        let column = number % width;
        var at = number * WORDS;
        if column >= held {
            for (var j = 0u; j < WORDS; j += 1u) {
                codes[at + j] = 0u;
            }
            continue;
        }
        let block = place(line, column * BLOCK);
        let fit = fit(block);
        if !fit.holds {
            atomicMax(&status[0], params.first_row + line + 1u);
        }
        words |= fit.numbers << vec2<u32>(i * (32u / BLOCKS));
        var word = 0u;
        var filled = 0u;
        for (var j = 0u; j < BLOCK; j += 1u) {
            let code = code_of(weight(block, j), fit);
            word |= code << filled;
            filled += BITS;
            if filled >= 32u {
                codes[at] = word;
                at += 1u;
                filled -= 32u;
                word = code >> (BITS - filled);
            }
        }
    }
    numbers[share] = words.x;
    put_second(share, words.y);
}
