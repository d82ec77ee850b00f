//! Runs the bench program on the CPU executor, on software adapters, and on the records.

mod compared;
mod measured;
mod shown;
mod workbench;
