// Adds the products of a group of 32 weights, which a loader of codes reads, one by one. Mainloops
// turn to this if their own sums are not finite.
// needs: B_CODE_STEP B_PAIRED B_Raw a_load8 a_widen8 b_four b_numbers
// offers: GROUP by_ones code_at is_finite

// Weights of a group.
const GROUP: u32 = 32u;

fn is_finite(number: f32) -> bool {
    return (bitcast<u32>(number) & 0x7f800000u) != 0x7f800000u;
}

// Which of 16 codes a byte of a word has.
fn code_at(word: u32, byte: u32) -> u32 {
    return select(word * 4u + byte, word / 2u * 8u + byte * 2u + word % 2u, B_PAIRED);
}

// Σ weight · element of a group, whatever they are. `in_span` is its place in the load.
fn by_ones(raw: B_Raw, in_span: u32, begin: u32) -> f32 {
    var sum = 0.0;
    for (var word = 0u; word < GROUP / 4u; word += 1u) {
        let numbers = b_numbers(raw, in_span * 2u + word / 4u);
        let four = B_CODE_STEP * b_four(raw, in_span * 8u + word);
        for (var byte = 0u; byte < 4u; byte += 1u) {
            let i = word / 4u * 16u + code_at(word % 4u, byte);
            let eight = a_widen8(a_load8(begin + i / 8u * 8u, 8u));
            sum += eight[i / 4u % 2u][i % 4u] * (numbers.x * four[byte] + numbers.y);
        }
    }
    return sum;
}
