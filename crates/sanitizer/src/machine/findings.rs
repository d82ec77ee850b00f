//! Findings, kept once per place in the source, in the order in which they were met.

use crate::program::{Program, SiteId};
use crate::report::{Finding, Kind, Label, Place};
use naga::{ArraySize, Handle, Type, TypeInner};
use std::collections::HashMap;

/// Identity of a finding: kind, both places in the source, and the variable.
pub(super) type Key = (Kind, SiteId, SiteId, u32);

/// Findings by key.
#[derive(Default)]
pub(super) struct Findings {
    index: HashMap<Key, usize>,
    list: Vec<(Key, Finding)>,
    pub(super) dropped: u64,
}

impl Findings {
    /// Counts another occurrence of a finding met before.
    pub(super) fn again(&mut self, key: &Key) -> bool {
        let Some(&at) = self.index.get(key) else { return false };
        self.list[at].1.occurrences += 1;
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn insert(&mut self, key: Key, finding: Finding) {
        self.index.insert(key, self.list.len());
        self.list.push((key, finding));
    }

    /// Adds the findings of another workgroup after the known ones.
    pub(super) fn append(&mut self, others: Findings, limit: usize) {
        for (key, finding) in others.list {
            self.add(key, finding, limit);
        }
    }

    /// Adds a finding, or another occurrence of a known one.
    pub(super) fn add(&mut self, key: Key, finding: Finding, limit: usize) {
        match self.index.get(&key) {
            Some(&at) => self.list[at].1.occurrences += finding.occurrences,
            None if self.list.len() < limit => self.insert(key, finding),
            None => self.dropped += 1,
        }
    }

    /// The findings in the order of the source.
    pub(super) fn into_sorted(self) -> Vec<Finding> {
        let mut all: Vec<Finding> = self.list.into_iter().map(|(_, finding)| finding).collect();
        all.sort_by_key(|finding| {
            finding.labels.first().and_then(|label| label.span.clone()).map(|span| span.start)
        });
        all
    }
}

impl Program {
    /// The label of a place in the source, and the labels of the calls that led there.
    pub(super) fn labels(&self, site: SiteId, text: String, place: Option<Place>) -> Vec<Label> {
        let span = |site: SiteId| {
            self.sites[site as usize].span.map(|(start, end)| start as usize..end as usize)
        };
        let mut labels = vec![Label { span: span(site), text, place }];
        let mut caller = self.sites[site as usize].caller;
        while let Some(site) = caller {
            labels.push(Label { span: span(site), text: "in this call".to_owned(), place: None });
            caller = self.sites[site as usize].caller;
        }
        labels
    }

    /// Name in the source of the bytes at an offset in a variable, such as `tile[5].x`.
    pub(super) fn name_of(&self, global: u32, offset: u32) -> String {
        let global = &self.globals[global as usize];
        format!("{}{}", global.name, self.path(global.ty, offset))
    }

    /// Whether the bytes at an offset in a variable belong to no scalar: the fourth word of a
    /// `vec3`, the gaps between members.
    pub(super) fn is_padding(&self, global: u32, offset: u32) -> bool {
        self.in_padding(self.globals[global as usize].ty, offset)
    }

    fn in_padding(&self, ty: Handle<Type>, offset: u32) -> bool {
        let size = |ty: Handle<Type>| self.module.types[ty].inner.size(self.module.to_ctx());
        match &self.module.types[ty].inner {
            TypeInner::Array { base, stride, .. } => self.in_padding(*base, offset % stride),
            TypeInner::Struct { members, .. } => {
                // The last member that begins before the offset. An array without a size comes last
                // and has no end.
                let member = members.iter().rfind(|member| member.offset <= offset);
                member.is_none_or(|member| {
                    let inner = &self.module.types[member.ty].inner;
                    let ends = !matches!(inner, TypeInner::Array { size: ArraySize::Dynamic, .. });
                    let offset = offset - member.offset;
                    ends && offset >= size(member.ty) || self.in_padding(member.ty, offset)
                })
            }
            TypeInner::Matrix { rows, scalar, .. } => {
                let width = u32::from(scalar.width);
                *rows as u32 == 3 && offset % (4 * width) >= 3 * width
            }
            inner => offset >= inner.size(self.module.to_ctx()),
        }
    }

    fn path(&self, ty: Handle<Type>, offset: u32) -> String {
        let size = |ty: Handle<Type>| self.module.types[ty].inner.size(self.module.to_ctx());
        match &self.module.types[ty].inner {
            TypeInner::Array { base, stride, .. } => {
                format!("[{}]{}", offset / stride, self.path(*base, offset % stride))
            }
            TypeInner::Struct { members, .. } => {
                let inside = |member: &&naga::StructMember| {
                    let unsized_tail = matches!(
                        self.module.types[member.ty].inner,
                        TypeInner::Array { size: ArraySize::Dynamic, .. }
                    );
                    member.offset <= offset
                        && (unsized_tail || offset < member.offset + size(member.ty))
                };
                match members.iter().find(inside) {
                    Some(member) => {
                        let name = member.name.as_deref().unwrap_or("?");
                        format!(".{name}{}", self.path(member.ty, offset - member.offset))
                    }
                    None => String::new(),
                }
            }
            TypeInner::Vector { scalar, .. } => component(offset / u32::from(scalar.width)),
            TypeInner::Matrix { rows, scalar, .. } => {
                let rows = if *rows as u32 == 3 { 4 } else { *rows as u32 };
                let column = rows * u32::from(scalar.width);
                format!(
                    "[{}]{}",
                    offset / column,
                    component(offset % column / u32::from(scalar.width))
                )
            }
            _ => String::new(),
        }
    }
}

fn component(index: u32) -> String {
    match index {
        0..4 => format!(".{}", ["x", "y", "z", "w"][index as usize]),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, Kind, Launch, Shader};

    const SHADER: &str = "
        struct Row { id: u32, at: vec3<f32>, turn: mat3x3<f32> }
        @group(0) @binding(0) var<storage, read_write> rows: array<Row>;
        @compute @workgroup_size(1) fn main() {
            rows[0].id = 1u;
            rows[0].at = vec3<f32>(1.0);
            rows[0].turn = mat3x3<f32>(vec3<f32>(1.0), vec3<f32>(2.0), vec3<f32>(3.0));
        }";

    #[test]
    fn padding_need_not_be_written_and_names_are_the_sources() {
        let shader = Shader::parse("rows.wgsl", SHADER).unwrap();
        let report = Launch::new(&shader).bind(0, 0, Buffer::output(80)).run().unwrap();
        assert!(report.is_clean(), "{}", report.render(&shader, false));
        let report = Launch::new(&shader).bind(0, 0, Buffer::output(160)).run().unwrap();
        assert_eq!(report.findings[0].kind, Kind::NeverWritten);
        assert_eq!(report.findings[0].labels[0].text, "nobody writes `rows[1].id`");
        assert_eq!(
            report.findings[0].message,
            "13 of 26 locations of the output `rows` are never written"
        );
    }
}
