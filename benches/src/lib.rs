//! Measuring products on a device: named shapes, a device's ceilings, and reports.

pub mod ceiling;
pub mod measure;
pub mod report;
pub mod shapes;
