//! Errors that keep a shader from being run at all.

/// Why a shader could not be run. Findings are no errors: they are in the
/// [`Report`](crate::Report).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// WGSL that does not parse or validate; the text points at the source in rustc's manner.
    #[error("{0}")]
    Invalid(String),
    /// The shader uses something that this crate does not execute.
    #[error("{what} is not supported{}", location(.at))]
    Unsupported {
        /// The unsupported feature.
        what: String,
        /// File, line and column, if known.
        at: Option<String>,
    },
    /// No compute entry point has this name, or several exist and none was named.
    #[error("entry point{}: {why}", quoted(.name))]
    Entry {
        /// The name asked for; empty when none was.
        name: String,
        /// The reason, or the names that exist.
        why: String,
    },
    /// An override without a value, of an unknown name, or with a value that does not fit.
    #[error("override: {0}")]
    Override(String),
    /// A binding that is missing, too small, misaligned, or not used by the shader.
    #[error("binding {group}.{binding}{}: {why}", named(.name))]
    Binding {
        /// The bind group.
        group: u32,
        /// The binding within it.
        binding: u32,
        /// The variable's name in the shader, if there is one.
        name: Option<String>,
        /// The fault, with the numbers.
        why: String,
    },
    /// A grid, workgroup size, subgroup size or other number beyond a limit.
    #[error("{0}")]
    Limit(String),
}

fn quoted(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {name:?}") }
}

fn location(at: &Option<String>) -> String {
    at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default()
}

fn named(name: &Option<String>) -> String {
    name.as_ref().map(|name| format!(" (`{name}`)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_not_given_is_not_quoted() {
        let entry = |name: &str| {
            Error::Entry { name: name.to_owned(), why: "there is none".to_owned() }.to_string()
        };
        assert_eq!(
            (entry("main"), entry("")),
            ("entry point \"main\": there is none".into(), "entry point: there is none".into())
        );
    }
}
