//! Tables as text.

use comfy_table::{CellAlignment, Table, presets::NOTHING};

/// A column's head, and whether the column holds numbers.
pub(crate) type Column = (&'static str, bool);

/// Text stands left in its column, numbers right.
pub(crate) const TEXT: bool = false;
pub(crate) const NUMBER: bool = true;

/// Rows under their heads, one line for each. Names from a file may hold control characters, which
/// are shown escaped.
pub(crate) fn table(columns: &[Column], mut rows: Vec<Vec<String>>) -> String {
    for cell in rows.iter_mut().flatten().filter(|cell| cell.contains(char::is_control)) {
        *cell = cell.escape_debug().to_string();
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(columns.iter().map(|(head, _)| *head)).add_rows(rows);
    for (column, (_, is_number)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 2));
        column.set_cell_alignment(if *is_number {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        });
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
