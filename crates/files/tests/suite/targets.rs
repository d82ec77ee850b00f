//! The targets of fuzzing. The suite runs them on the inputs that fuzzing has found.

use std::collections::{BTreeMap, BTreeSet};
use tilewise_files::{Chunk, Expected, Files, Model, Output, Result, TensorKind, write_to};

/// How the quantized tensors that could be read are stored.
type Read = BTreeSet<&'static str>;

/// A `.safetensors` file.
pub(crate) fn safetensors(bytes: &[u8]) -> Read {
    examine(&Model::from_bytes("f.safetensors", bytes.to_vec()))
}

/// A `.gguf` file.
pub(crate) fn gguf(bytes: &[u8]) -> Read {
    examine(&Model::from_bytes("f.gguf", bytes.to_vec()))
}

/// `config.json`, an index, and two shards with tensors of any shapes, whose headers are true. This
/// tests what is said of formats, and the imports. If there is an index, the first shard is opened
/// alone too.
pub(crate) fn config(bytes: &[u8]) -> Read {
    let mut rest = bytes;
    let (config, index) = (text(&mut rest), text(&mut rest));
    let shards = shards(&mut rest);
    let mut files = BTreeMap::from([("config.json".to_owned(), config.to_vec())]);
    for (name, shard) in ["a", "b"].into_iter().zip(shards) {
        files.insert(name.to_owned(), shard);
    }
    if index.is_empty() {
        return examine(&Model::open_in(Files::Memory(files), "a"));
    }
    let mut alone = files.clone();
    let shard = "i-00001-of-00002.safetensors";
    let first = alone.remove("a").unwrap_or_default();
    alone.insert(shard.to_owned(), first);
    for files in [&mut files, &mut alone] {
        files.insert("i.safetensors.index.json".to_owned(), index.to_vec());
    }
    let mut read = examine(&Model::open_in(Files::Memory(files), "i.safetensors.index.json"));
    read.extend(examine(&Model::open_in(Files::Memory(alone), shard)));
    read
}

/// A matrix of a foreign layout, in tensors as they should be but for some that the bytes change,
/// and a `config.json`: one of a list, or text.
pub(crate) fn layouts(bytes: &[u8]) -> Read {
    const CONFIGS: [&str; 11] = [
        "",
        r#"{"quant_method":"gptq","bits":4,"sym":true,"checkpoint_format":"gptq_v2"}"#,
        r#"{"quant_method":"awq","group_size":32}"#,
        r#"{"quant_method":"auto-round","packing_format":"auto_round:auto_gptq"}"#,
        r#"{"quant_method":"fp8","weight_block_size":[16,32]}"#,
        r#"{"quant_method":"compressed-tensors","config_groups":{"a":{"targets":["Linear"],
        "weights":{"num_bits":4,"group_size":32,"symmetric":false}}}}"#,
        r#"{"quant_method":"compressed-tensors","config_groups":{"a":{"targets":["w"],
        "weights":{"num_bits":8,"strategy":"block","block_structure":[16,32]}},
        "b":{"targets":["re:.*"],"weights":{"num_bits":3,"strategy":"channel"}}}}"#,
        r#"{"quant_method":"other"}"#,
        r#"{"quant_method":"awq","group_size":64,"version":"gemv"}"#,
        r#"{"quant_method":"awq","group_size":32,"version":"gemv_fast"}"#,
        r#"{"quant_method":"bitsandbytes"}"#,
    ];
    let mut rest = bytes;
    let own = text(&mut rest);
    let config = match std::str::from_utf8(own) {
        Ok(own) if !own.is_empty() => own.to_owned(),
        _ => {
            let said = CONFIGS[usize::from(byte(&mut rest)) % CONFIGS.len()];
            format!(r#"{{"quantization_config":{said}}}"#).replace(":}", ":null}")
        }
    };
    let mut tensors = foreign(&mut rest);
    for (leaf, element, shape, own) in &mut tensors {
        match byte(&mut rest) {
            0x80..=0x8f => *element = TYPES[usize::from(byte(&mut rest)) % TYPES.len()],
            0x90..=0x9f => {
                *shape = (0..byte(&mut rest) % 4).map(|_| usize::from(byte(&mut rest))).collect();
                own.clear();
            }
            0xa0..=0xa7 => leaf.push('x'),
            _ => {}
        }
    }
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (leaf, (element, size), shape, own) in tensors {
        let (from, length) = (data.len(), shape.iter().product::<usize>() * size);
        if from + length > 1 << 16 {
            continue;
        }
        let to = from + length;
        entries.push(format!(
            r#""w{leaf}":{{"dtype":"{element}","shape":{shape:?},"data_offsets":[{from},{to}]}}"#
        ));
        // The bytes that are left are repeated, from another place for each tensor.
        let seed = if rest.is_empty() { &[0x77][..] } else { rest };
        let repeated = seed.iter().copied().cycle().skip(entries.len());
        data.extend(own.into_iter().chain(repeated).take(length));
    }
    let header = format!("{{{}}}", entries.join(","));
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
    let files =
        BTreeMap::from([("config.json".to_owned(), config.into_bytes()), ("a".to_owned(), file)]);
    examine(&Model::open_in(Files::Memory(files), "a"))
}

/// The end of a name, a type and its bytes, a shape, and the tensor's bytes, if they matter.
type Part = (String, (&'static str, usize), Vec<usize>, Vec<u8>);

/// The tensors of a matrix, in a layout and with extents that the bytes choose.
fn foreign(rest: &mut &[u8]) -> Vec<Part> {
    let [which, n, k, group, more] = [(); 5].map(|()| usize::from(byte(rest)));
    let (n, k) = (8 * (1 + n % 6), 16 * (1 + k % 12));
    let bits = [4, 8, 2, 3, 5, 6][more % 6];
    let groups = [k / 16, k.div_ceil(32), 1][group % 3];
    let words = |count: usize| (count * bits).div_ceil(32);
    let float = [("F16", 2), ("BF16", 2), ("F32", 4)][more / 8 % 3];
    let (i32, u8) = (("I32", 4), ("U8", 1));
    let (e4m3, e8m0) = (("F8_E4M3", 1), ("F8_E8M0", 1));
    let eight = [e4m3, ("F8_E5M2", 1)][more / 32 % 2];
    let optional = |number: usize| more >> number & 1 == 1;
    let extents = |all: &[usize]| all.iter().flat_map(|&all| (all as u64).to_le_bytes()).collect();
    let index = (0..k).flat_map(|i| ((i * 7 % k * groups / k) as u32).to_le_bytes()).collect();
    let blocks = vec![n.div_ceil(16), k.div_ceil(32)];
    let numbers = |all: &[i32]| Some(all.iter().flat_map(|one| one.to_le_bytes()).collect());
    let (f16, f32, wide) = (("F16", 2), ("F32", 4), 64 * k.div_ceil(64));
    let block = 64 << (group / 3 % 3);
    let scales = (n * wide).div_ceil(block);
    let state = |number: &str| {
        let nested = r#","nested_blocksize":4,"nested_offset":0.5"#;
        let nested = if optional(6) { "" } else { nested };
        let all = format!(r#""quant_type":"{number}","blocksize":{block},"shape":[{n},{wide}]"#);
        format!("{{{all}{nested}}}").into_bytes()
    };
    let (packing, elements, codes) =
        [("4bit_u8", u8, 2), ("8bit_u8", u8, 1), ("2bit_u8", u8, 4), ("3bit_32", i32, 10)]
            [more % 4];
    let own = n * k / 32;
    let all: Vec<(&str, _, _, Option<Vec<u8>>)> = match which % 15 {
        0 => vec![
            (".qweight", i32, vec![words(k), n], None),
            (".qzeros", i32, vec![groups, words(n)], None),
            (".scales", float, vec![groups, n], None),
            (".g_idx", i32, vec![k], Some(index)),
        ],
        1 => vec![
            (".qweight", i32, vec![k, n / 8], None),
            (".qzeros", i32, vec![groups, n / 8], None),
            (".scales", float, vec![groups, n], None),
        ],
        2 => vec![
            (".weight_packed", i32, vec![n, words(k)], None),
            (".weight_scale", float, vec![n, groups], None),
            (".weight_shape", ("I64", 8), vec![2], Some(extents(&[n, k]))),
            (".weight_zero_point", i32, vec![words(n), groups], None),
            (".weight_g_idx", i32, vec![k], Some(index)),
        ],
        3 => vec![
            (".weight_packed", u8, vec![n, k / 2], None),
            (".weight_scale", e4m3, vec![n, k / 16], None),
            (".weight_global_scale", ("F32", 4), vec![1], None),
        ],
        4 => vec![
            (".weight_packed", u8, vec![n, k / 2], None),
            (".weight_scale", u8, vec![n, k / 32], None),
        ],
        5 => vec![
            (".weight", ("I8", 1), vec![n, k], None),
            (".weight_scale", float, vec![n, groups], None),
            (".weight_zero_point", ("I8", 1), vec![n, groups], None),
        ],
        6 => vec![(".weight", eight, vec![n, k], None), (".weight_scale_inv", float, blocks, None)],
        7 => vec![(".weight", eight, vec![n, k], None), (".scale", e8m0, vec![n, k / 32], None)],
        8 => vec![
            ("", eight, vec![2, n, k], None),
            ("_scale_inv", float, [&[2], &blocks[..]].concat(), None),
        ],
        9 => vec![
            (".qweight", i32, vec![n, wide / 8], None),
            (".qzeros", i32, vec![n, 2], None),
            (".scales", f16, vec![n, 16], None),
        ],
        10 => vec![
            (".qweight", ("I16", 2), vec![n / 4, wide], None),
            (".qzeros", f16, vec![32, n], None),
            (".scales", f16, vec![32, n], None),
        ],
        11 => vec![
            (".weight", u8, vec![n * wide / 2, 1], None),
            (".weight.absmax", if optional(6) { f32 } else { u8 }, vec![scales], None),
            (
                ".weight.quant_map",
                f32,
                vec![16],
                Some(NF4.iter().copied().flat_map(f32::to_le_bytes).collect()),
            ),
            (
                ".weight.quant_state.bitsandbytes__nf4",
                u8,
                vec![state("nf4").len()],
                Some(state("nf4")),
            ),
            (".weight.nested_absmax", f32, vec![scales.div_ceil(4)], None),
            (".weight.nested_quant_map", f32, vec![256], None),
        ],
        12 => vec![
            (".weight", ("I8", 1), vec![n, k], None),
            (".SCB", f32, vec![n], None),
            (".weight_format", u8, vec![], Some(vec![0])),
        ],
        13 => vec![
            (".W_q", elements, vec![own.div_ceil(codes), 32], None),
            (".scale", float, vec![own, 1], None),
            (".zero", float, vec![own, 1], None),
            (".shape", ("I64", 8), vec![2], Some(extents(&[n, k]))),
            (".group_size", i32, vec![], numbers(&[32])),
            (".axis", i32, vec![], numbers(&[1])),
            (".packing", u8, vec![packing.len()], Some(packing.into())),
        ],
        _ => vec![
            ("_blocks", u8, vec![2, n, k.div_ceil(32), 16], None),
            ("_scales", u8, vec![2, n, k.div_ceil(32)], None),
        ],
    };
    let own = all.into_iter().enumerate().filter(|(i, _)| *i < 2 || !optional(i + 2));
    let part = |(_, (leaf, element, shape, own)): (_, (&str, _, _, Option<_>))| {
        (leaf.to_owned(), element, shape, own.unwrap_or_default())
    };
    own.map(part).collect()
}

/// The numbers of NF4.
#[rustfmt::skip]
const NF4: [f32; 16] = [
    -1.0, -0.696_192_8, -0.525_073_05, -0.394_917_5, -0.284_441_38, -0.184_773_43, -0.091_050_036,
    0.0, 0.079_580_3, 0.160_930_2, 0.246_112_3, 0.337_915_24, 0.440_709_83, 0.562_617, 0.722_956_84,
    1.0,
];

/// Types of tensors, and their bytes.
const TYPES: [(&str, usize); 8] = [
    ("I32", 4),
    ("U32", 4),
    ("F16", 2),
    ("BF16", 2),
    ("F32", 4),
    ("U8", 1),
    ("F8_E4M3", 1),
    ("I64", 8),
];

/// Bytes that follow their length, or those that are left.
fn text<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(byte(rest)) | usize::from(byte(rest)) << 8;
    let (text, after) = rest.split_at(length.min(rest.len()));
    *rest = after;
    text
}

fn byte(rest: &mut &[u8]) -> u8 {
    let Some((first, after)) = rest.split_first() else { return 0 };
    *rest = after;
    *first
}

/// Two safetensors files with tensors of names, types and shapes that the bytes choose.
fn shards(rest: &mut &[u8]) -> [Vec<u8>; 2] {
    const LEAVES: [&str; 12] = [
        "qweight",
        "qzeros",
        "scales",
        "g_idx",
        "weight",
        "biases",
        "weight_scale",
        "weight_scale_2",
        "global_scale",
        "order",
        "codes",
        "bias",
    ];
    /// Bytes of the tensors of a shard, at most. Larger shards find nothing that small ones do not.
    const MOST: usize = 1 << 14;
    let mut shards = [(); 2].map(|()| (Vec::new(), 0));
    for _ in 0..byte(rest) % 12 {
        let (name, element) = (byte(rest), byte(rest));
        let leaf = LEAVES[usize::from(name) % LEAVES.len()];
        let prefix = ["a", "b.c"][usize::from(name) / LEAVES.len() % 2];
        let (element, size) = TYPES[usize::from(element) % TYPES.len()];
        let shape: Vec<usize> = (0..byte(rest) % 4).map(|_| usize::from(byte(rest))).collect();
        let bytes = shape.iter().product::<usize>() * size;
        let (entries, end) = &mut shards[usize::from(name >> 7)];
        if *end + bytes <= MOST {
            let to = *end + bytes;
            let name = format!("{prefix}.{leaf}");
            entries.push(format!(
                r#""{name}":{{"dtype":"{element}","shape":{shape:?},"data_offsets":[{end},{to}]}}"#
            ));
            *end = to;
        }
    }
    shards.map(|(entries, end)| {
        let header = format!("{{{}}}", entries.join(","));
        let data = rest.iter().copied().chain(std::iter::repeat(0)).take(end);
        (header.len() as u64)
            .to_le_bytes()
            .into_iter()
            .chain(header.into_bytes())
            .chain(data)
            .collect()
    })
}

/// Reads all there is, and checks the promises of the library. Errors are welcome.
fn examine(model: &Result<Model>) -> Read {
    let mut read = Read::new();
    let Ok(model) = model else { return read };
    for (key, value) in model.gguf_values() {
        assert!(!value.to_string().is_empty() && model.gguf_value(key).is_some());
    }
    let formats = ["affine-4bit-g64-f16", "affine-8bit-g32-f32", "q8_0"];
    for (i, tensor) in model.tensors().enumerate() {
        assert!(model.get(tensor.name()).is_ok());
        // Without a config, nothing tells GPTQ's versions apart.
        let named = model.get_as(tensor.name(), &Expected::default().mode("gptq"));
        let tensor = named.unwrap_or(tensor);
        let known = !matches!(tensor.kind(), TensorKind::Unclear(_));
        assert_eq!(tensor.sizes().is_ok(), known, "{tensor:?}");
        let order = tensor.order();
        if let Ok(Some(order)) = &order {
            assert_eq!(Some(&order.len()), tensor.shape().last());
        }
        let Ok(sizes) = tensor.sizes() else { continue };
        // Imports give up to 64 bytes for one of the file, all others one.
        let made: usize = sizes.iter().sum();
        assert!(made as u64 <= tensor.stored_bytes() * 64, "{tensor:?}: {sizes:?}");
        let mut done = vec![0; sizes.len()];
        let streamed = tensor.stream(&mut |chunk: Chunk<'_>| {
            assert_eq!(done[chunk.plane], chunk.offset);
            done[chunk.plane] += chunk.bytes.len() as u64;
            Ok(())
        });
        if streamed.is_ok() {
            assert!(
                done.iter().zip(&sizes).all(|(&done, &size)| done == size as u64),
                "{tensor:?}: {done:?}"
            );
            let quantized = matches!(tensor.kind(), TensorKind::Quantized(_));
            let whole = tensor.quantized();
            assert_eq!(whole.is_ok(), quantized);
            if let Ok(whole) = whole {
                let (n, row) = (whole.n(), |plane: &Vec<u8>| plane.len() / whole.n().max(1));
                let rows = n / 3..n - n / 4;
                let planes = whole.planes().iter();
                let parts: Vec<_> =
                    planes.map(|p| p[rows.start * row(p)..rows.end * row(p)].to_vec()).collect();
                assert_eq!(
                    tensor.rows(rows).map(|part| part.planes().to_vec()),
                    Ok(parts),
                    "{tensor:?}"
                );
            }
            read.extend(quantized.then(|| tensor.stored()));
            read.extend(
                quantized.then_some("in another order").filter(|_| matches!(order, Ok(Some(_)))),
            );
        } else {
            assert!(order.is_err(), "{tensor:?}: {streamed:?}");
        }
        if let Ok(format) = formats[i % formats.len()].parse()
            && let Ok(found) = model.get_as(tensor.name(), &Expected::from(format))
        {
            assert_eq!(*found.kind(), TensorKind::Quantized(format));
        }
    }
    let mut written = std::io::Cursor::new(Vec::new());
    let metadata =
        model.metadata().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let outputs: Result<Vec<_>> = model.tensors().map(|tensor| Output::tensor(&tensor)).collect();
    if outputs
        .and_then(|outputs| write_to(&mut written, outputs, &metadata, &mut |_, _| {}))
        .is_ok()
    {
        let again = Model::from_bytes("w.safetensors", written.into_inner())
            .map(|model| model.tensors().len());
        assert!(again.is_ok(), "{again:?}");
        read.insert("written");
    }
    read
}
