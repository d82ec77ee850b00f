//! Costs of one instruction's accesses in the memory system.

/// Segments touched, summed over the subgroups. `accesses` are (invocation, byte address) in
/// ascending order of invocations, each of `bytes`.
pub(super) fn transactions(
    accesses: &[(u32, u32)],
    bytes: u32,
    subgroup_size: u32,
    segment: u32,
) -> u64 {
    let mut touched: Vec<u32> = Vec::new();
    accesses
        .chunk_by(|a, b| a.0 / subgroup_size == b.0 / subgroup_size)
        .map(|lanes| {
            touched.clear();
            touched.extend(
                lanes.iter().flat_map(|&(_, at)| at / segment..=(at + bytes - 1) / segment),
            );
            touched.sort_unstable();
            touched.dedup();
            touched.len() as u64
        })
        .sum()
}

/// Passes beyond those of a conflict-free access of this width. Lanes are served in groups that
/// together span the banks once: the whole subgroup if each lane accesses a word and there are as
/// many banks as lanes, fewer lanes for wider accesses or fewer banks. A group takes as many passes
/// as the fullest bank has distinct words.
pub(super) fn bank_conflicts(
    accesses: &[(u32, u32)],
    bytes: u32,
    subgroup_size: u32,
    banks: u32,
) -> u64 {
    let words = bytes.div_ceil(4);
    let lanes_at_once = (banks / words).max(1).min(subgroup_size);
    let mut touched: Vec<(u32, u32)> = Vec::new();
    accesses
        .chunk_by(|a, b| {
            a.0 / subgroup_size == b.0 / subgroup_size
                && a.0 % subgroup_size / lanes_at_once == b.0 % subgroup_size / lanes_at_once
        })
        .map(|lanes| {
            touched.clear();
            let each = lanes.iter().flat_map(|&(_, at)| at / 4..=(at + bytes - 1) / 4);
            touched.extend(each.map(|word| (word % banks, word)));
            touched.sort_unstable();
            touched.dedup();
            let fullest = touched.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(1);
            fullest as u64 - 1
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(count: u32, at: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
        (0..count).map(|lane| (lane, at(lane))).collect()
    }

    #[test]
    fn coalescing() {
        assert_eq!(transactions(&lanes(32, |lane| lane * 4), 4, 32, 128), 1);
        assert_eq!(transactions(&lanes(32, |lane| lane * 4 + 64), 4, 32, 128), 2);
        assert_eq!(transactions(&lanes(32, |lane| lane * 128), 4, 32, 128), 32);
        assert_eq!(transactions(&lanes(32, |_| 0), 4, 32, 128), 1);
        assert_eq!(transactions(&lanes(64, |lane| lane * 16), 16, 32, 128), 8);
    }

    #[test]
    fn banks() {
        assert_eq!(bank_conflicts(&lanes(32, |lane| lane * 4), 4, 32, 32), 0);
        assert_eq!(bank_conflicts(&lanes(32, |lane| lane * 8), 4, 32, 32), 1);
        assert_eq!(bank_conflicts(&lanes(32, |lane| lane * 128), 4, 32, 32), 31);
        // All read one word: a broadcast.
        assert_eq!(bank_conflicts(&lanes(32, |_| 12), 4, 32, 32), 0);
        // Vectors of four go eight lanes at a time.
        assert_eq!(bank_conflicts(&lanes(32, |lane| lane * 16), 16, 32, 32), 0);
    }
}
