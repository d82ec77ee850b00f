// An operand whose loader needs nothing beforehand.
// needs: nothing
// offers: x_prepare

fn x_prepare(thread: u32, threads: u32) {
}
