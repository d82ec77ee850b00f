//! Finds the files of a model, and reads their headers.

use crate::config::Config;
use crate::error::bad;
use crate::gguf::Gguf;
use crate::header;
use crate::raw::Raw;
use crate::shard::{INDEX, Shard, is_shard, weight_map};
use crate::signature::{self, GGUF};
use crate::source::{Source, Store};
use crate::split;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tilewise_core::{Error, Result};

/// The files of a model.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) sources: Vec<Source>,
    /// The tensors of all files.
    pub(crate) raws: Vec<Raw>,
    /// The metadata of safetensors files, by the file's number.
    pub(crate) metadata: Vec<BTreeMap<String, String>>,
    /// GGUF files, by the file's number.
    pub(crate) gguf: Vec<Gguf>,
    pub(crate) config: Config,
    /// The shard, if one was opened without the others.
    pub(crate) shard: Option<Shard>,
}

/// Opens the model that the file `entry` holds or names.
pub(crate) fn open(mut files: Store, entry: &str) -> Result<Opened> {
    let mut opened = Opened::default();
    let source = files.open(entry)?;
    if source.bytes.starts_with(GGUF) || entry.ends_with(".gguf") {
        opened.add_split(&mut files, entry, source)?;
        return Ok(opened);
    }
    if entry.ends_with(".json") {
        opened.add_shards(&mut files, &source)?;
    } else {
        opened.add_safetensors(source)?;
        opened.shard = Shard::open(&mut files, entry);
    }
    opened.config = config(&mut files);
    Ok(opened)
}

/// The entries on quantization of a file beside the tensors; none, if no file has any. A file that
/// cannot be read closes no tensors by itself: the error is kept for tensors that need it.
pub(crate) fn config(files: &mut Store) -> Config {
    let (mut config, mut fault) = (Config::default(), None);
    for name in ["config.json", "quantize_config.json"] {
        let read = files.open_optional(name).and_then(|source| match source {
            Some(source) => Config::read(&source),
            None => Ok(Config::default()),
        });
        match read {
            Ok(config) if config.is_silent() => {}
            Ok(read) => {
                config = read;
                break;
            }
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    config.fault = fault;
    config
}

/// The file of a folder that holds its model, or names its shards.
pub(crate) fn entry(files: &Store) -> Result<String> {
    /// Names in a message.
    const SHOWN: usize = 10;
    let names = files.names()?;
    let ending = |ending: &str| {
        names.iter().filter(|name| name.ends_with(ending)).cloned().collect::<Vec<_>>()
    };
    let index = ending(INDEX);
    let usual = ["model.safetensors.index.json", "model.safetensors"];
    let usual = usual.into_iter().find(|usual| names.iter().any(|name| name == usual));
    let safetensors = [&index[..], &ending(".safetensors")].concat();
    let first =
        |name: &String| split::parse(name, ".gguf").is_none_or(|(_, number, _)| number == 1);
    let gguf: Vec<String> = ending(".gguf").into_iter().filter(first).collect();
    let mut all = match (usual, &index[..]) {
        (Some(usual), _) => vec![usual.to_owned()],
        (None, [only]) => vec![only.clone()],
        _ => safetensors.clone(),
    };
    all.extend_from_slice(&gguf);
    let shown = files.shown();
    // A part of a model must not pass for the whole.
    if let Some(part) = all.iter().find(|name| is_shard(name)) {
        let text = format!(
            "{part} is one of several files, and their index, *.safetensors.index.json, is missing"
        );
        return Err(Error::file(format!("{shown}: {text}")));
    }
    match &all[..] {
        [only] => Ok(only.clone()),
        [] => {
            let other = names.iter().find_map(|name| Some((name, signature::remedy(name)?)));
            let hint = other.map_or_else(String::new, |(name, remedy)| {
                format!("; {name} is of another format: {remedy}")
            });
            Err(Error::file(format!("{shown}: no .safetensors or .gguf file is there{hint}")))
        }
        _ => {
            // Shards belong to the index.
            let whole = safetensors.into_iter().filter(|name| !is_shard(name));
            let all: Vec<String> = whole.chain(gguf).collect();
            let more = match all.len().saturating_sub(SHOWN) {
                0 => String::new(),
                some => format!(" and {some} more"),
            };
            let names = all[..all.len().min(SHOWN)].join(", ");
            Err(Error::Misuse(format!(
                "{shown}: several models are there, name one: {names}{more}"
            )))
        }
    }
}

impl Opened {
    /// Where else a tensor may be, for errors: the text goes at their end.
    pub(crate) fn others(&self) -> String {
        self.shard.as_ref().map_or_else(String::new, |shard| {
            format!("; this file is {shard}: open the index, or the folder")
        })
    }

    fn add_safetensors(&mut self, source: Source) -> Result<()> {
        let header = header::read(self.sources.len(), &source.name, &source.bytes)?;
        self.raws.extend(header.tensors);
        self.metadata.push(header.metadata);
        self.sources.push(source);
        Ok(())
    }

    /// Adds the shards that an index names, with the tensors that they hold.
    fn add_shards(&mut self, files: &mut Store, index: &Source) -> Result<()> {
        let map = weight_map(index)?;
        let shards: BTreeSet<&str> = map.values().map(String::as_str).collect();
        let mut of: HashMap<&str, usize> = HashMap::new();
        for (i, shard) in shards.into_iter().enumerate() {
            of.insert(shard, i);
            let named = |why: String| format!("{}: it names {shard}: {why}", index.name);
            let source = files.open(shard).map_err(|error| error.map_text(named))?;
            self.add_safetensors(source)?;
        }
        let mut held: BTreeSet<(&str, usize)> = BTreeSet::new();
        for raw in &self.raws {
            held.insert((&raw.name, raw.file));
        }
        let listed = |name: &str| map.get(name).and_then(|shard| of.get(&**shard).copied());
        if let Some((name, shard)) = map.iter().find(|(name, _)| {
            let file = listed(name);
            file.is_none_or(|file| !held.contains(&(&***name, file)))
        }) {
            return Err(bad(
                &index.name,
                format!("tensor {name:?} is said to be in {shard:?}, which does not hold it"),
            ));
        }
        // If two shards hold a tensor, the one that the index says counts.
        let raws = std::mem::take(&mut self.raws);
        self.raws = raws
            .into_iter()
            .filter(|raw| listed(&raw.name).is_none_or(|file| file == raw.file))
            .collect();
        self.distinct()
    }

    /// Adds the part of a GGUF model that was named, and the others.
    fn add_split(&mut self, files: &mut Store, entry: &str, source: Source) -> Result<()> {
        let first = Gguf::read(0, &source.name, &source.bytes)?;
        let number =
            |gguf: &Gguf, source: &Source, key: &str| gguf.value(key, &source.bytes)?.as_u64();
        let count = number(&first, &source, "split.count").unwrap_or(1);
        if count <= 1 {
            return self.add_gguf(source);
        }
        let total = number(&first, &source, "split.tensors.count");
        let (prefix, own) = match split::parse(entry, ".gguf") {
            Some((prefix, own, parts)) if parts == count => (prefix, own),
            _ => {
                let text = format!(
                    "it is one of {count} files, which are named NAME-00001-of-{count:05}.gguf and \
                     so on"
                );
                return Err(bad(&source.name, text));
            }
        };
        let shown = source.name.clone();
        let mut source = Some(source);
        for part in 1..=count {
            let this = match source.take_if(|_| part == own) {
                Some(source) => source,
                None => files.open(&split::name(prefix, part, count))?,
            };
            self.add_gguf(this)?;
            if let (Some(source), Some(gguf)) = (self.sources.last(), self.gguf.last()) {
                let says = (number(gguf, source, "split.no"), number(gguf, source, "split.count"));
                if says != (Some(part - 1), Some(count)) {
                    let (no, of) =
                        (says.0.map_or(-1, |no| no as i64), says.1.map_or(-1, |of| of as i64));
                    let text = format!(
                        "split.no {no} and split.count {of} (-1: none); {} and {count} are \
                         expected",
                        part - 1
                    );
                    return Err(bad(&source.name, text));
                }
            }
        }
        if let Some(total) = total.filter(|&total| total != self.raws.len() as u64) {
            let text = format!(
                "split.tensors.count is {total}; the {count} files hold {} tensors",
                self.raws.len()
            );
            return Err(bad(&shown, text));
        }
        self.distinct()
    }

    fn add_gguf(&mut self, source: Source) -> Result<()> {
        let mut gguf = Gguf::read(self.sources.len(), &source.name, &source.bytes)?;
        self.raws.append(&mut gguf.tensors);
        self.gguf.push(gguf);
        self.sources.push(source);
        Ok(())
    }

    /// Fails if two files hold a tensor of the same name.
    fn distinct(&self) -> Result<()> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for raw in &self.raws {
            if let Some(first) = known.insert(&raw.name, raw.file) {
                let text =
                    format!("tensor {:?} is in {} already", raw.name, self.sources[first].name);
                return Err(bad(&self.sources[raw.file].name, text));
            }
        }
        Ok(())
    }
}
