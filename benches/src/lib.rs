//! Measuring products on a device: named shapes, a device's ceilings, and reports.

pub mod ceiling;
pub mod chips;
pub mod compare;
pub mod first_hour;
pub mod html;
pub mod inputs;
pub mod measure;
pub mod plot;
pub mod random;
pub mod report;
pub mod shapes;
pub mod table;
