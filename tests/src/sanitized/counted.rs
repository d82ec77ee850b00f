//! The number of workgroups of a pass.

use super::written::Written;
use super::{Failure, Job};
use crate::cases::WGSL;
use tilewise_core::Params;
use tilewise_core::kernel::Role;
use tilewise_core::plan::Pass;
use tilewise_shaders::KIT;

impl Job {
    /// The workgroups of a pass. If an earlier pass has counted them, it is that count.
    pub(super) fn grid(&self, pass: &Pass, written: &Written) -> Result<[u32; 3], Failure> {
        let Some(start) = pass.indirect else { return Ok([pass.grid[0], pass.grid[1], 1]) };
        let wanted = self.tiles(pass);
        let wanted = [wanted.min(pass.grid[0]), wanted.div_ceil(pass.grid[0]), 1];
        let bytes = &written.packed[&Role::Packed][start as usize..][..size_of_val(&wanted)];
        let counted: [u32; 3] = bytemuck::pod_read_unaligned(bytes);
        match counted == wanted {
            true => Ok(counted),
            false => Err(Failure::Wrong(format!("{counted:?} workgroups, {wanted:?} have tiles"))),
        }
    }

    /// The tiles of a pass whose workgroups are counted: tiles of masked entries, or of a list.
    fn tiles(&self, pass: &Pass) -> u32 {
        let mut kernels = WGSL.kernels().into_iter();
        let own = kernels.find(|kernel| kernel.name == pass.label);
        let [bm, bn] = own.map_or(KIT.finish_tile, |own| [own.variant.bm, own.variant.bn]);
        let Params { m, n, first_row, first_group, entries, splits, .. } = pass.params;
        let Some(groups) = &self.filled.case.groups else { return 0 };
        if self.plan.problem.grouping.traits().listed {
            let tiles = |size: &[u32]| size[0].min(m).div_ceil(bm) * size[1].min(n).div_ceil(bn);
            return groups.products().map(tiles).sum();
        }
        let own = groups.ends.iter().skip(first_group as usize).take(entries as usize);
        let rows = own.map(|count| count.saturating_sub(first_row).min(m));
        rows.map(|rows| rows.div_ceil(bm) * n.div_ceil(bn) * splits).sum()
    }
}
