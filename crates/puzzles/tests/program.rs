//! Tests of the program from outside: its output, the answers that it accepts, and its reasons to
//! refuse others.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Numbers and folders of the puzzles.
const FOLDERS: [&str; 14] = [
    "01_map",
    "02_zip",
    "03_guard",
    "04_map_2d",
    "05_broadcast",
    "06_workgroups",
    "07_workgroups_2d",
    "08_workgroup_memory",
    "09_pooling",
    "10_dot_product",
    "11_convolution",
    "12_prefix_sum",
    "13_axis_sum",
    "14_matrix_multiply",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The program's output for these arguments and this standard input.
fn program(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewise-puzzles"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn number(index: usize) -> String {
    (index + 1).to_string()
}

fn check(number: &str, file: &Path) -> (Option<i32>, String) {
    let output = program(&["check", number, &file.to_string_lossy()], "");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), stdout(&output))
}

#[test]
fn solutions_are_right_clean_and_at_target() {
    for (index, folder) in FOLDERS.iter().enumerate() {
        let (status, text) =
            check(&number(index), &root().join(format!("solutions/{folder}.wgsl")));
        assert_eq!(status, Some(0), "{folder}: {text}");
        assert!(text.ends_with("\nSolved: right, clean and at target.\n"), "{folder}: {text}");
    }
}

#[test]
fn skeletons_are_refused_with_a_hint() {
    for (index, folder) in FOLDERS.iter().enumerate() {
        let skeleton = root().join(format!("puzzles/{folder}/skeleton.wgsl"));
        let (status, text) = check(&number(index), &skeleton);
        assert_eq!(status, Some(1), "{folder}: {text}");
        assert!(text.contains("nothing writes the output"), "{folder}: {text}");
        assert!(text.contains("\nThe gap marked FILL ME IN is still there"), "{folder}: {text}");

        // With any write at all the rest of it runs: a skeleton is no riddle of syntax.
        let skeleton = std::fs::read_to_string(&skeleton).expect("a file");
        let written = skeleton.replace("// FILL ME IN", "out[0] = 0.5; // FILL ME IN");
        let output = program(&["check", &number(index), "-"], &written);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{folder}: {text}");
        assert!(
            text.contains("\nNot solved: wrong numbers") && text.contains("\nThe gap marked"),
            "{folder}: {text}"
        );
    }
}

/// Classic mistakes: the file in `wrong/`, the exact text of the verdict, and a text in the report.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("01_no_wgsl", "the kernel cannot be run", "map (body):2:17"),
    ("01_plus_one", "wrong numbers", "out[0] is -3, should be 6"),
    ("02_twice_a", "wrong numbers", "out[0] is -8, should be -11"),
    (
        "03_guard_one_late",
        "a finding (out-of-bounds)",
        "index 4 is out of bounds of `out`\n  --> guard (body):3:5",
    ),
    ("03_no_guard", "a finding (out-of-bounds)", "index 4 is out of bounds of `a`"),
    (
        "04_columns_unguarded",
        "a finding (race), a finding (out-of-bounds)",
        "two invocations touch `out[3]`",
    ),
    ("04_rows_for_columns", "wrong numbers", "out[0, 1] is 19, should be 11"),
    ("05_swapped", "wrong numbers, a finding (out-of-bounds)", "index 2 is out of bounds of `a`"),
    (
        "06_local_for_global",
        "wrong numbers, a finding (race), a finding (never-written)",
        "out[4] was never written, should be 3",
    ),
    ("06_no_guard", "a finding (out-of-bounds)", "index 9 is out of bounds of `out`"),
    ("07_one_guard_for_both", "a finding (race)", "two workgroups touch `out[5]`"),
    ("08_early_return", "a finding (divergent-barrier)", "workgroup_memory (body):8:1"),
    (
        "08_nothing_copied",
        "wrong numbers, a finding (uninitialised), under the least (shared writes)",
        "`tile[0]` is read before anybody wrote it",
    ),
    (
        "08_straight_from_memory",
        "under the least (shared reads), under the least (shared writes)",
        "shared reads     0 of 1, under\nshared writes    0 of 1, under\n",
    ),
    ("09_last_two", "wrong numbers", "out[2] is 0, should be -4"),
    ("09_no_barrier", "a finding (race)", "two invocations touch `tile[0]`"),
    (
        "09_no_left_edge",
        "a finding (out-of-bounds)",
        "out of bounds of `tile`\n  --> pooling (body):7:10",
    ),
    ("09_three_reads", "over target (global reads)", "global reads     3 of 1, over\n"),
    (
        "10_adds_to_nothing",
        "wrong numbers, a finding (uninitialised), over target (global reads), over target (global \
         writes)",
        "`out[0]` is read before anybody wrote it",
    ),
    (
        "10_all_add_to_out",
        "wrong numbers, a finding (race), over target (global reads), over target (global writes)",
        "two invocations touch `out[0]`",
    ),
    ("10_barrier_for_half", "a finding (divergent-barrier)", "dot_product (body):18:9"),
    (
        "10_empty_places",
        "wrong numbers, a finding (uninitialised)",
        "`tile[5]` is read before anybody wrote it",
    ),
    ("10_no_barrier_between_steps", "a finding (race)", "two invocations touch `tile[2]`"),
    (
        "10_one_does_all",
        "over target (global reads)",
        "global reads     16 of 2, over        10 of 2, over\n",
    ),
    (
        "10_written_down",
        "wrong numbers",
        "  out is wrong, in the set drawn from the answer's text:\n",
    ),
    ("11_halo_shifted", "wrong numbers", "SIZE = 6, CONV = 3, GROUP = 8\n  out is right"),
    (
        "11_halo_too_short",
        "wrong numbers, a finding (uninitialised)",
        "`tile[10]` is read before anybody wrote it",
    ),
    ("11_no_barrier", "a finding (race)", "two invocations touch `kernel[0]`"),
    ("11_no_halo", "wrong numbers", "out[5] is 18, should be -45"),
    (
        "11_straight_from_memory",
        "over target (global reads)",
        "global reads     6 of 2, over                   8 of 2, over\n",
    ),
    ("12_no_barrier_between_steps", "a finding (race)", "two invocations touch `tile[1]`"),
    ("12_never_ends", "a finding (endless-loop)", "  out is not looked at: a loop does not end\n"),
    (
        "12_one_does_all",
        "over target (global reads)",
        "global reads     8 of 1, over         8 of 1, over\n",
    ),
    (
        "12_one_place_for_all",
        "wrong numbers, a finding (race), a finding (never-written)",
        "SIZE = 8, GROUP = 8\n  out is right",
    ),
    (
        "13_every_workgroup_the_first_row",
        "wrong numbers, a finding (race), a finding (never-written)",
        "out[1, 0] was never written",
    ),
    (
        "13_into_the_next_row",
        "wrong numbers, a finding (out-of-bounds)",
        "index 24 is out of bounds of `a`",
    ),
    ("13_one_does_all", "over target (global reads)", "global reads     6 of 1, over\n"),
    ("14_below_b", "a finding (out-of-bounds)", "index 4 is out of bounds of `b`"),
    (
        "14_early_return",
        "wrong numbers, a finding (divergent-barrier)",
        "matrix_multiply (body):25:5",
    ),
    ("14_one_barrier", "a finding (race)", "two invocations touch `a_tile[0][0]`"),
    ("14_one_tile", "wrong numbers", "M = 2, N = 2, K = 2, GROUP = 3\n  out is right"),
    (
        "14_straight_from_memory",
        "over target (global reads)",
        "global reads     4 of 2, over                    16 of 6, over                   14 of 6, \
         over\n",
    ),
];

#[test]
fn mistakes_are_refused_for_the_right_reason() {
    let mut named: Vec<String> = MISTAKES.iter().map(|(name, ..)| format!("{name}.wgsl")).collect();
    for &(name, verdict, detail) in MISTAKES {
        let number = name[..2].trim_start_matches('0');
        let (status, text) = check(number, &root().join(format!("tests/wrong/{name}.wgsl")));
        assert_eq!(status, Some(1), "{name}: {text}");
        assert_eq!(
            text.lines().last(),
            Some(format!("Not solved: {verdict}.").as_str()),
            "{name}: {text}"
        );
        assert!(text.contains(detail), "{name}: no {detail:?} in {text}");
    }
    let folder = std::fs::read_dir(root().join("tests/wrong")).expect("a folder");
    let mut present: Vec<String> = folder
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    named.sort();
    present.sort();
    assert_eq!(named, present, "every file of wrong/ is a mistake that is looked for");
}

#[test]
fn list_has_a_line_for_each() {
    let text = stdout(&program(&["list"], ""));
    assert_eq!(text.lines().count(), 14);
    assert!(
        text.starts_with(" 1  map\n") && text.contains("\n14  matrix multiplication  (3 cases)\n"),
        "{text}"
    );
}

#[test]
fn show_has_problem_case_target_and_skeleton() {
    for (index, folder) in FOLDERS.iter().enumerate() {
        let text = stdout(&program(&["show", &number(index)], ""));
        let read = |name: &str| {
            std::fs::read_to_string(root().join("puzzles").join(folder).join(name)).expect("a file")
        };
        assert!(
            text.starts_with(&read("problem.md"))
                && text.contains(read("skeleton.wgsl").trim_end()),
            "{text}"
        );
    }
    let text = stdout(&program(&["show", "11"], ""));
    assert!(
        text.contains(
            "Case 2: SIZE = 15, CONV = 4, GROUP = 8\n  16 threads, in 2 workgroups of 8\n"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "  at most per thread: global reads 2, global writes 1, shared reads 8, shared writes \
             2\n"
        ),
        "{text}"
    );
}

#[test]
fn solution_and_skeleton_are_files_to_use() {
    for (index, folder) in FOLDERS.iter().enumerate() {
        let solution = std::fs::read_to_string(root().join(format!("solutions/{folder}.wgsl")))
            .expect("a file");
        assert_eq!(stdout(&program(&["solution", &number(index)], "")), solution);
        let skeleton =
            std::fs::read_to_string(root().join(format!("puzzles/{folder}/skeleton.wgsl")))
                .expect("a file");
        assert_eq!(stdout(&program(&["skeleton", &number(index)], "")), skeleton);
    }
}

#[test]
fn an_answer_from_standard_input() {
    let solved =
        program(&["check", "2", "-"], "out[global_id.x] = a[global_id.x] + b[global_id.x];");
    assert_eq!(solved.status.code(), Some(0), "{}", stdout(&solved));
    let empty = program(&["check", "2", "-"], "");
    assert_eq!(empty.status.code(), Some(1), "{}", stdout(&empty));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_answer() {
    let body = "out[global_id.x] = a[global_id.x] + b[global_id.x];";
    let [plain, marked] = [body.to_owned(), format!("\u{feff}{body}")]
        .map(|text| program(&["check", "2", "-"], &text));
    assert_eq!((marked.status.code(), stdout(&marked)), (Some(0), stdout(&plain)));
}

/// An answer that is right only for the first numbers of the common sets. The report tells no more
/// of its own set than needed.
#[test]
fn of_the_own_set_one_number_is_told() {
    let known = "(a[0] == -4.0 && a[1] == 1.0) || (a[0] == -3.0 && a[1] == -4.0) \
                 || (a[0] == 3.0 && a[1] == 8.0)";
    let body = &format!("out[global_id.x] = select(0.0, a[global_id.x] + 10.0, {known});");
    let text = stdout(&program(&["check", "1", "-"], body));
    let own = text.contains("the set drawn from the answer's text");
    assert!(
        own && text.matches(", should be ").count() == 1
            && text.contains("and so on: 4 of 4 numbers"),
        "{text}"
    );
}

#[test]
fn bad_usage() {
    let answer = root().join("solutions/09_pooling.wgsl");
    let answer = answer.to_str().expect("UTF-8");
    let binary = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(binary.path(), [0xFF, 0xFE, 0x00]).expect("written");
    let binary = binary.path().to_str().expect("UTF-8");
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["frobnicate"], "frobnicate"),
        (&["show"], "PUZZLE"),
        (&["show", "0"], "1..=14"),
        (&["show", "15"], "1..=14"),
        (&["show", "nine"], "nine"),
        (&["check", "9"], "FILE"),
        (&["check", "9", "absent.wgsl"], "cannot read absent.wgsl"),
        (&["check", "9", binary], "cannot read"),
        (&["check", "9", answer, "--case", "2"], "puzzle 9 has no case 2: it has 1"),
        (&["check", "9", answer, "--case", "0"], "no case 0"),
        (&["check", "9", answer, "--svg", "absent/picture.svg"], "cannot write absent/picture.svg"),
    ];
    for (arguments, complaint) in cases {
        let output = program(arguments, "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(complaint), "{arguments:?}: no {complaint:?} in {stderr}");
    }
}

#[test]
fn pictures() {
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().join("picture.svg");
    let answer = root().join("solutions/14_matrix_multiply.wgsl");
    let arguments = [
        "check",
        "14",
        answer.to_str().expect("UTF-8"),
        "--case",
        "3",
        "--svg",
        svg.to_str().expect("UTF-8"),
    ];
    let text = stdout(&program(&arguments, ""));
    assert!(
        text.contains("who touched what (matrix multiplication: M = 5, N = 4, K = 7, GROUP = 3)"),
        "{text}"
    );
    assert!(text.contains("\nThe memory of 2 more workgroups is in the SVG only.\n"), "{text}");
    let written = std::fs::read_to_string(&svg).expect("the SVG");
    let document = roxmltree::Document::parse(&written).expect("well-formed XML");
    let titles: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for title in [
        "a, read",
        "b, read",
        "a_tile of workgroup 1,1, written",
        "b_tile of workgroup 1,1, read",
        "out, written",
    ] {
        assert!(titles.contains(&title), "no {title:?} in {titles:?}");
    }
    // Every number of `out` is written by the one thread of its place.
    let last = written.rsplit("out, written").next().expect("a panel");
    assert_eq!(last.matches("hsl(").count(), 5 * 4);

    assert!(titles.iter().any(|title| title.contains("by global_id")), "{titles:?}");
    assert!(!written.contains("race: "), "{titles:?}");

    let racy = root().join("tests/wrong/14_one_barrier.wgsl");
    let racy = racy.to_str().expect("UTF-8");
    program(&["check", "14", racy, "--svg", svg.to_str().expect("UTF-8"), "--no-picture"], "");
    let written = std::fs::read_to_string(&svg).expect("the SVG");
    assert!(written.contains(">race: a_tile, b_tile</text>"), "{written}");

    let quiet =
        stdout(&program(&["check", "14", answer.to_str().expect("UTF-8"), "--no-picture"], ""));
    assert!(!quiet.contains("who touched what"), "{quiet}");
}

#[test]
fn the_module_on_request() {
    let arguments = ["check", "1", "-", "--wgsl", "--no-picture"];
    let text = stdout(&program(&arguments, "out[global_id.x] = a[global_id.x] + 10.0; // mine"));
    let module = text.split("The whole module (SIZE = 4):\n").nth(1).expect("a module");
    assert!(module.contains("fn ") && module.contains("// mine"), "{text}");
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a file");
    let block = |start: &str| {
        readme.split(start).nth(1).and_then(|rest| rest.split("```").next()).expect("a block")
    };
    let (_, printed) = check("9", &root().join("solutions/09_pooling.wgsl"));
    assert_eq!(block("-- check 9 mine.wgsl\n"), printed);
    let printed = stdout(&program(&["check", "9", "-", "--no-picture"], block("```wgsl\n")));
    assert_eq!(block("-- check 9 mine.wgsl --no-picture\n"), printed);
}
