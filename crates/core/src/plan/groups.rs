//! The pass that makes a table of groups, for a mainloop that has many.

use super::Pass;
use super::builder::Builder;
use super::group_table::GroupTable;
use super::params::params;
use super::piece::Piece;
use super::setup::Setup;
use crate::caps::Caps;
use crate::params::Params;
use crate::problem::Grouping;

/// Invocations of the pass, at most.
const THREADS: u32 = 256;

impl GroupTable {
    /// The pass that makes the table, for a `reader` with tiles of this shape.
    pub(super) fn pass(
        self,
        piece: &Piece,
        whole: Grouping,
        caps: &Caps,
        setup: &Setup,
        [bm, bn]: [u32; 2],
        reader: &Params,
    ) -> Pass {
        let threads = THREADS.min(caps.max_threads());
        let own = params(piece, setup);
        let Params { tiles_n, splits, grid_x, .. } = *reader;
        let (params, bm) = match piece.problem.grouping.traits().whole_k {
            true if self.counts => (Params { tiles_n, splits, ..own }, bm),
            // The table counts the columns of each product of a list.
            false if self.counts => (Params { tiles_n: 1, splits: 1, ..own }, bm),
            true => (own, bm),
            // Ranges of K end as rows do, and no piece cuts them. The tile counts of this table are
            // not read.
            false => (Params { m: own.k, first_row: 0, ..own }, 1),
        };
        let mut builder =
            Builder::new("groups".into(), params, threads, 4 * threads, (setup.kit, setup.windows));
        builder.table(whole, self);
        let [pass, groups] = self.files;
        builder.part(groups, None, Vec::new());
        if whole.traits().listed {
            builder.constant(("BN", bn));
        }
        let follow = u32::from(!self.counts);
        builder.part(pass, None, vec![("BM", bm), ("FOLLOW", follow), ("THREADS", threads)]);
        let mut pass = builder.finish(None, 1, caps);
        // This pass is one workgroup and does not read the width of its grid.
        pass.params.grid_x = if self.counts { grid_x } else { 1 };
        pass
    }
}
