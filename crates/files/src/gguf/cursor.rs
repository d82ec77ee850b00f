//! Reads numbers and strings one after the other. Every error has the offset.

/// A place in the bytes of a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at byte `at`, which lies in the bytes or at their end.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Cursor { bytes, at }
    }

    /// A second cursor at the same place.
    pub(super) fn fork(&self) -> Cursor<'a> {
        Cursor { ..*self }
    }

    /// Bytes before it.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next bytes.
    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken =
            usize::try_from(count).ok().and_then(|count| rest.get(..count)).ok_or_else(|| {
                format!(
                    "truncated: {count} bytes are expected at byte {}, the file has {}",
                    self.at,
                    self.bytes.len()
                )
            })?;
        self.at += taken.len();
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    /// The count of things that follow. Each takes bytes, so reading too many ends with the file.
    pub(super) fn count(&mut self, what: &str, most: u64) -> Result<u64, String> {
        let at = self.at;
        let count = self.u64()?;
        if count > most {
            return Err(format!("{count} {what} at byte {at}; at most {most} are read"));
        }
        Ok(count)
    }

    /// The bytes of a string, after their length.
    pub(super) fn string(&mut self) -> Result<&'a [u8], String> {
        let length = self.u64()?;
        self.take(length)
    }

    /// A string that is used as a name.
    pub(super) fn name(&mut self, what: &str, most: u64) -> Result<String, String> {
        let at = self.at;
        let bytes = self.string()?;
        if bytes.len() as u64 > most {
            return Err(format!(
                "{what} at byte {at}: {} bytes; at most {most} are read",
                bytes.len()
            ));
        }
        let text =
            std::str::from_utf8(bytes).map_err(|why| format!("{what} at byte {at}: {why}"))?;
        Ok(text.to_owned())
    }
}
