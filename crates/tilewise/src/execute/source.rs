//! Reads parts of an operand's lines as f32, from any format.

use tilewise_core::kernel::Role;
use tilewise_core::{DType, Format, convert};

/// The roles of an operand's planes.
pub(super) fn roles(role: Role, format: Format) -> impl Iterator<Item = Role> {
    role.planes().take(format.planes().len())
}

/// An operand: the bytes of its planes.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(super) format: Format,
    planes: [&'a [u8]; 4],
}

impl<'a> Source<'a> {
    /// An operand whose planes lie in these words.
    pub(crate) fn new(format: Format, words: &[&'a [u32]]) -> Self {
        let mut planes = [&[][..]; 4];
        for (plane, words) in planes.iter_mut().zip(words) {
            *plane = bytemuck::cast_slice(words);
        }
        Source { format, planes }
    }

    /// All elements, if they are stored as f32.
    pub(super) fn floats(&self) -> Option<&'a [f32]> {
        (self.format == Format::Dense(DType::F32)).then(|| bytemuck::cast_slice(self.planes[0]))
    }

    /// Reads the elements that lie one after the other from `first` on.
    pub(crate) fn read(&self, first: u64, out: &mut [f32]) {
        match self.format {
            Format::Dense(dtype) => {
                let at = first * dtype.bytes();
                convert::decode_into(dtype, &self.planes[0][at as usize..], out);
            }
            Format::Quantized(format) => {
                let block = format.block();
                let end = first + out.len() as u64;
                if !first.is_multiple_of(block) || !end.is_multiple_of(block) {
                    // Only a range of K that the device chose begins or ends inside a block.
                    let begin = first / block * block;
                    let mut whole = vec![0.0; (end.next_multiple_of(block) - begin) as usize];
                    self.read(begin, &mut whole);
                    return out.copy_from_slice(&whole[(first - begin) as usize..][..out.len()]);
                }
                let mut shares = self.planes;
                for (share, plane) in shares.iter_mut().zip(format.planes()) {
                    *share = &share[(first / block * plane.bytes) as usize..];
                }
                format.decode(&shares[..format.planes().len()], out);
            }
        }
    }

    /// Reads elements that lie `step` apart, from `first` on.
    pub(crate) fn read_apart(&self, first: u64, step: u64, out: &mut [f32]) {
        if step == 1 {
            return self.read(first, out);
        }
        for (i, out) in (0..).zip(out) {
            self.read(first + i * step, std::slice::from_mut(out));
        }
    }
}
