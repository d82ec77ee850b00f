//! `tilewise embed` and `tilewise search`, with a tiny model.

use crate::bench::{Bench, adapters, assert_close};
use std::io::Write;
use std::process::Stdio;
use tilewise_tests::bert::Bert;
use tilewise_tests::program::text;

const LINES: [&str; 4] = ["one line", "and another", "", "a line of more words"];

/// A folder with the model `tiny` and the text `lines.txt`.
fn bench() -> (Bert, Bench) {
    let (bert, bench) = (Bert::new(7), Bench::new());
    bert.write(&bench.path("tiny"));
    std::fs::write(bench.path("lines.txt"), LINES.join("\n") + "\n").unwrap();
    (bert, bench)
}

#[test]
fn vectors_of_lines() {
    let (bert, bench) = bench();
    let expected: Vec<f64> = LINES.iter().flat_map(|line| bert.embed(line)).collect();
    let shape = [LINES.len(), expected.len() / LINES.len()];
    for adapter in adapters() {
        let printed = bench.succeed(&format!("embed tiny lines.txt --adapter {adapter}"));
        let rows: Vec<Vec<f64>> = printed
            .lines()
            .map(|line| {
                line.split(' ').map(|number| number.parse::<f32>().unwrap().into()).collect()
            })
            .collect();
        assert_eq!(rows.len(), LINES.len());
        assert_close(&rows.concat(), &expected, 3e-6);

        let line = format!("embed tiny lines.txt -o v.npy --adapter {adapter}");
        assert!(bench.succeed(&line).contains("v.npy"));
        let (found_shape, found) = bench.read_npy("v.npy");
        assert_eq!(found_shape, shape);
        assert_close(&found, &rows.concat(), 0.0);
        std::fs::remove_file(bench.path("v.npy")).unwrap();
    }
}

#[test]
fn lines_from_standard_input() {
    let (_, bench) = bench();
    let expected = bench.succeed("embed tiny lines.txt --adapter cpu");
    let mut command = bench.command("embed tiny --adapter cpu");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(LINES.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn nearest_lines() {
    let (bert, bench) = bench();
    let query = bert.embed("another");
    let score =
        |line: &str| -> f64 { query.iter().zip(bert.embed(line)).map(|(q, x)| q * x).sum() };
    let mut expected: Vec<_> = (1..)
        .zip(LINES)
        .filter(|(_, line)| !line.is_empty())
        .map(|(n, line)| (score(line), n, line))
        .collect();
    expected.sort_by(|a, b| b.0.total_cmp(&a.0));
    for adapter in adapters() {
        let line = format!("search tiny lines.txt --query another --adapter {adapter}");
        let shown = bench.succeed(&line);
        let rows: Vec<&str> = shown.lines().skip(1).collect();
        assert_eq!(rows.len(), expected.len(), "{shown}");
        for (row, (score, number, line)) in rows.iter().zip(&expected) {
            let mut words = row.split_whitespace();
            let found: f64 = words.next().unwrap().parse().unwrap();
            assert!((found - score).abs() < 6e-4, "{row}: {score}");
            assert_eq!(words.next(), Some(&*number.to_string()));
            assert_eq!(words.collect::<Vec<_>>().join(" "), *line);
        }
        assert_eq!(bench.succeed(&format!("{line} --top 1")).lines().count(), 2);
    }
}

#[test]
fn what_is_refused() {
    let (_, bench) = bench();
    bench.refuses("embed none lines.txt", &["none", "config.json"]);
    bench.refuses("embed tiny none.txt", &["none.txt"]);
    bench.refuses("embed tiny lines.txt -o none/v.npy", &["none"]);
    bench.refuses("search tiny none.txt --query a", &["none.txt"]);
    bench.fail(2, "search tiny lines.txt");
    bench.fail(2, "embed tiny lines.txt -o v.txt");
}
