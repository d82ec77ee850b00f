//! Models in several files: `NAME-00001-of-00003.gguf` and so on.

/// Takes the name of a part, with this ending, apart: the text before the numbers, the number of
/// the part, from 1 on, and the number of parts.
pub(crate) fn parse<'a>(name: &'a str, ending: &str) -> Option<(&'a str, u64, u64)> {
    let (rest, count) = name.strip_suffix(ending)?.rsplit_once("-of-")?;
    let (prefix, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(number) || !digits(count) {
        return None;
    }
    let (number, count) = (number.parse().ok()?, count.parse().ok()?);
    (1..=count).contains(&number).then_some((prefix, number, count))
}

/// The name of a part of GGUF.
pub(crate) fn name(prefix: &str, number: u64, count: u64) -> String {
    format!("{prefix}-{number:05}-of-{count:05}.gguf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(parse("a-b-00002-of-00003.gguf", ".gguf"), Some(("a-b", 2, 3)));
        assert_eq!(parse("a-00002-of-00003.safetensors", ".safetensors"), Some(("a", 2, 3)));
        assert_eq!(parse("a-00002-of-00003.safetensors", ".gguf"), None);
        assert_eq!(name("a-b", 2, 3), "a-b-00002-of-00003.gguf");
        for bad in [
            "a.gguf",
            "a-00004-of-00003.gguf",
            "a-00000-of-00003.gguf",
            "a-2-of-3.gguf",
            "a-0000x-of-00003.gguf",
        ] {
            assert_eq!(parse(bad, ".gguf"), None, "{bad}");
        }
    }
}
