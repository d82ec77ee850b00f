//! Bytes that invocations share, and what the caller declared about them.

use crate::launch::{Buffer, Region};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Memory in words. Workgroups run in parallel, and with a racy shader they may meet anywhere, so
/// every word is atomic. Relaxed atomics cost nothing.
#[derive(Default)]
pub(super) struct Memory {
    words: Vec<AtomicU32>,
    pub(super) bytes: u32,
}

impl Memory {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let word = |chunk: &[u8]| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU32::new(u32::from_le_bytes(word))
        };
        Memory { words: bytes.chunks(4).map(word).collect(), bytes: bytes.len() as u32 }
    }

    pub(super) fn fill(&self, word: u32) {
        self.words.iter().for_each(|w| w.store(word, Relaxed));
    }

    /// Loads `bytes` bytes (1, 2 or 4) at `at`, a multiple of `bytes`.
    pub(super) fn load(&self, at: u32, bytes: u32) -> u32 {
        let word = self.words[at as usize / 4].load(Relaxed);
        if bytes == 4 { word } else { word >> (at % 4 * 8) & ((1 << (8 * bytes)) - 1) }
    }

    pub(super) fn store(&self, at: u32, bytes: u32, value: u32) {
        let word = &self.words[at as usize / 4];
        if bytes == 4 {
            word.store(value, Relaxed);
        } else {
            let (shift, mask) = (at % 4 * 8, (1u32 << (8 * bytes)) - 1);
            // Always succeeds: the function never returns None.
            let _ = word.fetch_update(Relaxed, Relaxed, |old| {
                Some(old & !(mask << shift) | (value & mask) << shift)
            });
        }
    }

    /// Replaces a word by what `f` makes of it, and returns the old one.
    pub(super) fn update(&self, at: u32, f: impl Fn(u32) -> u32) -> u32 {
        let updated =
            self.words[at as usize / 4].fetch_update(Relaxed, Relaxed, |old| Some(f(old)));
        updated.unwrap_or_else(|old| old)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            self.words.into_iter().flat_map(|word| word.into_inner().to_le_bytes()).collect();
        bytes.truncate(self.bytes as usize);
        bytes
    }
}

/// One bit per location.
#[derive(Clone, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn none(len: u32) -> Self {
        Bits(vec![0; (len as usize).div_ceil(64)])
    }

    pub(super) fn contains(&self, at: u32) -> bool {
        self.0[at as usize / 64] >> (at % 64) & 1 != 0
    }

    pub(super) fn insert(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// The most locations that one region may name, repetitions counted: as many as there are
/// addresses. Marking them then ends.
const MAX_MARKED: u128 = 1 << 32;

/// The locations that a caller declared to be an operand; `None` if nothing was declared.
pub(super) fn logical(buffer: &Buffer, granule: u32) -> Result<Option<Bits>, String> {
    if let Some(range) = &buffer.reversed {
        return Err(format!("the range {}..{} ends before it starts", range.start, range.end));
    }
    if buffer.regions.is_empty() {
        return Ok(None);
    }
    let len = buffer.bytes.len() as u64;
    let mut bits = Bits::none(len.div_ceil(1 << granule) as u32);
    for region in &buffer.regions {
        mark(region, len, granule, &mut bits)?;
    }
    Ok(Some(bits))
}

fn mark(region: &Region, len: u64, granule: u32, bits: &mut Bits) -> Result<(), String> {
    if region.counts.len() != region.strides.len() {
        return Err(format!(
            "a region with {} counts and {} strides",
            region.counts.len(),
            region.strides.len()
        ));
    }
    if region.element_bytes == 0 {
        return Err("a region with elements of 0 bytes".to_owned());
    }
    if region.counts.contains(&0) {
        return Ok(());
    }
    let elements = region
        .counts
        .iter()
        .fold(1u128, |product, &count| product.saturating_mul(u128::from(count)));
    let locations =
        elements.saturating_mul(u128::from(region.element_bytes.div_ceil(1 << granule)));
    if locations > MAX_MARKED {
        return Err(format!(
            "a region of {:?} elements of {} bytes: {locations} locations, more than the \
             {MAX_MARKED} that there can be",
            region.counts, region.element_bytes
        ));
    }
    let reach = region
        .counts
        .iter()
        .zip(&region.strides)
        .try_fold(region.offset.checked_add(region.element_bytes), |end, (count, stride)| {
            Some(end?.checked_add((count - 1).checked_mul(*stride)?))
        });
    match reach.flatten() {
        Some(end) if end <= len => {}
        Some(end) => return Err(format!("a region ends at byte {end}, the buffer at {len}")),
        None => return Err("a region's extent overflows".to_owned()),
    }
    // Along a stride of 0 all elements lie in one place.
    let (counts, strides): (Vec<u64>, Vec<u64>) =
        region.counts.iter().zip(&region.strides).filter(|(_, stride)| **stride > 0).unzip();
    let mut index = vec![0; counts.len()];
    loop {
        let start =
            region.offset + index.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<u64>();
        for location in start >> granule..=(start + region.element_bytes - 1) >> granule {
            bits.insert(location as u32);
        }
        // The next index, the last axis fastest.
        let Some(axis) = (0..index.len()).rev().find(|&axis| index[axis] + 1 < counts[axis]) else {
            return Ok(());
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_words() {
        let memory = Memory::new(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(
            (memory.load(0, 4), memory.load(2, 2), memory.load(5, 1)),
            (0x0403_0201, 0x0403, 6)
        );
        memory.store(2, 2, 0xBEEF);
        memory.store(4, 1, 0x7F);
        assert_eq!(memory.update(0, |old| old + 1), 0xBEEF_0201);
        assert_eq!(memory.into_bytes(), [2, 2, 0xEF, 0xBE, 0x7F, 6]);
    }

    #[test]
    fn strided_regions() {
        let region =
            Region { offset: 4, counts: vec![2, 2], strides: vec![12, 4], element_bytes: 4 };
        let buffer = Buffer::new(vec![0; 32]).region(region.clone());
        let bits = logical(&buffer, 2).unwrap().unwrap();
        let inside: Vec<u32> = (0..8).filter(|&at| bits.contains(at)).collect();
        assert_eq!(inside, [1, 2, 4, 5]);
        assert!(logical(&Buffer::new(vec![0; 20]).region(region), 2).is_err());
        assert!(logical(&Buffer::new(vec![0; 20]), 2).unwrap().is_none());
    }

    fn marked(buffer: Buffer) -> Vec<u32> {
        let bits = logical(&buffer, 2).unwrap().unwrap();
        (0..buffer.bytes.len() as u32 / 4).filter(|&at| bits.contains(at)).collect()
    }

    #[test]
    fn a_region_without_axes_is_one_element() {
        let region = Region { offset: 8, element_bytes: 8, ..Region::default() };
        assert_eq!(marked(Buffer::new(vec![0; 32]).region(region)), [2, 3]);
    }

    #[test]
    fn a_stride_of_0_repeats_an_element() {
        let region =
            Region { offset: 4, counts: vec![1 << 30, 2], strides: vec![0, 8], element_bytes: 4 };
        assert_eq!(marked(Buffer::new(vec![0; 32]).region(region)), [1, 3]);
    }

    #[test]
    fn ranges_and_regions_of_nothing() {
        assert_eq!(marked(Buffer::new(vec![0; 32]).range(4..12)), [1, 2]);
        assert_eq!(marked(Buffer::new(vec![0; 32]).range(8..8)), [0; 0]);
        let none = Region {
            counts: vec![u64::MAX, 0],
            strides: vec![4, 4],
            element_bytes: 4,
            ..Region::default()
        };
        assert_eq!(marked(Buffer::new(vec![0; 32]).region(none)), [0; 0]);
    }

    #[test]
    fn regions_that_mean_nothing_are_refused() {
        let buffer = || Buffer::new(vec![0; 32]);
        let region = |count, stride, element_bytes| {
            buffer().region(Region {
                offset: 0,
                counts: vec![count],
                strides: vec![stride],
                element_bytes,
            })
        };
        #[expect(clippy::reversed_empty_ranges, reason = "that is what is tried")]
        for (buffer, expected) in [
            (region(u64::MAX, 0, 4), "18446744073709551615 locations"),
            (region(1 << 32, 0, 8), "8589934592 locations"),
            (region(4, 4, 0), "0 bytes"),
            (region(9, 4, 4), "ends at byte 36"),
            (buffer().range(12..4), "12..4"),
            (buffer().range(0..8).range(30..40), "ends at byte 40"),
        ] {
            let error = logical(&buffer, 2).err().unwrap();
            assert!(error.contains(expected), "{error} lacks {expected}");
        }
    }
}
