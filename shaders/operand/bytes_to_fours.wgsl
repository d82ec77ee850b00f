// Numbers of four codes, by a loader of bytes.
// needs: X_MORE X_Raw X_SIGNED counted x_bytes
// offers: X_LESS_BY x_four

// A byte less its code's number. Signed bytes are counted from -128 on.
const X_LESS_BY: i32 = select(0, 128, X_SIGNED) - X_MORE;

// Word `word` of the codes' bytes.
fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    var bytes = x_bytes(raw, word / 4u)[word % 4u];
    if X_SIGNED {
        bytes ^= 0x80808080u;
    }
    return counted(bytes) - f32(X_LESS_BY);
}
