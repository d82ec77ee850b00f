//! Codes of a few bits each, one after the other from the lowest bit on.

/// The codes of `bits` bits each, eight at most.
pub(super) fn read_codes(bytes: &[u8], bits: u32) -> impl Iterator<Item = u32> + '_ {
    let bits = bits as usize;
    (0..bytes.len() * 8 / bits).map(move |i| {
        let (byte, shift) = (i * bits / 8, i * bits % 8);
        let pair = u32::from(bytes[byte]) | u32::from(*bytes.get(byte + 1).unwrap_or(&0)) << 8;
        pair >> shift & ((1 << bits) - 1)
    })
}

/// The reverse of [`read_codes`].
pub(super) fn write_codes(bytes: &mut [u8], bits: u32, codes: impl Iterator<Item = u32>) {
    bytes.fill(0);
    for (i, code) in codes.enumerate() {
        let (byte, shift) = (i * bits as usize / 8, i * bits as usize % 8);
        let pair = code << shift;
        bytes[byte] |= pair as u8;
        if pair > 0xff {
            bytes[byte + 1] |= (pair >> 8) as u8;
        }
    }
}
