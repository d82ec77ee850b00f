//! Runs the programs on the CPU executor, on software adapters, and on the records.

mod compared;
mod first_hour;
mod languages;
mod measured;
mod peers;
mod shown;
mod tuned;
mod workbench;
