//! Codes of a few bits each, one after the other from the lowest bit on.

use crate::lanes;

/// The codes of `bits` bits each, eight at most.
pub(super) fn read_codes(bytes: &[u8], bits: u32) -> impl Iterator<Item = u32> + '_ {
    let bits = bits as usize;
    (0..bytes.len() * 8 / bits).map(move |i| {
        let (byte, shift) = (i * bits / 8, i * bits % 8);
        let pair = u32::from(bytes[byte]) | u32::from(*bytes.get(byte + 1).unwrap_or(&0)) << 8;
        pair >> shift & ((1 << bits) - 1)
    })
}

/// Fills `out` with the numbers of the codes of `bits` bits each, in vectors.
#[inline(always)]
pub(super) fn unpack(bytes: &[u8], bits: u32, out: &mut [f32], number: impl Fn(u32) -> f32) {
    match bits {
        2 => unpack_of::<2>(bytes, out, number),
        3 => unpack_of::<3>(bytes, out, number),
        4 => unpack_of::<4>(bytes, out, number),
        5 => unpack_of::<5>(bytes, out, number),
        6 => unpack_of::<6>(bytes, out, number),
        _ => unpack_of::<8>(bytes, out, number),
    }
}

/// Eight codes take as many bytes as a code has bits.
#[inline(always)]
fn unpack_of<const BITS: usize>(bytes: &[u8], out: &mut [f32], number: impl Fn(u32) -> f32) {
    let (own, _) = bytes.as_chunks::<BITS>();
    for (out, own) in out.as_chunks_mut::<8>().0.iter_mut().zip(own) {
        let mut word = [0; 8];
        word[..BITS].copy_from_slice(own);
        let word = u64::from_le_bytes(word);
        *out = lanes::array(|i| number((word >> (i * BITS)) as u32 & ((1 << BITS) - 1)));
    }
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
