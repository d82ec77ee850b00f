//! Planes in chunks.

use tilewise_core::{Error, QuantFormat, Result};

/// Bytes of a chunk, at most. A row is never cut if its layout is changed; a chunk may then be
/// longer.
pub const CHUNK: usize = 16 << 20;

/// Some of a tensor's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunk<'a> {
    /// Number of the plane, in the order of [`QuantFormat::planes`]; 0 if the tensor is dense.
    pub plane: usize,
    /// Bytes of the plane before it. The chunks of a plane follow each other without a gap.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Takes chunks. An error ends the stream.
pub type Sink<'a> = dyn FnMut(Chunk<'_>) -> Result<()> + 'a;

/// Gives the bytes of a plane, unchanged.
pub(crate) fn plain(plane: usize, bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    for (i, bytes) in bytes.chunks(CHUNK).enumerate() {
        sink(Chunk { plane, offset: (i * CHUNK) as u64, bytes })?;
    }
    Ok(())
}

/// Gives the planes of GGUF's blocks.
pub(crate) fn blocks(format: QuantFormat, bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let block = format.block_bytes() as usize;
    // Blocks that fill a chunk, or all blocks.
    let most = (CHUNK / block).min(bytes.len() / block);
    let mut planes: Vec<Vec<u8>> = Vec::new();
    for part in format.planes() {
        let mut plane = Vec::new();
        let room = plane.try_reserve_exact(most * part.bytes as usize);
        room.map_err(|why| {
            Error::OutOfMemory(format!("no memory for {most} blocks of {format}: {why}"))
        })?;
        planes.push(plane);
    }
    let mut done = vec![0; planes.len()];
    for bytes in bytes.chunks(CHUNK / block * block) {
        planes.iter_mut().for_each(Vec::clear);
        format.split_blocks(bytes, &mut planes)?;
        for (plane, bytes) in planes.iter().enumerate() {
            sink(Chunk { plane, offset: done[plane], bytes })?;
            done[plane] += bytes.len() as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other() {
        let bytes: Vec<u8> = (0..CHUNK + 5).map(|i| i as u8).collect();
        let mut seen = Vec::new();
        plain(3, &bytes, &mut |chunk| {
            assert_eq!((chunk.plane, chunk.offset), (3, seen.len() as u64));
            assert!(chunk.bytes.len() <= CHUNK);
            seen.extend_from_slice(chunk.bytes);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, bytes);
    }

    #[test]
    fn blocks_are_split_into_planes() {
        for format in [QuantFormat::Q8_0, "q4_k".parse().unwrap(), "gguf-mxfp4".parse().unwrap()] {
            let block = format.block_bytes();
            let count = CHUNK / block as usize + 3;
            let mut bytes = Vec::new();
            let mut expected = vec![Vec::new(); format.planes().len()];
            for i in 0..count {
                for (p, plane) in format.planes().iter().enumerate() {
                    let part: Vec<u8> = (0..plane.bytes)
                        .map(|j| (i as u64 * 31 + p as u64 * 7 + j) as u8)
                        .collect();
                    bytes.extend_from_slice(&part);
                    expected[p].extend_from_slice(&part);
                }
            }
            let mut seen = vec![Vec::new(); expected.len()];
            blocks(format, &bytes, &mut |chunk| {
                assert_eq!(chunk.offset, seen[chunk.plane].len() as u64);
                seen[chunk.plane].extend_from_slice(chunk.bytes);
                Ok(())
            })
            .unwrap();
            assert!(seen == expected, "{format}");
        }
    }
}
