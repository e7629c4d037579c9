//! The number of keys of documents, estimated from samples.

use crate::read::estimate::SampleUnit;
use crate::steps::documents::DocumentBatch;
use crate::steps::documents::rule::DocumentRule;
use bloomline::KeyHasher;

/// The size of a window: documents are longer than lines.
const WINDOW: usize = 1 << 16;

impl SampleUnit for DocumentRule {
    fn window(&self) -> usize {
        WINDOW
    }

    fn column(&self) -> Option<&[String]> {
        Some(self.pointer.tokens())
    }

    fn estimate_keys(&self, rows: u64, bytes: u64) -> u64 {
        self.keys_of(rows, bytes)
    }

    fn count(&self, piece: &[u8], end: u8, first: bool, last: bool) -> f64 {
        let start = if first { 0 } else { memchr::memchr(end, piece).map_or(piece.len(), |end| end + 1) };
        let stop = if last { piece.len() } else { memchr::memrchr(end, piece).map_or(start, |end| end + 1) };
        let lines = piece.get(start..stop).filter(|lines| !lines.is_empty());
        let Some(lines) = lines else {
            // A document is longer than the piece.
            return self.keys_in(piece);
        };
        let mut documents = DocumentBatch::default();
        let hasher = KeyHasher::new(0);
        for line in lines.split(|&byte| byte == end) {
            // A line without a document is reported when it is read.
            let _ = documents.push(line, 0, self, &hasher);
        }
        documents.keys() as f64 * piece.len() as f64 / lines.len() as f64
    }
}
