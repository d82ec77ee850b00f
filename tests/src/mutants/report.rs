//! Reports the fates of the mutants: a table by file, and the survivors.

use super::explained::Change;
use super::{FINDINGS, Fate, Mutant};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// The fates, counted by file, and the survivors that need work.
pub struct Summary<'a> {
    fates: Vec<(&'a Mutant, Fate)>,
    explained: &'a HashSet<Change>,
}

impl<'a> Summary<'a> {
    /// Takes mutants, and their fates in the order of the mutants.
    pub fn new(mutants: &'a [Mutant], fates: &[Fate], explained: &'a HashSet<Change>) -> Self {
        Summary { fates: mutants.iter().zip(fates.iter().copied()).collect(), explained }
    }

    fn survivors(&self) -> impl Iterator<Item = (&'a Mutant, bool, bool)> + '_ {
        self.fates.iter().filter_map(|(mutant, fate)| match fate {
            Fate::Survived { same_bits } => {
                Some((*mutant, *same_bits, self.explained.contains(&Change::of(mutant))))
            }
            _ => None,
        })
    }

    /// Survivors that nobody has explained, in the form of blocks of the file of explanations.
    pub fn unexplained(&self) -> Vec<String> {
        let open = self.survivors().filter(|(_, _, explained)| !explained);
        open.map(|(mutant, same_bits, _)| {
            let bits = if same_bits { "same bits" } else { "other bits, within the bound" };
            format!(
                "{}\n- {}\n+ {}\n({}: {bits})\n",
                mutant.file,
                mutant.before,
                mutant.after,
                mutant.id()
            )
        })
        .collect()
    }

    /// Explanations whose mutant does not survive, or does not exist. Only of use if all mutants
    /// were run.
    pub fn stale(&self) -> Vec<&'a Change> {
        let alive: HashSet<Change> =
            self.survivors().map(|(mutant, _, _)| Change::of(mutant)).collect();
        let mut stale: Vec<_> =
            self.explained.iter().filter(|change| !alive.contains(*change)).collect();
        stale.sort_by(|a, b| (&a.file, &a.before, &a.after).cmp(&(&b.file, &b.before, &b.after)));
        stale
    }

    /// A Markdown table with a row for each file and a column for each fate.
    pub fn table(&self) -> String {
        let killed = FINDINGS.into_iter().map(Fate::Found).chain([Fate::Wrong, Fate::Refused]);
        let columns: Vec<Fate> =
            killed.filter(|fate| self.fates.iter().any(|(_, other)| other == fate)).collect();
        let mut rows: BTreeMap<&str, Vec<Fate>> = BTreeMap::new();
        for (mutant, fate) in &self.fates {
            rows.entry(mutant.file).or_default().push(*fate);
        }
        let all = self.fates.iter().map(|(_, fate)| *fate).collect();
        let mut text = String::from("| file | mutants | invalid |");
        for column in &columns {
            let _ = write!(text, " {} |", heading(*column));
        }
        text += " survived |\n|---|--:|--:|";
        text += &"--:|".repeat(columns.len() + 1);
        text.push('\n');
        for (file, fates) in rows.into_iter().chain([("all", all)]) {
            let count =
                |wanted: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count();
            let _ = write!(
                text,
                "| {file} | {} | {} |",
                fates.len(),
                count(&|fate| *fate == Fate::Invalid)
            );
            for column in &columns {
                let _ = write!(text, " {} |", count(&|fate| fate == column));
            }
            let _ = writeln!(text, " {} |", count(&|fate| matches!(fate, Fate::Survived { .. })));
        }
        text
    }

    /// The total numbers, in one line.
    pub fn line(&self) -> String {
        let count =
            |wanted: fn(&Fate) -> bool| self.fates.iter().filter(|(_, fate)| wanted(fate)).count();
        let (all, invalid) = (self.fates.len(), count(|fate| *fate == Fate::Invalid));
        let survived = count(|fate| matches!(fate, Fate::Survived { .. }));
        let found = count(|fate| matches!(fate, Fate::Found(_)));
        let explained = self.survivors().filter(|(_, _, explained)| *explained).count();
        format!(
            "{all} mutants, {invalid} invalid, {} killed ({found} by findings), {survived} \
             survived, {explained} of them explained",
            all - invalid - survived
        )
    }
}

fn heading(fate: Fate) -> &'static str {
    match fate {
        Fate::Found(kind) => kind,
        Fate::Wrong => "wrong results",
        Fate::Refused => "not as planned",
        Fate::Invalid => "invalid",
        Fate::Survived { .. } => "survived",
    }
}
