//! Which tensors of a file belong to one matrix, by their names and types.

use crate::identify::{element_of, joined, leaves};
use crate::layouts::{self, Foreign};
use crate::opening::Opened;
use crate::raw::{Element, Raw};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use tilewise_core::QuantFormat;
use tilewise_core::quant::{Plane, Stored};

/// A tensor as a model lists it: one of a file, or several that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The prefix of a quantized matrix; the name of any other tensor.
    pub(crate) name: String,
    pub(crate) members: Members,
    /// The tensor with the order of the columns.
    pub(crate) order: Option<usize>,
    /// The tensor with the factor of all weights.
    pub(crate) factor: Option<Factor>,
}

/// The tensors of a file, by their numbers.
#[derive(Clone, Debug)]
pub(crate) enum Members {
    Whole(usize),
    /// Planes by their names.
    Planes(BTreeMap<&'static str, usize>),
    /// The tensors of a foreign layout.
    Foreign(Foreign),
}

/// A factor of all weights of a matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Factor {
    /// The tensor holds the factor.
    Plain(usize),
    /// MLX's `global_scale`: the largest weight. Divided by the format's largest number, it gives
    /// the factor.
    Largest(usize),
}

/// Where the order of columns is kept.
pub(crate) const ORDER: &str = "order";
/// Our name of the factor, which is ModelOpt's.
pub(crate) const FACTOR: &str = "weight_scale_2";
/// MLX's name of the largest weight.
pub(crate) const LARGEST: &str = "global_scale";

impl Group {
    /// The numbers of all its tensors.
    pub(crate) fn tensors(&self) -> Vec<usize> {
        let mut members: Vec<usize> = match &self.members {
            Members::Whole(only) => vec![*only],
            Members::Planes(planes) => planes.values().copied().collect(),
            Members::Foreign(foreign) => foreign.tensors.iter().map(|(_, raw)| *raw).collect(),
        };
        members.extend(self.order);
        members.extend(self.factor.map(|(Factor::Plain(at) | Factor::Largest(at))| at));
        members
    }
}

/// The tensors of one prefix, by what follows it.
type Leaves<'a> = HashMap<&'a str, usize>;

/// Groups the tensors of safetensors files.
pub(crate) fn group(opened: &Opened) -> Vec<Group> {
    let raws = &opened.raws[..];
    let mut groups: Vec<Group> = Vec::new();
    let mut is_taken = vec![false; raws.len()];
    let numbered = || raws.iter().enumerate();
    let by_name: HashMap<&str, usize> = numbered().map(|(i, raw)| (&*raw.name, i)).collect();
    for layout in layouts::ALL {
        let find = |name: &str| by_name.get(name).copied().filter(|&i| !is_taken[i]);
        let free = numbered().filter(|(i, _)| !is_taken[*i]);
        let found: Vec<Foreign> =
            free.filter_map(|(_, raw)| Foreign::find(layout, raw, find, opened)).collect();
        for foreign in found {
            let name = foreign.prefix.clone();
            let group =
                Group { name, members: Members::Foreign(foreign), order: None, factor: None };
            group.tensors().into_iter().for_each(|i| is_taken[i] = true);
            groups.push(group);
        }
    }
    let free = numbered().filter(|(i, _)| !is_taken[*i]);
    let free: BTreeMap<&str, usize> = free.map(|(i, raw)| (&*raw.name, i)).collect();
    for group in &mut groups {
        let Members::Foreign(foreign) = &mut group.members else { continue };
        let base = foreign.base();
        let near = free.range(base..).take_while(|(name, _)| name.starts_with(base));
        let strange = near.map(|(_, i)| *i).find(|i| foreign.is_scaled_by(&raws[*i].name));
        foreign.strange = strange;
    }
    let mut prefixes: BTreeMap<&str, Leaves<'_>> = BTreeMap::new();
    for (i, raw) in numbered().filter(|(i, _)| !is_taken[*i]) {
        let (prefix, leaf) = raw.name.rsplit_once('.').unwrap_or(("", &raw.name));
        prefixes.entry(prefix).or_default().insert(leaf, i);
    }
    for (prefix, leaves) in prefixes {
        let own = |leaf: &str| leaves.get(leaf).copied();
        if let Some(members) = planes(raws, &own) {
            let factor = own(FACTOR).map(Factor::Plain).or(own(LARGEST).map(Factor::Largest));
            let group = Group { name: prefix.to_owned(), members, order: own(ORDER), factor };
            group.tensors().into_iter().for_each(|i| is_taken[i] = true);
            groups.push(group);
        }
    }
    let prefixes: HashSet<String> = groups.iter().map(|group| group.name.clone()).collect();
    let names: HashSet<&str> = raws.iter().map(|raw| &*raw.name).collect();
    let whole = |i: usize| Group {
        name: raws[i].name.clone(),
        members: Members::Whole(i),
        order: None,
        factor: None,
    };
    groups.extend((0..raws.len()).filter(|i| !is_taken[*i]).map(whole));
    // If a dense tensor is named `a`, the quantized `a.weight` keeps its full name.
    for group in &mut groups {
        let is_own = |i: &usize| raws[*i].name == group.name;
        if names.contains(&*group.name) && !group.tensors().iter().any(is_own) {
            group.name = longer(&group.name, &prefixes);
        }
    }
    groups.sort_by(|a, b| crate::names::natural(&a.name, &b.name));
    groups
}

fn longer(name: &str, taken: &HashSet<String>) -> String {
    let mut name = joined(name, "weight");
    while taken.contains(&name) {
        name.push_str(".weight");
    }
    name
}

/// The planes under this prefix, if a format has them all. Surplus planes stay, and `identify`
/// refuses them.
fn planes(raws: &[Raw], own: &impl Fn(&str) -> Option<usize>) -> Option<Members> {
    let there: BTreeMap<&'static str, usize> =
        leaves().iter().filter_map(|leaf| Some((*leaf, own(leaf)?))).collect();
    // Other programs put scales beside dense weights, so the type of the codes decides. If scales
    // have a wrong type, an error says so later.
    let fits = |format: QuantFormat| {
        let words = |plane: &&Plane| plane.of == Stored::Words;
        let codes = if format.planes().iter().any(|plane| words(&plane)) {
            words
        } else {
            |_: &&Plane| true
        };
        let is = |plane: &Plane| {
            there.get(plane.name).is_some_and(|&raw| raws[raw].element.name() == element_of(plane))
        };
        format.planes().iter().all(|plane| there.contains_key(plane.name))
            && format.planes().iter().filter(codes).all(is)
    };
    QuantFormat::all().any(fits).then_some(Members::Planes(there))
}

/// Text for errors: which tensors there are under a prefix, and which ones a matrix needs. Empty if
/// there are none.
pub(crate) fn lacking(raws: &[Raw], prefix: &str) -> String {
    if let Some((name, method)) = layouts::unread(raws, prefix) {
        return format!("; {name} belongs to {method}, whose layout is not read");
    }
    let of = |leaf: &str| {
        let name = layouts::name(prefix, leaf);
        raws.iter().find(|raw| raw.name == name).map(|raw| &raw.element)
    };
    let all = leaves().iter().copied().chain(layouts::leaves());
    let there = all.filter_map(|leaf| Some((leaf, of(leaf)?)));
    let there: BTreeMap<&str, &Element> = there.collect();
    // If all are numbers, this is a dense tensor that has another name.
    let is_number =
        |element: &&&Element| matches!(element, Element::Dense(kind) if kind.is_float());
    if there.values().all(|element| is_number(&element)) {
        return String::new();
    }
    let there: BTreeMap<&str, &str> =
        there.into_iter().map(|(leaf, element)| (leaf, element.name())).collect();
    let formats = QuantFormat::all().map(|format| {
        let planes = format.planes().iter().map(|plane| (plane.name, element_of(plane)));
        (format.to_string(), planes.collect::<Vec<_>>())
    });
    let several = layouts::ALL.iter().filter(|layout| layout.needs.len() > 1);
    let several = several.copied().collect::<Vec<_>>();
    let foreign = several.chunk_by(|a, b| a.needs == b.needs).map(|alike| {
        let names: Vec<_> = alike.iter().map(|layout| layout.name).collect();
        let any = |leaf: &&'static str| (*leaf, there.get(leaf).copied().unwrap_or("any type"));
        (names.join(" or "), alike[0].needs.iter().map(any).collect())
    });
    let formats = formats.chain(foreign);
    // The format of which most tensors are there; of several, the first.
    let near = formats.min_by_key(|(_, planes)| {
        let held = planes.iter().filter(|(leaf, _)| there.contains_key(leaf)).count();
        let right = planes.iter().filter(|(leaf, kind)| there.get(leaf) == Some(kind)).count();
        Reverse((held, right))
    });
    let list = |tensors: &mut dyn Iterator<Item = (&str, &str)>| {
        let shown = tensors.map(|(leaf, kind)| format!("{} ({kind})", layouts::name(prefix, leaf)));
        shown.collect::<Vec<_>>().join(", ")
    };
    let held = list(&mut there.iter().map(|(leaf, kind)| (*leaf, *kind)));
    near.map_or_else(String::new, |(format, planes)| {
        let mut lacks = planes.into_iter().filter(|(leaf, kind)| there.get(leaf) != Some(kind));
        format!("; there is {held}, and {format} needs {}", list(&mut lacks))
    })
}

/// Whether this holds codes of quantized weights, or another part that is no matrix of numbers, by
/// its name and type.
pub(crate) fn is_coded(raw: &Raw) -> bool {
    let leaf = raw.name.rsplit('.').next().unwrap_or_default();
    let holds = |plane: &Plane| {
        let is_number = matches!(plane.of, Stored::Numbers(_));
        !is_number && plane.name == leaf && raw.element.name() == element_of(plane)
    };
    layouts::is_coded(raw) || QuantFormat::all().flat_map(|format| format.planes()).any(holds)
}

/// The tensors of GGUF files, in their order: each is one matrix, unless it is a scale of another.
pub(crate) fn each(raws: &[Raw]) -> Vec<Group> {
    let numbers: HashMap<&str, usize> =
        raws.iter().enumerate().map(|(i, raw)| (&*raw.name, i)).collect();
    let find = |name: &str| numbers.get(name).copied();
    let name = |raw: &Raw| match (&raw.element, raw.name.strip_suffix(".weight")) {
        (Element::Blocks(_) | Element::Recoded(_), Some(prefix)) if find(prefix).is_none() => {
            prefix.to_owned()
        }
        _ => raw.name.clone(),
    };
    let group = |(i, raw)| {
        let foreign = layouts::gguf::find(raw, i, find).map(Members::Foreign);
        let members = foreign.unwrap_or(Members::Whole(i));
        Group { name: name(raw), members, order: None, factor: None }
    };
    let mut groups: Vec<Group> = raws.iter().enumerate().map(group).collect();
    let scales: HashSet<usize> =
        groups.iter().flat_map(|group| group.tensors().into_iter().skip(1)).collect();
    groups.retain(|group| !scales.contains(&group.tensors()[0]));
    groups
}
