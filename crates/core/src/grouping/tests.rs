//! Tests of the rows and ranges of K of each entry, and of their expected sizes.

use super::*;

#[test]
fn segments_cover_rows_once_whatever_the_ends() {
    let rows = |ends: &[u32]| {
        let groups = ends.len() as u64;
        let grouping = Grouping::RaggedM { groups, first: 0, offset: 0, expected: None };
        let segments = grouping.segments([9, 7], 1, ends);
        assert!(segments.iter().enumerate().all(|(i, s)| s.group == i as u64 && s.entry == 0));
        segments.into_iter().map(|segment| segment.rows).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[2, 2, 7]), [0..2, 2..2, 2..7]);
    assert_eq!(rows(&[5, 3, u32::MAX]), [0..5, 5..5, 5..9]);
    assert_eq!(rows(&[]), []);
    // A shard of two groups, behind one, and behind two whose ends decrease.
    let shard = |first, ends: &[u32]| {
        let shard = Grouping::RaggedM { groups: 2, first, offset: 1, expected: None };
        assert_eq!(shard.operands().next(), Some((Role::Offsets, 3 + first)));
        let segments = shard.segments([9, 7], 1, ends);
        segments.into_iter().map(|segment| (segment.group, segment.rows)).collect::<Vec<_>>()
    };
    assert_eq!(shard(1, &[99, 2, 4, 7]), [(0, 2..4), (1, 4..7)]);
    assert_eq!(shard(2, &[99, 5, 3, 4, 8]), [(0, 5..5), (1, 5..8)]);
    let batched = Grouping::Batched.segments([4, 3], 2, &[]);
    assert_eq!(batched[1], Segment { entry: 1, group: 1, rows: 0..4, k: 0..3 });
}

#[test]
fn counts_and_ranges_of_k_stay_within_the_product() {
    let segments = |grouping: Grouping, numbers: &[u32]| {
        let segments = grouping.segments([9, 7], 3, numbers);
        assert!(segments.iter().enumerate().all(|(i, s)| [s.entry, s.group] == [i as u64; 2]));
        segments.into_iter().map(|s| (s.rows, s.k)).collect::<Vec<_>>()
    };
    let masked = Grouping::Masked { entries: 3, offset: 1, expected: Some(4) };
    assert_eq!([3, 9].map(|m| masked.expected_m(m)), [3, 4]);
    assert_eq!([3, 9].map(|m| masked.expected_tiles([m, 5], 3, [2, 3])), [12.0, 12.0]);
    let rows = |rows| (rows, 0..7);
    assert_eq!(segments(masked, &[5, 4, u32::MAX]), [rows(0..4), rows(0..9), rows(0..0)]);
    let ragged = Grouping::RaggedK { groups: 3, offset: 0 };
    let range = |k| (0..9, k);
    assert_eq!(segments(ragged, &[5, 3, 8]), [range(0..5), range(5..5), range(5..7)]);
}

#[test]
fn rows_name_their_entries() {
    let grouping = Grouping::Indexed { groups: 3, rows: 4, offset: 1 };
    assert_eq!(grouping.operands().next(), Some((Role::Offsets, 5)));
    let segments = grouping.segments([4, 7], 1, &[99, 2, 0, 3, u32::MAX]);
    let own = |group, row, k| Segment { entry: 0, group, rows: row..row + 1, k };
    assert_eq!(segments, [own(2, 0, 0..7), own(0, 1, 0..7), own(0, 2, 0..0), own(0, 3, 0..0)]);
    assert_eq!([1, 16].map(|bm| grouping.tiles_m(4, bm)), [4, 4]);
    assert_eq!(grouping.expected_tiles([4, 5], 1, [16, 3]), 8.0);
}

#[test]
fn enough_tiles_for_any_ends() {
    let grouping = Grouping::RaggedM { groups: 3, first: 0, offset: 0, expected: None };
    for ends in [[1, 2, 20], [0, 0, 20], [9, 10, 20], [20, 20, 20]] {
        let needed: u64 = grouping
            .segments([20, 1], 1, &ends)
            .iter()
            .map(|s| (s.rows.end - s.rows.start).div_ceil(8))
            .sum();
        assert!(needed <= grouping.tiles_m(20, 8), "{ends:?}");
    }
}
