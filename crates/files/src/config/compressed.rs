//! The entries of compressed-tensors: schemes of weights, and the modules that have them.

use super::{Entries, Said, Says};
use crate::error::bad;
use crate::json::kind;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use tilewise_core::Result;

/// The schemes of a model.
#[derive(Clone, Debug)]
pub(crate) struct Compressed {
    schemes: Vec<Scheme>,
    /// Modules that have none.
    ignored: Vec<String>,
}

/// How some modules' weights are stored.
#[derive(Clone, Debug)]
struct Scheme {
    /// Names of modules, regular expressions (`re:`), and classes.
    targets: Vec<String>,
    bits: Option<u64>,
    strategy: String,
    /// Columns of a group, of `group` and `tensor_group`.
    group: Option<u64>,
    /// Rows and columns of `block`.
    block: Option<[usize; 2]>,
    is_symmetric: bool,
    /// Whether columns have an order.
    is_ordered: bool,
    /// `int` or `float`, if it is said.
    kind: String,
    /// The format of the file, if it is said.
    format: String,
    /// The part of it that is not read.
    unread: Option<String>,
}

/// How a matrix is stored.
pub(crate) struct Stored {
    pub(crate) bits: u32,
    /// Columns that share a scale.
    pub(crate) columns: usize,
    pub(crate) k: usize,
    pub(crate) has_zeros: bool,
    pub(crate) has_order: bool,
    /// Whether an element of the tensor holds several codes.
    pub(crate) is_packed: bool,
    pub(crate) is_float: bool,
}

/// Formats of files whose tensors are read.
const FORMATS: [&str; 10] = [
    "",
    "dense",
    "pack-quantized",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp8-quantized",
    "mixed-precision",
];
/// Which weights share a scale.
const STRATEGIES: [&str; 5] = ["tensor", "channel", "group", "tensor_group", "block"];

pub(super) fn compressed(entries: &Entries<'_>) -> Result<Says> {
    let format = entries.text("format");
    let sparsity = entries.object("sparsity_config")?;
    let sparsity = sparsity.map(|inner| entries.of(inner).text("format")).unwrap_or_default();
    // Other transforms are part of the weights.
    let transforms = entries.object("transform_config")?;
    let transforms = transforms.is_some_and(|all| {
        let text = Value::Object(all.clone()).to_string();
        [r#""location":"input""#, r#""location":"output""#].iter().any(|part| text.contains(part))
    });
    let mut schemes = Vec::new();
    for (name, group) in entries.object("config_groups")?.into_iter().flatten() {
        let mut scheme = match group {
            // A preset, and its targets.
            Value::Array(targets) => {
                let unread = Some(format!("the preset {name}"));
                Scheme { targets: texts(targets), unread, ..Scheme::default() }
            }
            Value::Object(group) => match Scheme::read(&entries.of(group))? {
                Some(scheme) => scheme,
                None => continue,
            },
            other => {
                let text = format!("{name} of config_groups is {}", kind(other));
                return Err(bad(entries.file, text));
            }
        };
        if scheme.format.is_empty() {
            scheme.format.clone_from(&format);
        }
        if transforms {
            scheme.unread = Some("transform_config".to_owned());
        }
        for format in [&format, &sparsity].into_iter().filter(|name| !FORMATS.contains(&&***name)) {
            scheme.unread = Some(format!("format {format:?}"));
        }
        schemes.push(scheme);
    }
    let ignored = entries.map.get("ignore").and_then(Value::as_array);
    let ignored = ignored.map(|names| texts(names)).unwrap_or_default();
    Ok(Says::Compressed(Compressed { schemes, ignored }))
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Default for Scheme {
    fn default() -> Self {
        Scheme {
            targets: Vec::new(),
            bits: None,
            strategy: String::new(),
            group: None,
            block: None,
            is_symmetric: true,
            is_ordered: false,
            kind: String::new(),
            format: String::new(),
            unread: None,
        }
    }
}

impl Scheme {
    /// Reads a group of `config_groups`; none if its weights are not quantized.
    fn read(entries: &Entries<'_>) -> Result<Option<Self>> {
        let Some(weights) = entries.object("weights")? else { return Ok(None) };
        let weights = entries.of(weights);
        let group = weights.count(["group_size"; 2], Some(u64::MAX))?;
        // Without a strategy, the group's size tells it.
        let strategy = match (&*weights.text("strategy"), group) {
            ("", None) => "tensor".to_owned(),
            ("", Some(u64::MAX)) => "channel".to_owned(),
            ("", Some(_)) => "group".to_owned(),
            (said, _) => said.to_owned(),
        };
        let format = entries.text("format");
        let unread = if !STRATEGIES.contains(&&*strategy) {
            Some(format!("strategy {strategy:?}"))
        } else if !FORMATS.contains(&&*format) {
            Some(format!("format {format:?}"))
        } else {
            None
        };
        let targets = entries.map.get("targets").and_then(Value::as_array);
        Ok(Some(Scheme {
            targets: targets.map(|targets| texts(targets)).unwrap_or_default(),
            bits: weights.count(["num_bits"; 2], None)?.or(Some(8)),
            strategy,
            group,
            block: weights.block("block_structure")?,
            is_symmetric: weights.map.get("symmetric").and_then(Value::as_bool) != Some(false),
            is_ordered: weights.flag("actorder")
                || matches!(&*weights.text("actorder"), "group" | "dynamic"),
            kind: weights.text("type"),
            format,
            unread,
        }))
    }

    fn names(&self, module: &str) -> bool {
        self.targets.iter().any(|target| target == module)
    }

    /// Whether weights could be stored so.
    fn fits(&self, stored: &Stored) -> bool {
        let Stored { bits, columns, k, has_zeros, has_order, is_packed, is_float } = *stored;
        let is_any = matches!(&*self.format, "" | "dense" | "mixed-precision");
        let group = match (&*self.strategy, self.block) {
            ("block", Some([_, columns])) => columns,
            ("group" | "tensor_group", _) => {
                self.group.and_then(|group| usize::try_from(group).ok()).unwrap_or(k)
            }
            _ => k,
        };
        self.bits == Some(u64::from(bits))
            && group.min(k) == columns.min(k)
            && (self.is_symmetric || has_zeros)
            && (!self.is_ordered || has_order || columns >= k)
            && (is_any || self.format.contains("pack") == is_packed)
            && (self.kind.is_empty() || (self.kind == "float") == is_float)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scheme { bits, strategy, group, block, is_symmetric, is_ordered, kind, format, .. } =
            self;
        write!(f, "{} bits, strategy {strategy}", bits.unwrap_or_default())?;
        if let Some(group) = group.filter(|group| *group != u64::MAX) {
            write!(f, ", groups of {group}")?;
        }
        if let Some([rows, columns]) = block {
            write!(f, ", blocks of {rows} by {columns}")?;
        }
        f.write_str(if *is_symmetric { "" } else { ", with zeros" })?;
        f.write_str(if *is_ordered { ", with weight_g_idx" } else { "" })?;
        for said in [kind, format].into_iter().filter(|said| !said.is_empty()) {
            write!(f, ", {said}")?;
        }
        Ok(())
    }
}

impl Compressed {
    /// The schemes that a module may have. If some name it, these; otherwise all that have a class
    /// or a regular expression for a target. The tensors tell these apart.
    fn schemes(&self, module: &str) -> Vec<&Scheme> {
        let named: Vec<&Scheme> =
            self.schemes.iter().filter(|scheme| scheme.names(module)).collect();
        if !named.is_empty() {
            return named;
        }
        let is_class = |target: &String| target.starts_with("re:") || !target.contains('.');
        self.schemes.iter().filter(|scheme| scheme.targets.iter().any(is_class)).collect()
    }
}

impl Said {
    fn schemes(&self, module: &str) -> Vec<&Scheme> {
        match &self.says {
            Says::Compressed(compressed) => compressed.schemes(module),
            _ => Vec::new(),
        }
    }

    /// Rows and columns of a module that share a scale, as each of its schemes may say.
    pub(crate) fn blocks(&self, module: &str) -> BTreeSet<[usize; 2]> {
        match &self.says {
            Says::Fp8 { block } => block.iter().copied().collect(),
            _ => self.schemes(module).into_iter().filter_map(|scheme| scheme.block).collect(),
        }
    }

    /// Bits of a code of a module, as each of its schemes may say.
    pub(crate) fn bits(&self, module: &str) -> BTreeSet<u32> {
        let bits = |scheme: &Scheme| scheme.bits.filter(|bits| (1..=8).contains(bits));
        self.schemes(module).into_iter().filter_map(bits).map(|bits| bits as u32).collect()
    }

    /// The part that is not read of a module's schemes, if none is read.
    pub(crate) fn unread(&self, module: &str) -> Option<&str> {
        let schemes = self.schemes(module);
        let read = schemes.iter().find(|scheme| scheme.unread.is_none());
        schemes.first().filter(|_| read.is_none())?.unread.as_deref()
    }

    /// Fails, with what is said instead, if a module has no such weights.
    pub(crate) fn agrees(&self, module: &str, stored: &Stored) -> std::result::Result<(), String> {
        if let Says::Compressed(Compressed { ignored, .. }) = &self.says
            && ignored.iter().any(|name| name == module)
        {
            return Err("that it is not quantized".to_owned());
        }
        let schemes = self.schemes(module);
        let fits = |scheme: &&Scheme| scheme.unread.is_none() && scheme.fits(stored);
        if schemes.is_empty() || schemes.iter().any(fits) {
            return Ok(());
        }
        let said: Vec<String> = schemes.iter().map(ToString::to_string).collect();
        let Stored { bits, columns, has_zeros, has_order, is_packed, is_float, .. } = stored;
        let parts = [
            (*has_zeros, ", zeros"),
            (*has_order, ", weight_g_idx"),
            (*is_float, ", floats"),
            (*is_packed, ", packed"),
        ];
        let parts: String = parts.iter().filter(|(is, _)| *is).map(|(_, part)| *part).collect();
        let found = format!("{bits} bits, groups of {columns}{parts}");
        Err(format!("{}, but the tensors have {found}", said.join("; or ")))
    }
}

impl<'a> Entries<'a> {
    /// An object among the entries.
    fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(inner)) => Ok(Some(inner)),
            Some(other) => {
                let text = format!("{key} is {}, an object is expected", kind(other));
                Err(bad(self.file, text))
            }
        }
    }

    /// The entries of an object of the same file.
    fn of(&self, map: &'a Map<String, Value>) -> Entries<'a> {
        Entries { file: self.file, map }
    }

    /// Rows and columns: `[128, 128]`, or `"128x128"`.
    pub(super) fn block(&self, key: &str) -> Result<Option<[usize; 2]>> {
        let Some(value) = self.map.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let extents: Vec<Option<usize>> = match value {
            Value::Array(all) => {
                all.iter().map(|value| usize::try_from(value.as_u64()?).ok()).collect()
            }
            Value::String(text) => text.split('x').map(|part| part.parse().ok()).collect(),
            _ => Vec::new(),
        };
        match extents[..] {
            [Some(rows @ 1..), Some(columns @ 1..)] => Ok(Some([rows, columns])),
            _ => Err(bad(self.file, format!("{key} is {value}, [rows, columns] is expected"))),
        }
    }
}
