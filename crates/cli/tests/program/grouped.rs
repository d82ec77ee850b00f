//! `tilewise grouped`.

use crate::bench::{Bench, adapters, assert_close, every_adapter, numbers, product, transposed};

const N: usize = 9;
const K: usize = 13;

/// Groups of different sizes, an empty one among them; rows from the last end on belong to none.
const ENDS: [u32; 4] = [7, 7, 8, 70];
const M: usize = 75;

/// Writes ends, or counts, in each type that they may have.
fn offset_files(bench: &Bench, ends: &[u32]) {
    let u32s: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
    let i64s: Vec<u8> = ends.iter().flat_map(|&end| i64::from(end).to_le_bytes()).collect();
    bench.npy_bytes("u32.npy", "<u4", &[ends.len()], &u32s);
    bench.npy_bytes("i32.npy", "<i4", &[ends.len()], &u32s);
    bench.npy_bytes("i64.npy", "<i8", &[ends.len()], &i64s);
}

#[test]
fn ragged_groups() {
    let groups = ENDS.len();
    let (a, b) = (numbers(M * K, 1), numbers(groups * K * N, 2));
    let entries: Vec<&[f32]> = b.chunks_exact(K * N).collect();
    let mut expected = vec![0.0; M * N];
    let mut start = 0;
    for (entry, &end) in entries.iter().zip(&ENDS) {
        let (end, rows) = (end as usize, end as usize - start);
        expected[start * N..end * N].copy_from_slice(&product(
            &a[start * K..end * K],
            entry,
            rows,
            N,
            K,
        ));
        start = end;
    }
    let flipped: Vec<f32> = entries.iter().flat_map(|entry| transposed(entry, K, N)).collect();
    let bench = Bench::new();
    bench.npy("a.npy", &[M, K], &a);
    bench.npy("b.npy", &[groups, K, N], &b);
    bench.npy("bt.npy", &[groups, N, K], &flipped);
    offset_files(&bench, &ENDS);
    for adapter in adapters() {
        for offsets in ["u32", "i32", "i64"] {
            for operands in ["a.npy b.npy", "a.npy bt.npy --transpose-b"] {
                let said = bench.succeed(&format!(
                    "grouped {operands} --offsets {offsets}.npy -o c.npy --adapter {adapter} \
                     --check"
                ));
                assert!(said.contains(", 4 groups, K = 13, "), "{said}");
                let (shape, values) = bench.read_npy("c.npy");
                assert_eq!(shape, [M, N]);
                assert_close(&values, &expected, 1e-4);
                std::fs::remove_file(bench.path("c.npy")).unwrap();
            }
        }
    }
}

/// The first rows of each entry; the others are zeros, whatever A holds there.
#[test]
fn first_rows_of_each_entry() {
    const ROWS: usize = 33;
    let counts = [7u32, 0, 33, 1];
    let groups = counts.len();
    let (mut a, b) = (numbers(groups * ROWS * K, 1), numbers(groups * K * N, 2));
    let entries: Vec<&[f32]> = b.chunks_exact(K * N).collect();
    let mut expected = vec![0.0; groups * ROWS * N];
    for (group, &count) in counts.iter().enumerate() {
        let own = &mut a[group * ROWS * K..][..ROWS * K];
        let (counted, beyond) = own.split_at_mut(count as usize * K);
        beyond.fill(f32::NAN);
        let rows = count as usize;
        expected[group * ROWS * N..][..rows * N].copy_from_slice(&product(
            counted,
            entries[group],
            rows,
            N,
            K,
        ));
    }
    let flipped: Vec<f32> = entries.iter().flat_map(|entry| transposed(entry, K, N)).collect();
    let bench = Bench::new();
    bench.npy("a.npy", &[groups, ROWS, K], &a);
    bench.npy("b.npy", &[groups, K, N], &b);
    bench.npy("bt.npy", &[groups, N, K], &flipped);
    bench.npy("first.npy", &[K, N], entries[0]);
    bench.npy("rest.npy", &[3, K, N], &b[K * N..]);
    offset_files(&bench, &counts);
    for adapter in every_adapter() {
        for (operands, counts) in
            [("b.npy", "u32"), ("bt.npy --transpose-b", "i32"), ("first.npy rest.npy", "i64")]
        {
            let said = bench.succeed(&format!(
                "grouped a.npy {operands} --masked {counts}.npy -o c.npy --adapter {adapter} \
                 --check"
            ));
            assert!(said.contains("within the bound"), "{said}");
            assert!(said.contains(", 4 groups, K = 13, "), "{said}");
            let (shape, values) = bench.read_npy("c.npy");
            assert_eq!(shape, [groups, ROWS, N]);
            assert_close(&values, &expected, 1e-4);
            std::fs::remove_file(bench.path("c.npy")).unwrap();
        }
    }
}

/// One entry of A for all groups, as one B serves all entries.
#[test]
fn first_rows_of_one_entry() {
    const ROWS: usize = 5;
    let counts = [2u32, 0, 5];
    let (a, b) = (numbers(3 * ROWS * K, 1), numbers(3 * K * N, 2));
    let bench = Bench::new();
    bench.npy("a.npy", &[3, ROWS, K], &a);
    bench.npy("one_a.npy", &[1, ROWS, K], &a[..ROWS * K]);
    bench.npy("b.npy", &[3, K, N], &b);
    bench.npy("one_b.npy", &[1, K, N], &b[..K * N]);
    offset_files(&bench, &counts);
    for adapter in adapters() {
        for (operands, step_a, step_b) in
            [("one_a.npy b.npy", 0, K * N), ("a.npy one_b.npy", ROWS * K, 0)]
        {
            let line = format!("grouped {operands} --masked u32.npy -o c.npy --adapter {adapter}");
            bench.succeed(&format!("{line} --check"));
            let (shape, values) = bench.read_npy("c.npy");
            assert_eq!(shape, [3, ROWS, N]);
            for (group, &count) in counts.iter().enumerate() {
                let (a, b) = (&a[group * step_a..], &b[group * step_b..]);
                let mut expected = product(a, b, count as usize, N, K);
                expected.resize(ROWS * N, 0.0);
                assert_close(&values[group * ROWS * N..][..ROWS * N], &expected, 1e-4);
            }
        }
    }
}

#[test]
fn bad_counts() {
    let bench = Bench::new();
    bench.npy("one.npy", &[1, 5, 4], &numbers(20, 1));
    bench.npy("one_b.npy", &[1, 4, 3], &numbers(12, 2));
    bench.npy("a.npy", &[2, 5, 4], &numbers(40, 1));
    bench.npy("matrix.npy", &[10, 4], &numbers(40, 1));
    bench.npy("b.npy", &[2, 4, 3], &numbers(24, 2));
    bench.npy("b3.npy", &[3, 4, 3], &numbers(36, 2));
    bench.npy("bt.npy", &[2, 3, 4], &numbers(24, 2));
    for (operands, counts, parts) in [
        ("a.npy b.npy", &[5, 6][..], ["u32.npy: count 1 is 6", "5 rows"]),
        ("a.npy b.npy", &[5, 5, 5], ["3 counts", "2 entries"]),
        ("a.npy b3.npy", &[5, 5], ["2", "3"]),
        ("a.npy b.npy", &[5], ["1 count;", "2 entries"]),
        ("one.npy one_b.npy", &[5, 5], ["2 counts", "B has 1 entry,"]),
        ("one.npy b3.npy", &[5, 5], ["2 counts", "B has 3 entries"]),
        ("a.npy bt.npy", &[5, 5], ["5×4", "3×4"]),
        ("matrix.npy b.npy", &[5, 5], ["matrix.npy: shape [10,4]", "[groups, rows, columns]"]),
    ] {
        offset_files(&bench, counts);
        for adapter in adapters() {
            let line = format!("grouped {operands} --masked u32.npy -o c.npy --adapter {adapter}");
            bench.refuses(&line, &parts);
        }
    }
    bench.npy("f32.npy", &[2], &[5.0, 5.0]);
    bench.refuses("grouped a.npy b.npy --masked f32.npy -o c.npy", &["f32", "counts may be u32"]);
    let both = "grouped a.npy b.npy --masked u32.npy --offsets u32.npy -o c.npy";
    let said = bench.fail(2, both);
    assert!(said.contains("--masked") && said.contains("--offsets"), "{said}");
}

#[test]
fn bad_offsets() {
    let bench = Bench::new();
    bench.npy("a.npy", &[10, 4], &numbers(40, 1));
    bench.npy("b.npy", &[2, 4, 3], &numbers(24, 2));
    let fail = |ends: &[u32], file: &str| {
        offset_files(&bench, ends);
        let message = bench
            .fail(1, &format!("grouped a.npy b.npy --offsets {file}.npy -o c.npy --adapter cpu"));
        assert!(!bench.files().contains(&"c.npy".to_string()));
        message
    };
    let decreasing = fail(&[5, 3], "u32");
    assert!(decreasing.contains('5') && decreasing.contains('3'), "{decreasing}");
    let beyond = fail(&[5, 11], "u32");
    assert!(beyond.contains("11") && beyond.contains("10"), "{beyond}");
    let count = fail(&[5, 6, 7], "u32");
    assert!(count.contains('3') && count.contains('2'), "{count}");
    // The bytes of u32::MAX are −1 as an i32.
    let negative = fail(&[5, u32::MAX], "i32");
    assert!(negative.contains("-1"), "{negative}");
    bench.npy("u32.npy", &[2], &[5.0, 6.0]);
    let floats = bench.fail(1, "grouped a.npy b.npy --offsets u32.npy -o c.npy --adapter cpu");
    assert!(floats.contains("f32"), "{floats}");
    bench.npy_bytes("u32.npy", "<u4", &[1, 2], &[0; 8]);
    let matrix = bench.fail(1, "grouped a.npy b.npy --offsets u32.npy -o c.npy --adapter cpu");
    assert!(matrix.contains("[1,2]"), "{matrix}");
}
