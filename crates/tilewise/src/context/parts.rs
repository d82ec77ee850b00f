//! The parts of a product as the planner sees them: for its plans, and to explain it.

use crate::context::Context;
use std::ops::Range;
use std::sync::Arc;
#[cfg(feature = "planner")]
use tilewise_core::plan::Choice;
use tilewise_core::plan::Plan;
use tilewise_core::{Problem, Result};

/// The parts of a product. Most have one.
pub(crate) struct Parts {
    pub(crate) context: Context,
    /// The kernel that is asked for.
    pub(crate) kernel: Option<Arc<str>>,
    pub(crate) all: Vec<(Problem, Title)>,
}

/// Which part of a product it is.
#[derive(Clone, Debug)]
pub(crate) enum Title {
    Whole,
    /// The product of a shard, which has these groups.
    Shard(Range<usize>),
    /// The dense product of a large group, which has these rows.
    Group(usize, Range<usize>),
}

impl Parts {
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.all.iter().map(|(problem, _)| *problem).collect()
    }

    /// Plans all parts and compiles their pipelines.
    pub(crate) fn warm_up(&self) -> Result<()> {
        self.context.prepare(&self.problems(), self.kernel.as_ref())
    }

    pub(crate) fn plans(&self) -> Result<Vec<Plan>> {
        self.all.iter().map(|(problem, _)| self.plan(problem)).collect()
    }

    fn plan(&self, problem: &Problem) -> Result<Plan> {
        self.context.plan(problem, self.kernel.as_deref())
    }

    /// The kernels that take all parts, in the order for the first.
    #[cfg(feature = "planner")]
    pub(crate) fn choices(&self) -> Result<Vec<Choice>> {
        let Some(((first, _), rest)) = self.all.split_first() else { return Ok(Vec::new()) };
        let mut choices = self.context.choices(first)?;
        for (problem, _) in rest {
            choices.retain(|choice| self.context.plan(problem, Some(&choice.to_string())).is_ok());
        }
        Ok(choices)
    }

    /// A text for each part. Neighbouring shards with equal numbers of groups and equal kernels
    /// share one.
    pub(crate) fn explain(&self) -> Result<String> {
        let (mut texts, mut last) = (Vec::<(Title, String)>::new(), None);
        for (problem, title) in &self.all {
            let own = match title {
                Title::Shard(groups) => {
                    let labels = self.plan(problem)?.passes.into_iter().map(|pass| pass.label);
                    Some((groups.len(), labels.collect::<Vec<_>>()))
                }
                _ => None,
            };
            match (texts.last_mut(), title) {
                (Some((Title::Shard(all), _)), Title::Shard(own_groups)) if last == own => {
                    all.end = own_groups.end;
                }
                _ => {
                    let text = self.context.explained(problem, self.kernel.as_deref())?;
                    texts.push((title.clone(), text));
                }
            }
            last = own;
        }
        let titled = |(title, text): &(Title, String)| match title {
            Title::Whole => text.clone(),
            Title::Shard(Range { start, end }) => {
                format!("groups {start} to {end}, of {} shards in all\n{text}", self.all.len())
            }
            Title::Group(group, Range { start, end }) => format!(
                "group {group}, rows {start} to {end}: few large groups are dense products, one \
                 after the other\n{text}"
            ),
        };
        Ok(texts.iter().map(titled).collect())
    }
}
