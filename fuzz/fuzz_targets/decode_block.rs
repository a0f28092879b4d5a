//! Any bytes, any directory byte and any number of postings, through every codec: no panic, and encoding round-trips.
#![no_main]

use lanner_fuzz::write_seeds;
use lanner_index::codec::{BLOCK, CodecName, Packed};
use libfuzzer_sys::fuzz_target;

/// Bytes before the payload: directory byte, number of postings, base.
const HEAD: usize = 6;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for name in CodecName::ALL {
        for (count, step) in [(1, 1), (5, 1000), (127, 3), (128, 1), (128, 100_000)] {
            let documents: Vec<u32> = (0..count as u32).map(|i| 7 + i * step).collect();
            let mut payload = Vec::new();
            let byte = name.codec().encode_documents(&[], 7, &documents, &mut payload);
            let mut seed = vec![byte, (count - 1) as u8, 7, 0, 0, 0];
            seed.append(&mut payload);
            seeds.push(seed);
        }
    }
    seeds
}

/// Decodes the bytes as a list of one block, then cut in two: the shared part and a block.
fn decode_anything(data: &[u8]) {
    let (head, payload) = data.split_at(HEAD);
    let (byte, count) = (head[0], usize::from(head[1]) % BLOCK + 1);
    let base = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let (shared, bytes) = payload.split_at(payload.len() / 2);
    for name in CodecName::ALL {
        for packed in [Packed::alone(byte, payload), Packed { byte, bytes, shared, block: usize::from(head[2]) % 4 }] {
            let mut numbers = [0; BLOCK];
            name.codec().decode_documents(packed, base, &mut numbers[..count]);
            name.codec().decode_values(packed, &mut numbers[..count]);
            name.codec().value_at(packed, count, count / 2);
            name.codec().length(packed, count);
        }
    }
}

fn encode_and_decode(data: &[u8]) {
    let (words, _) = data.as_chunks::<4>();
    let values: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word).max(1)).collect();
    for name in CodecName::ALL {
        list_of_values(name, &values);
    }
    let mut documents: Vec<u32> = values.into_iter().take(BLOCK).collect();
    documents.sort_unstable();
    documents.dedup();
    for name in CodecName::ALL.into_iter().filter(|_| !documents.is_empty()) {
        let (mut bytes, mut decoded) = (Vec::new(), [0; BLOCK]);
        let base = documents[0];
        let byte = name.codec().encode_documents(&[], base, &documents, &mut bytes);
        name.codec().decode_documents(Packed::alone(byte, &bytes), base, &mut decoded[..documents.len()]);
        assert_eq!(decoded[..documents.len()], documents, "{name}");
    }
}

fn list_of_values(name: CodecName, values: &[u32]) {
    let mut shared = Vec::new();
    name.codec().encode_shared(&mut values.iter().map(|value| value - 1), &mut shared);
    for (block, values) in values.chunks(BLOCK).enumerate() {
        let (mut bytes, mut decoded) = (Vec::new(), [0; BLOCK]);
        let byte = name.codec().encode_values(&shared, values, &mut bytes);
        let packed = Packed { byte, bytes: &bytes, shared: &shared, block };
        assert_eq!(bytes.len(), name.codec().length(packed, values.len()), "{name}");
        name.codec().decode_values(packed, &mut decoded[..values.len()]);
        assert_eq!(decoded[..values.len()], *values, "{name}");
        assert_eq!(name.codec().value_at(packed, values.len(), 0), values[0], "{name}");
    }
}

fuzz_target!(init: write_seeds(seeds()), |data: &[u8]| {
    if data.len() >= HEAD {
        decode_anything(data);
    }
    encode_and_decode(data);
});
