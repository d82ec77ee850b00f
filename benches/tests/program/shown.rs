//! A recorded report as table, page and pictures.

use crate::workbench::{Workbench, records};
use tilewise_benches::report::Report;

#[test]
fn a_record_is_shown_beside_a_peer() {
    let bench = Workbench::new();
    let [own, peer] = records();
    let (own_path, peer_path) = (own.display(), peer.display());
    let table = bench.succeed(&format!(
        "--from {own_path} --compare {peer_path} --json copy.json --html page.html --svg pictures"
    ));
    let [own, peer] = [&own, &peer].map(|path| Report::load(path).unwrap());
    assert!(
        table.contains("TFLOP/s f32") && table.contains(&format!("{}: ms", peer.label())),
        "{table}"
    );
    let line = table
        .lines()
        .find(|line| line.starts_with("| 4096x4096x4096:f16 "))
        .expect("a shape of both");
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert!(cells.contains(&"0.5035") && cells.contains(&"0.42×"), "{line}");
    assert!(
        table.contains(&format!("only in {}: ", own.label())) && table.contains("q4_k"),
        "{table}"
    );

    let copy = bench.report("copy.json");
    assert_eq!(copy.rows.len(), own.rows.len());
    let groups: Vec<&str> = own.groups().into_iter().map(|(group, _)| group).collect();
    assert!(
        groups.contains(&"square") && groups.contains(&"skinny") && groups.contains(&"deep"),
        "{groups:?}"
    );

    let page = bench.text("page.html");
    for word in ["<script", "href=", "src=", "@import", "url("] {
        assert!(!page.contains(word), "the page asks for more: {word}");
    }
    // The page has a roofline and the bars of each group, for light and for dark pages.
    assert_eq!(page.matches("<svg").count(), 2 * (1 + groups.len()));
    assert!(
        page.contains("prefers-color-scheme")
            && page.contains(&peer.library)
            && page.contains(&own.driver)
    );
    for group in groups.into_iter().chain(["roofline"]) {
        for theme in ["light", "dark"] {
            let picture = bench.text(&format!("pictures/{group}-{theme}.svg"));
            assert!(
                picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"),
                "{picture}"
            );
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{group}-{theme}");
        }
    }
}

#[test]
fn text_from_files_is_no_markup() {
    let bench = Workbench::new();
    let [own, _] = records();
    let mut report = Report::load(&own).unwrap();
    report.adapter = "<b>GPU</b> & co".into();
    report.rows[0].shape = "<i>shape</i>".into();
    bench.write("odd.json", &report);
    bench.succeed("--from odd.json --quiet --html page.html");
    let page = bench.text("page.html");
    assert!(!page.contains("<b>") && !page.contains("<i>"));
    assert!(page.contains("&lt;b&gt;GPU&lt;/b&gt; &amp; co") && page.contains("&lt;i&gt;shape"));
}
