//! Headers and their elements.

use super::*;

fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = [NUMPY, &[version, 0][..]].concat();
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

fn parsed(bytes: &[u8]) -> Result<Npy, String> {
    read(bytes, bytes.len() as u64)
}

#[test]
fn written_headers_are_read_back() {
    for shape in [vec![], vec![5], vec![2, 3], vec![2, 0, 7]] {
        for dtype in [DType::F32, DType::F16] {
            let mut bytes = header(dtype, &shape).unwrap();
            assert_eq!(bytes.len() % 64, 0);
            let elements = vec![7; dtype.bytes() as usize * shape.iter().product::<usize>()];
            bytes.extend(&elements);
            assert_eq!(
                parsed(&bytes),
                Ok(Npy { scalar: Scalar::Dense(dtype), shape: shape.clone(), bytes: elements })
            );
        }
    }
    assert_eq!(header(DType::BF16, &[1]), None);
}

#[test]
fn all_versions_byte_orders_and_entry_orders() {
    for version in [1, 2, 3] {
        let bytes = file(
            version,
            "{\"shape\": (2L,), 'fortran_order':False,'descr':'>i4'}\n",
            &[0, 0, 0, 1, 0, 0, 2, 0],
        );
        let raw = parsed(&bytes).unwrap();
        assert_eq!(
            raw,
            Npy {
                scalar: Scalar::Dense(DType::I32),
                shape: vec![2],
                bytes: vec![1, 0, 0, 0, 0, 2, 0, 0]
            }
        );
    }
    assert!(parsed(&file(4, "{}", &[])).unwrap_err().contains("version 4.0"));
}

#[test]
fn fortran_order_is_undone() {
    // Element (i, j, k) of shape [2, 3, 2] holds its row-major rank.
    let mut column_major = vec![0u8; 24];
    for (rank, (i, j, k)) in
        (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| (i, j, k)))).enumerate()
    {
        column_major[2 * (i + 2 * j + 6 * k)] = rank as u8;
    }
    let bytes =
        file(1, "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 2), }", &column_major);
    let expected: Vec<u8> = (0..12).flat_map(|rank| [rank, 0]).collect();
    assert_eq!(parsed(&bytes).unwrap().bytes, expected);
    let empty = file(1, "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 0), }", &[]);
    assert_eq!(parsed(&empty).unwrap().shape, [2, 0]);
}

#[test]
fn lies_are_refused_with_their_numbers() {
    let with = |shape: &str, len| {
        parsed(&file(
            1,
            &format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"),
            &vec![0; len],
        ))
        .unwrap_err()
    };
    let truncated = with("(3, 4)", 47);
    assert!(truncated.contains("[3,4] of f32, 48 bytes; 47 bytes"), "{truncated}");
    assert!(with("(3, 4)", 49).contains("too long"));
    assert!(with("(4611686018427387904, 4)", 0).contains("more bytes than can be addressed"));
    assert!(with("(4294967296, 4294967296, 0)", 4).contains("more bytes than can be addressed"));
    assert!(with("(99999999999999999999999,)", 4).contains("does not fit"));
    assert!(with("(-1, 4)", 4).contains("an extent expected at \"-1"));
    assert!(with(&"(".repeat(9000), 4).contains("an extent expected"));
}

#[test]
fn malformed_headers_are_refused() {
    for (header, part) in [
        ("", "expected"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "quoted name"),
        ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "<c8"),
        ("{'descr': 'é4', 'fortran_order': False, 'shape': (1,)}", "é4"),
        ("{'descr': '', 'fortran_order': False, 'shape': (1,)}", "element type"),
        ("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "False"),
        ("{'descr': '<f4', 'shape': (1,)}", "lacks"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 'y'}", "\"x\""),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 7", "the end"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1", "expected"),
        ("{'descr': '<f4", "end of a quoted name"),
    ] {
        let error = parsed(&file(2, header, &[0; 4])).unwrap_err();
        assert!(error.contains(part), "{header}: {error}");
    }
    let mut lying = file(2, "{}", &[]);
    lying[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(
        parsed(&lying)
            .unwrap_err()
            .contains("header of 4294967295 bytes is declared in a file of 14 bytes")
    );
    for len in 0..12 {
        assert!(parsed(&lying[..len]).is_err());
    }
}

#[test]
fn no_damage_of_one_byte_is_taken_for_more_than_it_holds() {
    let good = [header(DType::F16, &[3, 10]).unwrap(), vec![1; 60]].concat();
    for at in 0..good.len() - 60 {
        for byte in 0..=255 {
            let mut bad = good.clone();
            bad[at] = byte;
            if let Ok(raw) = parsed(&bad) {
                assert_eq!(raw.scalar.bytes_of(&raw.shape), Some(60), "byte {at} as {byte}");
            }
        }
    }
}
