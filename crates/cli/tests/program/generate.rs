//! `tilewise generate` with a tiny model.

use crate::bench::{Bench, adapters};
use tilewise::Context;
use tilewise_models::{Model, Sampling};
use tilewise_tests::language::{FAMILIES, Tiny, byte_level};

#[test]
fn a_model_continues_a_text() {
    let bench = Bench::new();
    let path = bench.path("model.gguf");
    Tiny::new(FAMILIES[3], 2).write_gguf(&path, &byte_level("qwen2"));
    let model = Model::open(&Context::cpu(), &path).unwrap();
    let text = |prompt: &[u32]| {
        let mut answer = model.generate_blocking(prompt, 9, Sampling::default()).unwrap();
        let pieces = std::iter::from_fn(|| answer.next_blocking().unwrap());
        (pieces.collect::<String>(), answer.tokens().len())
    };
    let tokenizer = model.tokenizer();
    let (raw, chat) = (tokenizer.encode("the 123").unwrap(), tokenizer.chat("the 123").unwrap());
    assert_ne!(text(&raw), text(&chat));
    for adapter in adapters() {
        for (option, prompt, how) in [("--raw", &raw, "continued"), ("", &chat, "a message")] {
            let line = format!("generate model.gguf --tokens 9 {option} --adapter {adapter}");
            let output = bench.command(&line).args(["--prompt", "the 123"]).output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout);
            let (answer, steps) = text(prompt);
            assert!(output.status.success() && shown.starts_with(&answer), "{answer:?}: {shown}");
            let [of_prompt, of_answer] = ["prompt ", "answer "].map(|head| {
                shown.lines().find_map(|line| line.strip_prefix(head)).expect("a line")
            });
            let count = |line: &str, count, end: &str| {
                assert!(line.trim_start().starts_with(&format!("{count} tokens, ")), "{shown}");
                assert!(line.ends_with(&format!(" tokens/s{end}")), "{shown}");
            };
            count(of_prompt, prompt.len(), &format!(", {how}"));
            count(of_answer, steps, "");
        }
    }
}

#[test]
fn a_seed_gives_one_text() {
    let bench = Bench::new();
    Tiny::new(FAMILIES[3], 2).write_gguf(&bench.path("model.gguf"), &byte_level("qwen2"));
    for adapter in adapters() {
        let text = |options: &str| {
            let line = format!("generate model.gguf --prompt the --tokens 9 --adapter {adapter} ");
            let shown = bench.succeed(&(line + options));
            shown.split("\n\nadapter").next().expect("an answer").to_owned()
        };
        let greedy = text("");
        let drawn = text("--temperature 1 --seed 3");
        assert_eq!(text("--temperature 1 --seed 3"), drawn);
        assert_ne!(text("--temperature 1 --seed 4"), drawn);
        assert_ne!(drawn, greedy);
        let narrow = ["--top-k 1", "--top-p 1e-6", "--min-p 1"];
        for option in narrow {
            assert_eq!(text(&format!("--temperature 1 --seed 3 {option}")), greedy, "{option}");
        }
    }
}

#[test]
fn a_profile_is_a_table_of_calls() {
    let bench = Bench::new();
    Tiny::new(FAMILIES[0], 2).write_gguf(&bench.path("model.gguf"), &byte_level("qwen2"));
    let shown =
        bench.succeed("generate model.gguf --prompt the --tokens 2 --profile --adapter cpu");
    let table = &shown[shown.find("call ").expect("a table")..];
    let row = |name: &str| -> Vec<&str> {
        let row = table.lines().find(|line| line.starts_with(name)).expect("a row");
        row.split_whitespace().collect()
    };
    assert_eq!(row("attention")[..2], ["attention", "2"]);
    assert_eq!(row("norm")[1], "5");
    let all = row("all");
    assert_eq!([all[3], all[5]], ["100.0", "100.0"]);
}

#[test]
fn what_is_no_model_is_refused() {
    let bench = Bench::new();
    bench.safetensors("x.safetensors", &[("x", &[1], &[1.0])]);
    let line = bench.fail(2, "generate x.safetensors#x --prompt a");
    assert!(line.contains("name a model, without #TENSOR"), "{line}");
    assert!(bench.fail(2, "generate x.safetensors --prompt a --tokens 0").contains("--tokens"));
    let line = bench.fail(2, "generate x.safetensors --prompt a --seed 1");
    assert!(line.contains("--temperature"), "{line}");
    for number in ["-1", "NaN", "2"] {
        let option = format!("--temperature 1 --top-p={number}");
        let line = bench.fail(2, &format!("generate x.safetensors --prompt a {option}"));
        assert!(line.contains("--top-p") && line.contains("from 0 to 1"), "{line}");
    }
    let line = bench.fail(1, "generate x.safetensors --prompt a --adapter cpu");
    assert!(line.contains("tokenizer.json: "), "{line}");
}
