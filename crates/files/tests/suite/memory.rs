//! Memory while a large file is streamed. The files have holes, so that they take no space.

use safetensors::tensor::Dtype::{self, F16, I32, U32};
use std::io::Write;
use tilewise_files::{CHUNK, Chunk, Model};

/// The most memory that the loader's promise allows for any format or import.
const MOST: u64 = 3 * CHUNK as u64;

/// A file of this header and tensors of zeros.
fn sparse(path: &std::path::Path, tensors: &[(&str, Dtype, [usize; 2])]) {
    let mut end = 0;
    let entry = |(name, dtype, shape): &(&str, Dtype, [usize; 2])| {
        let begin = end;
        end += shape[0] * shape[1] * dtype.bitsize() / 8;
        format!(
            r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#
        )
    };
    let entries: Vec<_> = tensors.iter().map(entry).collect();
    let header = format!("{{{}}}", entries.join(","));
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len((8 + header.len() + end) as u64).unwrap();
}

fn map(path: &std::path::Path) -> Model {
    // SAFETY: only this test knows the file.
    unsafe { Model::map(path) }.unwrap()
}

/// Most bytes allocated at once while all is streamed, and the bytes streamed.
fn peak(path: &std::path::Path) -> (u64, u64) {
    let mut streamed = 0;
    let allocated = allocation_counter::measure(|| {
        let model = map(path);
        for tensor in model.tensors() {
            let sink = &mut |chunk: Chunk<'_>| {
                streamed += chunk.bytes.len() as u64;
                Ok(())
            };
            tensor.stream(sink).unwrap();
        }
    });
    (allocated.bytes_max, streamed)
}

#[test]
fn a_file_of_4_gb_takes_little() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    // 4 bits in groups of 64 that nothing else fits: K = 32768 of [65536, K], twice.
    let planes = |prefix| {
        [("weight", U32, 4096), ("scales", F16, 512), ("biases", F16, 512)]
            .map(|(leaf, dtype, k)| (format!("{prefix}.{leaf}"), dtype, [1 << 17, k]))
    };
    let tensors = [planes("a"), planes("b")].concat();
    let tensors: Vec<_> =
        tensors.iter().map(|(name, dtype, shape)| (&**name, *dtype, *shape)).collect();
    sparse(&path, &tensors);
    std::fs::write(
        folder.path().join("config.json"),
        r#"{"quantization":{"bits":4,"group_size":64}}"#,
    )
    .unwrap();
    let (peak, streamed) = peak(&path);
    assert!(streamed > 4 << 30 && peak < MOST, "{peak} bytes for {streamed}");
    let model = map(&path);
    let rows =
        allocation_counter::measure(|| drop(model.get("b").unwrap().rows(70_000..70_100).unwrap()));
    assert!(rows.bytes_max < 3 << 20, "{} bytes for 100 rows", rows.bytes_max);
}

#[test]
#[cfg(target_os = "linux")]
fn a_mapped_tensor_is_given_back_behind_the_stream() {
    const BYTES: usize = 256 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    sparse(&path, &[("a", F16, [BYTES / 2 / 4096, 4096])]);
    let model = map(&path);
    // Bytes of the file that are mapped in memory.
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let own = maps.lines().skip_while(|line| !line.ends_with(path.to_str().unwrap()));
        let mut lines = own.map(|line| line.split_whitespace().collect::<Vec<_>>());
        let resident = lines.find(|line| line[0] == "Rss:").expect("the file is mapped");
        1024 * resident[1].parse::<usize>().unwrap()
    };
    let (mut most, mut sum) = (0, 0);
    let sink = &mut |chunk: Chunk<'_>| {
        sum += chunk.bytes.iter().step_by(512).map(|&byte| usize::from(byte)).sum::<usize>();
        most = most.max(mapped());
        Ok(())
    };
    model.get("a").unwrap().stream(sink).unwrap();
    let left = mapped();
    assert!(sum == 0 && most > CHUNK / 2, "the test itself: {most} bytes were in memory");
    assert!(most < BYTES / 4 && left < CHUNK, "{most} of {BYTES} bytes, {left} left");
}

#[test]
fn repacking_takes_little() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let tensors: [(&str, Dtype, [usize; 2]); 3] = [
        ("w.qweight", I32, [2048, 16384]),
        ("w.qzeros", I32, [256, 2048]),
        ("w.scales", F16, [256, 16384]),
    ];
    sparse(&path, &tensors);
    let config = r#"{"quantization_config":{"quant_method":"gptq"}}"#;
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let (peak, streamed) = peak(&path);
    assert!(streamed > 128 << 20 && peak < MOST, "{peak} bytes for {streamed}");
}

#[test]
fn blocks_take_little() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    // One tensor of Q8_0, 8192 by 8192.
    let mut header = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend(1u64.to_le_bytes());
    header.extend(b"w");
    header.extend(2u32.to_le_bytes());
    header.extend([8192u64.to_le_bytes(), 8192u64.to_le_bytes()].concat());
    header.extend(8u32.to_le_bytes());
    header.extend(0u64.to_le_bytes());
    header.resize(header.len().next_multiple_of(32), 0);
    let length = header.len() as u64 + 8192 * 8192 / 32 * 34;
    std::fs::write(&path, &header).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
    let (peak, streamed) = peak(&path);
    assert!(streamed == 8192 * 8192 / 32 * 34 && peak < MOST, "{peak} bytes for {streamed}");
}
