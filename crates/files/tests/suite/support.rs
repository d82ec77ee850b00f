//! Files made by hand, through the crate `safetensors`.

use safetensors::tensor::{Dtype, TensorView};
use std::collections::{BTreeMap, HashMap};
use tilewise_files::{Files, Model, Result};

/// A tensor: name, type, shape, bytes.
pub(crate) type Tensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// A tensor with bytes of a pattern.
pub(crate) fn tensor(name: &str, dtype: Dtype, shape: &[usize]) -> Tensor {
    let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
    let seed = name.len();
    (
        name.to_owned(),
        dtype,
        shape.to_vec(),
        (0..bytes).map(|i| (i * 31 + seed * 7) as u8 & 0x3f).collect(),
    )
}

/// The bytes of a file, with metadata.
pub(crate) fn file(tensors: &[Tensor], metadata: &[(&str, &str)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    let metadata: HashMap<_, _> =
        metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    safetensors::serialize(views, (!metadata.is_empty()).then_some(metadata)).unwrap()
}

/// A model of files in memory, from the first of them.
pub(crate) fn open(files: &[(&str, Vec<u8>)]) -> Result<Model> {
    let map: BTreeMap<_, _> =
        files.iter().map(|(name, bytes)| (name.to_string(), bytes.clone())).collect();
    Model::open_in(Files::Memory(map), files[0].0)
}

/// A model of one file and a `config.json`.
pub(crate) fn with_config(tensors: &[Tensor], config: &str) -> Model {
    open(&[("m.safetensors", file(tensors, &[])), ("config.json", config.into())]).unwrap()
}

/// The error of a tensor.
pub(crate) fn refusal(model: &Model, name: &str) -> String {
    model.get(name).and_then(|tensor| tensor.sizes()).unwrap_err().to_string()
}
