//! Any bytes, any directory byte and any number of postings, through every codec: no panic, and what is encoded returns.
#![no_main]

use lanner_fuzz::write_seeds;
use lanner_index::codec::{BLOCK, CodecName};
use libfuzzer_sys::fuzz_target;

/// Bytes before the payload: directory byte, number of postings, base.
const HEAD: usize = 6;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for name in CodecName::ALL {
        for (count, step) in [(1, 1), (5, 1000), (127, 3), (128, 1), (128, 100_000)] {
            let documents: Vec<u32> = (0..count as u32).map(|i| 7 + i * step).collect();
            let mut payload = Vec::new();
            let byte = name.codec().encode_documents(7, &documents, &mut payload);
            let mut seed = vec![byte, (count - 1) as u8, 7, 0, 0, 0];
            seed.append(&mut payload);
            seeds.push(seed);
        }
    }
    seeds
}

fn decode_anything(data: &[u8]) {
    let (head, payload) = data.split_at(HEAD);
    let (byte, count) = (head[0], usize::from(head[1]) % BLOCK + 1);
    let base = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    for name in CodecName::ALL {
        let mut numbers = [0; BLOCK];
        name.codec().decode_documents(byte, payload, base, &mut numbers[..count]);
        name.codec().decode_values(byte, payload, &mut numbers[..count]);
        name.codec().length(byte, count);
    }
}

fn encode_and_decode(data: &[u8]) {
    let (words, _) = data.as_chunks::<4>();
    let values: Vec<u32> = words.iter().take(BLOCK).map(|word| u32::from_le_bytes(*word).max(1)).collect();
    let mut documents = values.clone();
    documents.sort_unstable();
    documents.dedup();
    for name in CodecName::ALL.into_iter().filter(|_| !values.is_empty()) {
        let (mut bytes, mut decoded) = (Vec::new(), [0; BLOCK]);
        let byte = name.codec().encode_values(&values, &mut bytes);
        assert_eq!(bytes.len(), name.codec().length(byte, values.len()), "{name}");
        name.codec().decode_values(byte, &bytes, &mut decoded[..values.len()]);
        assert_eq!(decoded[..values.len()], values, "{name}");
        bytes.clear();
        let base = documents[0];
        let byte = name.codec().encode_documents(base, &documents, &mut bytes);
        name.codec().decode_documents(byte, &bytes, base, &mut decoded[..documents.len()]);
        assert_eq!(decoded[..documents.len()], documents, "{name}");
    }
}

fuzz_target!(init: write_seeds(seeds()), |data: &[u8]| {
    if data.len() >= HEAD {
        decode_anything(data);
    }
    encode_and_decode(data);
});
