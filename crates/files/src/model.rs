//! A model: its files, and the tensors in them.

use crate::claims::{Claim, Expected, admit};
use crate::error::unfit;
use crate::gguf::Value;
use crate::group::{
    FACTOR, Factor, Group, LARGEST, Members, ORDER, each, group, is_coded, lacking,
};
use crate::identify::{identify, joined};
use crate::layouts::{self, Asked};
use crate::names;
use crate::opening::{self, Opened};
use crate::raw::{Element, Raw, unread};
use crate::shard::Shard;
use crate::source::{Files, Store};
use crate::tensor::{Entry, Held, TensorKind, TensorView, matrix};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tilewise_core::{DType, Error, QuantFormat, Result};

/// The metadata entry that names the format: of the matrix `PREFIX.quantization`, or of all.
pub(crate) const FORMAT: &str = "quantization";

/// The tensors of a model's files, which are held or mapped in memory.
pub struct Model {
    opened: Opened,
    groups: Vec<Group>,
    entries: Vec<Entry>,
    /// Groups, by their own names and by the names of their parts.
    by_name: HashMap<String, usize>,
}

impl Model {
    /// Opens a `.safetensors` file, the index of a sharded model, a `.gguf` file or one part of a
    /// split one, or a folder that holds one of these. `config.json` beside a
    /// `.safetensors` file is read for its entries on quantization.
    ///
    /// In a folder, `model.safetensors.index.json` stands for all `.safetensors` files; without it,
    /// `model.safetensors` does, or the only index. If several models are left, GGUF included, one
    /// of their files is to be opened by its name. Shards without an index are an error there. A
    /// shard that is opened by its own name is opened alone: [`shard`](Self::shard).
    ///
    /// The files are read as a whole. [`map`](Self::map) opens models that are large beside the
    /// machine's memory.
    ///
    /// # Errors
    /// [`File`](crate::Error) when a file cannot be opened or is malformed, and when a folder holds
    /// no model, or shards without their index; `Misuse` when it holds several models;
    /// `OutOfMemory` when memory cannot hold the files.
    pub fn open(path: impl AsRef<Path>) -> Result<Model> {
        Self::open_path(path.as_ref(), false)
    }

    /// Like [`open`](Self::open), with the files mapped into memory, not read: mapping takes no
    /// memory for them, and no time before their bytes are needed.
    ///
    /// # Safety
    /// Nobody writes to the files, or shortens them, while the model is open. Otherwise bytes
    /// change under a shared reference, which is undefined, and reading beyond the new end stops
    /// the process (memmap2, "Safety").
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Model> {
        Self::open_path(path.as_ref(), true)
    }

    fn open_path(path: &Path, mapped: bool) -> Result<Model> {
        if path.is_dir() {
            let store = Store { files: Files::Folder(path.to_owned()), mapped };
            let entry = opening::entry(&store)?;
            return Self::open_store(store, &entry);
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| unfit(path, "the name of a file in Unicode is expected"))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::open_store(Store { files: Files::Folder(folder), mapped }, name)
    }

    /// Opens the file `entry` of these files, with the other files of the same model.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open); [`File`](crate::Error) when a file in memory is missing.
    pub fn open_in(files: Files, entry: &str) -> Result<Model> {
        Self::open_store(files.into(), entry)
    }

    fn open_store(store: Store, entry: &str) -> Result<Model> {
        let opened = opening::open(store, entry)?;
        let groups = if opened.gguf.is_empty() { group(&opened) } else { each(&opened.raws) };
        let mut by_name = HashMap::new();
        for (i, group) in groups.iter().enumerate() {
            by_name.insert(group.name.clone(), i);
        }
        for (i, group) in groups.iter().enumerate() {
            for member in group.tensors() {
                by_name.entry(opened.raws[member].name.clone()).or_insert(i);
            }
        }
        let mut model = Model { opened, groups, entries: Vec::new(), by_name };
        model.entries =
            model.groups.iter().map(|group| model.entry(group, &Expected::default())).collect();
        Ok(model)
    }

    /// Opens a single file in memory.
    ///
    /// # Errors
    /// The errors of [`open_in`](Self::open_in).
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Model> {
        Self::open_in(Files::Memory(BTreeMap::from([(name.to_owned(), bytes)])), name)
    }

    /// All tensors: those of safetensors files by name, with numbers in their order; those of GGUF
    /// files in the file's order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorView<'_>> {
        (0..self.groups.len()).map(|i| self.tensor(i, Cow::Borrowed(&self.entries[i])))
    }

    /// The tensor of this name: a prefix, such as `model.layers.0.mlp.up_proj`, or the full name of
    /// one of the tensors that hold it.
    ///
    /// # Errors
    /// [`File`](crate::Error), with the nearest names, when there is none.
    pub fn get(&self, name: &str) -> Result<TensorView<'_>> {
        let i = self.find(name)?;
        Ok(self.tensor(i, Cow::Borrowed(&self.entries[i])))
    }

    /// Like [`get`](Self::get), in the format that is expected.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get); [`Misuse`](crate::Error) when nothing can be as expected,
    /// or several formats fit the tensor; `File` when none fits it, or the file or its
    /// `config.json` says otherwise.
    pub fn get_as(&self, name: &str, expected: &Expected) -> Result<TensorView<'_>> {
        if expected.is_empty() {
            return self.get(name);
        }
        expected.check()?;
        let i = self.find(name)?;
        let entry = self.entry(&self.groups[i], expected);
        match entry.kind {
            TensorKind::Unclear(error) => Err(error),
            _ => Ok(self.tensor(i, Cow::Owned(entry))),
        }
    }

    /// The names of the files, as they were opened.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &str> {
        self.opened.sources.iter().map(|source| &*source.name)
    }

    /// If this is one shard of several, opened by its own name
    /// (`model-00001-of-00002.safetensors`): its number, from 1 on, and the number of shards. The
    /// model then holds the tensors of this shard alone. A quantized matrix is
    /// [`TensorKind::Unclear`]
    ///
    /// - if its codes are here, and its scales or other planes are in another shard;
    /// - if its factor or its order of columns is in another shard, as the index beside it says;
    /// - if there is no index, and this shard has no factor for a format that may have one, or no
    ///   order for a matrix of GPTQ.
    pub fn shard(&self) -> Option<(u64, u64)> {
        self.opened.shard.as_ref().map(|shard| (shard.number, shard.count))
    }

    /// The version of GGUF, if the files are GGUF.
    pub fn gguf_version(&self) -> Option<u32> {
        self.opened.gguf.first().map(|gguf| gguf.version)
    }

    /// A value of GGUF's metadata, such as `general.architecture`, of the first file.
    pub fn gguf_value(&self, key: &str) -> Option<Value<'_>> {
        self.opened.gguf.first()?.value(key, &self.opened.sources.first()?.bytes)
    }

    /// All metadata of the first file of GGUF.
    pub fn gguf_values(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        let first = self.opened.gguf.first().zip(self.opened.sources.first());
        first.into_iter().flat_map(|(gguf, source)| gguf.values(&source.bytes))
    }

    /// The metadata of the first `.safetensors` file.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.opened.metadata.first().into_iter().flatten().map(|(key, value)| (&**key, &**value))
    }

    /// The method of quantization, if it is not read: `config.json says quant_method "exl2"`. Its
    /// tensors are listed as the files store them.
    pub fn unread_quantization(&self) -> Option<String> {
        // Tensors of some methods tell their layout themselves.
        let is_read = |group: &Group| matches!(group.members, Members::Foreign(_));
        self.opened.config.unread().filter(|_| !self.groups.iter().any(is_read))
    }

    /// Why a tensor holds codes of quantized weights that are not read, if it does.
    pub(crate) fn codes(&self, raw: usize) -> Option<String> {
        let codes = || layouts::codes(self.raw(raw), &self.opened);
        if self.is_gguf() { None } else { codes() }
    }

    fn tensor<'m>(&'m self, i: usize, entry: Cow<'m, Entry>) -> TensorView<'m> {
        TensorView { model: self, name: &self.groups[i].name, entry }
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let names = self.groups.iter().map(|group| &*group.name);
            Error::file(format!(
                "{}: {}{}{}",
                self.file(0),
                names::unknown(name, names),
                if self.is_gguf() { String::new() } else { lacking(&self.opened.raws, name) },
                self.others()
            ))
        })
    }

    /// Where else a tensor may be, for errors: the text goes at their end.
    pub(crate) fn others(&self) -> String {
        self.opened.others()
    }

    pub(crate) fn file(&self, file: usize) -> &str {
        self.opened.sources.get(file).map_or("the model", |source| &source.name)
    }

    pub(crate) fn raw(&self, raw: usize) -> &Raw {
        &self.opened.raws[raw]
    }

    pub(crate) fn bytes(&self, raw: usize) -> &[u8] {
        self.opened.part(raw).bytes
    }

    /// Gives the memory of the first bytes of a mapped tensor back.
    pub(crate) fn release(&self, raw: usize, bytes: usize) {
        let raw = self.raw(raw);
        let range = raw.bytes.start..raw.bytes.start + bytes;
        self.opened.sources[raw.file].bytes.release(&range);
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    pub(crate) fn is_gguf(&self) -> bool {
        !self.opened.gguf.is_empty()
    }

    /// Describes a group of tensors.
    fn entry(&self, group: &Group, expected: &Expected) -> Entry {
        let members = group.tensors();
        let first = members[0];
        self.known(group, expected).unwrap_or_else(|error| {
            let file = self.file(self.raw(first).file);
            let fault = match (&error, &self.opened.config.fault) {
                (Error::Misuse(_), Some(fault)) => format!("; {fault}"),
                _ => String::new(),
            };
            let shown = |why: String| format!("{file}: {:?}: {why}{fault}", group.name);
            let shape = self.raw(first).shape.clone();
            let (kind, held) = (TensorKind::Unclear(error.map_text(shown)), Held::Whole(first));
            Entry { kind, shape, held, members, order: None, factor: None }
        })
    }

    fn known(&self, group: &Group, expected: &Expected) -> Result<Entry> {
        let mut factor = None;
        let (kind, shape, held) = match &group.members {
            Members::Whole(raw) => self.whole(*raw, expected)?,
            Members::Planes(planes) => {
                let claims = self.claims(group, expected)?;
                let described = planes.iter().map(|(leaf, raw)| (*leaf, self.raw(*raw))).collect();
                let found = identify(&group.name, &claims, &described, &self.others())?;
                let raws = found
                    .format
                    .planes()
                    .iter()
                    .filter_map(|plane| planes.get(plane.name).copied());
                (TensorKind::Quantized(found.format), found.shape, Held::Planes(raws.collect()))
            }
            Members::Foreign(foreign) => {
                // The config may say what the tensors do not tell.
                let config = &self.opened.config;
                let named = expected.mode.as_deref().and_then(layouts::of_mode);
                if let (Some(fault), true, None) = (&config.fault, config.is_silent(), named) {
                    return Err(fault.clone());
                }
                let parts = foreign.parts(&self.opened);
                if let Some(strange) = foreign.strange {
                    let text = format!("{} scales it, and is not read", self.raw(strange));
                    return Err(parts.unread(text));
                }
                let said = config.said.as_ref();
                let prefix = &foreign.prefix;
                let read = (foreign.layout.read)(&Asked { prefix, parts, said, expected })?;
                factor = read.factor;
                let held = Held::Foreign(foreign.clone(), read.decoder.into());
                (TensorKind::Quantized(read.format), read.shape, held)
            }
        };
        if let TensorKind::Quantized(format) = kind {
            let (n, k) = matrix(&shape)?;
            format.sizes(n, k)?;
        }
        if let (Some(shard), TensorKind::Quantized(format)) = (&self.opened.shard, &kind) {
            self.alone(shard, group, &held, *format)?;
        }
        if let Some(raw) = group.order {
            let (raw, k) = (self.raw(raw), shape.last().copied().unwrap_or(1));
            if !matches!(raw.element, Element::Dense(DType::U32 | DType::I32)) || raw.shape != [k] {
                return Err(Error::file(format!("{raw}; U32 [{k}] is expected")));
            }
        }
        if let Some(own) = group.factor {
            factor = Some(self.factor(own, &kind)?);
        }
        Ok(Entry { kind, shape, held, members: group.tensors(), order: group.order, factor })
    }

    /// An error if tensors that change the values of the weights lie in other shards, or may lie
    /// there.
    fn alone(&self, shard: &Shard, group: &Group, held: &Held, format: QuantFormat) -> Result<()> {
        let has_factor = format.def().factor_of.is_some();
        let own = &self.raw(group.tensors()[0]).name;
        let prefix = own.rsplit_once('.').map_or("", |(prefix, _)| prefix);
        let of = |leaf: &&str| joined(prefix, leaf);
        let absent: Vec<String> = match held {
            Held::Foreign(foreign, _) => foreign.absent().collect(),
            Held::Planes(_) => {
                let order = [ORDER].iter().filter(|_| group.order.is_none());
                let is_without = has_factor && group.factor.is_none();
                let factor = [FACTOR, LARGEST].iter().filter(|_| is_without);
                order.chain(factor).map(of).collect()
            }
            _ => Vec::new(),
        };
        for name in absent {
            let why = match shard.elsewhere(&name) {
                Ok(None) => continue,
                // Only this library writes an order, and into the file of the weights.
                Err(_) if name == of(&ORDER) => continue,
                Ok(Some(file)) => format!("{name} lies in {file}"),
                Err(why) => format!("{name} may lie in another shard, and {why}"),
            };
            return Err(Error::file(format!("{why}{}", self.others())));
        }
        Ok(())
    }

    fn whole(&self, index: usize, expected: &Expected) -> Result<(TensorKind, Vec<usize>, Held)> {
        let raw = self.raw(index);
        if self.shard().is_some() && is_coded(raw) {
            let text = format!("{raw}: scales or other planes of the quantized matrix are missing");
            return Err(Error::file(format!("{text}{}", self.others())));
        }
        let (kind, held) = match &raw.element {
            Element::Blocks(format) => {
                admit(expected, *format)?;
                (TensorKind::Quantized(*format), Held::Blocks(index, *format))
            }
            _ if !expected.is_empty() && self.codes(index).is_some() => {
                return Err(Error::Unsupported(self.codes(index).unwrap_or_default()));
            }
            Element::Other(_) if !expected.is_empty() => {
                return Err(Error::Unsupported(unread(raw, self.is_gguf())));
            }
            _ if !expected.is_empty() => {
                return Err(Error::file(format!("{raw} is not {expected}")));
            }
            Element::Dense(dtype) => (TensorKind::Dense(*dtype), Held::Whole(index)),
            other => (TensorKind::Other(other.name().to_owned()), Held::Whole(index)),
        };
        Ok((kind, raw.shape.clone(), held))
    }

    fn factor(&self, factor: Factor, kind: &TensorKind) -> Result<f32> {
        let (Factor::Plain(raw) | Factor::Largest(raw)) = factor;
        let largest = match kind {
            TensorKind::Quantized(format) => format.def().factor_of,
            _ => None,
        };
        let part = self.opened.part(raw);
        let Some(largest) = largest else {
            let text = format!("{}: {kind} has no factor for a whole matrix", part.raw);
            return Err(Error::file(text));
        };
        let value = part.factor()?;
        Ok(if matches!(factor, Factor::Largest(_)) { value / largest } else { value })
    }

    /// The claims about a matrix, the one with precedence first.
    fn claims(&self, group: &Group, expected: &Expected) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        if !expected.is_empty() {
            claims.push(Claim { by: "the arguments".to_owned(), says: expected.clone() });
        }
        let config = self.opened.config.claim(&group.name)?;
        let file = self.raw(group.tensors()[0]).file;
        if let Some(metadata) = self.opened.metadata.get(file) {
            let own = joined(&group.name, FORMAT);
            let named = metadata.get(&own).or_else(|| metadata.get(FORMAT));
            match named.map(|name| name.parse::<QuantFormat>()) {
                Some(Ok(format)) => {
                    let by = format!("the metadata of {}", self.file(file));
                    claims.push(Claim { by, says: format.into() });
                }
                // The entry is another program's, under the same key.
                Some(Err(_)) if !claims.is_empty() || config.is_some() => {}
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        claims.extend(config);
        Ok(claims)
    }
}
