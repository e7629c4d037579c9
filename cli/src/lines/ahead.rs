//! Compressed inputs, decompressed before their turn.
//!
//! One after another they would keep one core busy and leave the others idle. So threads begin with the next ones, and hand on
//! pieces of their contents. The pieces that wait take a bounded amount of memory together. The input whose turn it is may have a
//! few more, so that it never waits for those after it.

use crate::error::Error;
use crate::lines::input::{Input, Opened};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::{mem, thread, vec};

/// Bytes of a piece.
const PIECE: usize = 1 << 18;
/// Pieces that the input whose turn it is may have beyond the bound.
const MORE: usize = 4;

/// How far to read ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Threads that decompress.
    pub threads: usize,
    /// Bytes of contents that may wait.
    pub memory: usize,
}

/// Inputs, each to be opened in its turn.
pub struct Turns {
    inputs: vec::IntoIter<Turn>,
    /// The byte at which the next one starts.
    start: u64,
    store: Arc<Store>,
}

/// An input that waits for its turn.
enum Turn {
    /// Nobody reads it before.
    Later(Input),
    /// The compressed one of this number and name. Threads have it, or will.
    Ahead(usize, Arc<str>, Receiver<io::Result<Piece>>),
}

/// What the threads share.
struct Store {
    state: Mutex<State>,
    /// There is room, or another input has its turn.
    changed: Condvar,
    /// Pieces that may wait.
    most: usize,
}

struct State {
    /// Inputs that no thread has begun, in order.
    left: VecDeque<Left>,
    /// The number of the input whose turn it is.
    turn: usize,
    /// Pieces that wait.
    waiting: usize,
    /// Memory for pieces.
    spare: Vec<Vec<u8>>,
    /// Nobody takes pieces any more.
    over: bool,
}

/// An input that waits for a thread.
struct Left {
    number: usize,
    input: Input,
    start: u64,
    send: Sender<io::Result<Piece>>,
}

impl Turns {
    /// The inputs in order, the first of them from the byte `start` of its contents on.
    pub fn new(inputs: Vec<Input>, start: u64, ahead: Ahead) -> Self {
        let compressed = inputs.iter().filter(|input| input.is_compressed()).count();
        // One alone has nothing after it.
        let wanted = ahead.threads > 1 && ahead.memory >= PIECE && compressed > 1;
        let threads = if wanted { ahead.threads.min(compressed) } else { 0 };
        let mut left = VecDeque::new();
        let turn = |(number, input): (usize, Input)| {
            if threads == 0 || !input.is_compressed() {
                return Turn::Later(input);
            }
            let (send, pieces) = unbounded();
            let name = Arc::from(input.origin.name());
            left.push_back(Left { number, input, start: if number == 0 { start } else { 0 }, send });
            Turn::Ahead(number, name, pieces)
        };
        let inputs: Vec<Turn> = inputs.into_iter().enumerate().map(turn).collect();
        let state = State { left, turn: 0, waiting: 0, spare: Vec::new(), over: false };
        let most = ahead.memory / PIECE;
        let store = Arc::new(Store { state: Mutex::new(state), changed: Condvar::new(), most });
        for _ in 0..threads {
            let store = store.clone();
            // What no thread has begun is opened in its turn, so one that cannot be had is not missed.
            let _ = thread::Builder::new().name("ahead".into()).spawn(move || live(&store));
        }
        Self { inputs: inputs.into_iter(), start, store }
    }

    /// Opens the next input: its name, where it starts, and its contents.
    pub fn open(&mut self) -> Option<(Arc<str>, u64, io::Result<Opened>)> {
        let turn = self.inputs.next()?;
        let start = mem::take(&mut self.start);
        Some(match turn {
            Turn::Later(input) => (Arc::from(input.origin.name()), start, input.open(start)),
            Turn::Ahead(number, name, pieces) => {
                let mut state = self.store.state();
                state.turn = number;
                self.store.changed.notify_all();
                let own = state.left.iter().position(|left| left.number == number).and_then(|i| state.left.remove(i));
                drop(state);
                let opened = match own {
                    Some(Left { input, start, .. }) => input.open(start),
                    None => {
                        let contents = Contents { pieces, piece: None, taken: 0, begun: false };
                        Ok(Opened { contents: Box::new(contents), regular: true })
                    }
                };
                (name, start, opened)
            }
        })
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.store.state().over = true;
        self.store.changed.notify_all();
    }
}

impl Store {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it has this")
    }

    /// Waits until the input of this number may have another piece. `None` if nobody takes any more.
    fn room(self: &Arc<Self>, number: usize) -> Option<Piece> {
        let full = |state: &mut State| {
            let more = if number == state.turn { MORE } else { 0 };
            !state.over && state.waiting >= self.most + more
        };
        let mut state = self.changed.wait_while(self.state(), full).expect("no thread panics while it has this");
        if state.over {
            return None;
        }
        state.waiting += 1;
        let bytes = state.spare.pop().unwrap_or_default();
        Some(Piece { bytes, store: self.clone() })
    }
}

/// A piece of an input's contents. Wherever it is dropped, its place and its memory are free.
struct Piece {
    bytes: Vec<u8>,
    store: Arc<Store>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut state = self.store.state();
        state.waiting -= 1;
        state.spare.push(mem::take(&mut self.bytes));
        self.store.changed.notify_all();
    }
}

/// A thread's life: one input after another, from the first that no other has.
fn live(store: &Arc<Store>) {
    loop {
        let Some(Left { number, input, start, send }) = store.state().left.pop_front() else { return };
        let mut contents = match input.open(start) {
            Ok(opened) => opened.contents,
            Err(error) => {
                let _ = send.send(Err(error));
                continue;
            }
        };
        loop {
            let Some(mut piece) = store.room(number) else { return };
            piece.bytes.clear();
            let read = (&mut contents).take(PIECE as u64).read_to_end(&mut piece.bytes);
            let ended = piece.bytes.len() < PIECE;
            // It fails if the rest is not wanted.
            let sent = send.send(Ok(piece)).is_ok();
            if let Err(error) = read {
                let _ = send.send(Err(error));
                break;
            }
            if ended || !sent {
                break;
            }
        }
    }
}

/// What a thread reads of an input.
struct Contents {
    pieces: Receiver<io::Result<Piece>>,
    piece: Option<Piece>,
    /// Bytes of the piece that are taken.
    taken: usize,
    /// Whether there was a piece.
    begun: bool,
}

impl Read for Contents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(piece) = &self.piece
                && self.taken < piece.bytes.len()
            {
                let rest = &piece.bytes[self.taken..];
                let n = buffer.len().min(rest.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                self.taken += n;
                return Ok(n);
            }
            let ended = self.piece.take().is_none_or(|piece| piece.bytes.len() < PIECE);
            match self.pieces.recv() {
                Ok(piece) => (self.piece, self.taken) = (Some(piece?), 0),
                Err(_) if ended && self.begun => return Ok(0),
                // A thread that panicked must not pass for the end.
                Err(_) => return Err(io::Error::other(Error::Worker)),
            }
            self.begun = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::input::Inputs;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;
    use std::time::{Duration, Instant};

    fn read(turns: &mut Turns) -> Vec<(u64, io::Result<Vec<u8>>)> {
        let mut all = Vec::new();
        while let Some((_, start, opened)) = turns.open() {
            let contents = opened.and_then(|mut opened| {
                let mut bytes = Vec::new();
                opened.contents.read_to_end(&mut bytes).map(|_| bytes)
            });
            all.push((start, contents));
        }
        all
    }

    #[test]
    fn contents_are_the_same_however_far_ahead() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        let mut whole = Vec::new();
        // Some of many pieces, some plain, some empty, and one that is torn.
        for i in 0..30usize {
            let length = [0, 10, PIECE, 7 * PIECE + 3][i % 4];
            let bytes: Vec<u8> = (0..length).map(|j| (i + j / 3) as u8 | 1).collect();
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&bytes).unwrap();
            let mut file = if i % 5 == 4 { bytes.clone() } else { encoder.finish().unwrap() };
            if i == 11 {
                file.truncate(file.len() / 2);
            }
            let path = folder.path().join(i.to_string());
            fs::write(&path, file).unwrap();
            paths.push(path);
            whole.push(bytes);
        }
        fs::write(&paths[20], "").unwrap();
        whole[20].clear();
        for (threads, memory) in [(1, 1 << 30), (2, PIECE), (3, 3 * PIECE), (8, 1 << 30), (8, 0)] {
            let inputs = Inputs::of(&paths).found;
            fs::remove_file(&paths[17]).unwrap();
            let mut turns = Turns::new(inputs, 5, Ahead { threads, memory });
            let all = read(&mut turns);
            assert_eq!(all.len(), whole.len());
            for (i, ((start, contents), whole)) in all.into_iter().zip(&whole).enumerate() {
                let first = if i == 0 { 5 } else { 0 };
                assert_eq!(start, first);
                match contents {
                    Ok(contents) => {
                        assert!(contents == whole[whole.len().min(first as usize)..], "{i} {threads} {memory}")
                    }
                    Err(error) => assert!(i == 11 || i == 17, "{i}: {error}"),
                }
            }
            assert_eq!(turns.store.state().waiting, 0);
            fs::write(&paths[17], "").unwrap();
            whole[17].clear();
        }
    }

    /// Those after the first wait until it is read, and there is never more than the bound.
    #[test]
    fn what_waits_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for i in 0..4 {
            let path = folder.path().join(i.to_string());
            fs::write(&path, zstd::encode_all(&vec![1; 20 * PIECE][..], 1).unwrap()).unwrap();
            paths.push(path);
        }
        let inputs = Inputs::of(&paths).found;
        let mut turns = Turns::new(inputs, 0, Ahead { threads: 4, memory: 6 * PIECE });
        let mut bytes = 0;
        while let Some((_, _, opened)) = turns.open() {
            let mut contents = opened.unwrap().contents;
            let mut buffer = vec![0; PIECE / 2];
            while let n @ 1.. = contents.read(&mut buffer).unwrap() {
                bytes += n;
                let state = turns.store.state();
                assert!(state.waiting <= 6 + MORE && state.spare.len() + state.waiting <= 6 + MORE);
            }
        }
        assert_eq!(bytes, 80 * PIECE);
    }

    #[test]
    fn threads_end_with_the_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, zstd::encode_all(&vec![1; 20 * PIECE][..], 1).unwrap()).unwrap();
        let inputs = Inputs::of(&[path.clone(), path]).found;
        let turns = Turns::new(inputs, 0, Ahead { threads: 2, memory: 2 * PIECE });
        let store = turns.store.clone();
        drop(turns);
        // Only this one is left once they are gone.
        let deadline = Instant::now() + Duration::from_secs(20);
        while Arc::strong_count(&store) > 1 {
            assert!(Instant::now() < deadline);
            thread::yield_now();
        }
    }

    /// An input may be left before its end.
    #[test]
    fn what_is_not_wanted_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..40).map(|i| folder.path().join(i.to_string())).collect();
        let bytes = zstd::encode_all(&vec![1; 8 * PIECE][..], 1).unwrap();
        paths.iter().for_each(|path| fs::write(path, &bytes).unwrap());
        let mut turns = Turns::new(Inputs::of(&paths).found, 0, Ahead { threads: 3, memory: 2 * PIECE });
        let mut opened = 0;
        while let Some((_, _, input)) = turns.open() {
            assert!(input.unwrap().contents.read(&mut [0; 10]).unwrap() > 0);
            opened += 1;
        }
        assert_eq!(opened, paths.len());
        let store = turns.store.clone();
        drop(turns);
        let deadline = Instant::now() + Duration::from_secs(20);
        while Arc::strong_count(&store) > 1 {
            assert!(Instant::now() < deadline);
            thread::yield_now();
        }
        assert_eq!(store.state().waiting, 0);
    }

    #[test]
    fn a_thread_that_is_gone_is_no_end() {
        let (send, pieces) = unbounded();
        let store = Arc::new(Store {
            state: Mutex::new(State { left: VecDeque::new(), turn: 0, waiting: 1, spare: Vec::new(), over: false }),
            changed: Condvar::new(),
            most: 1,
        });
        send.send(Ok(Piece { bytes: vec![1; PIECE], store })).unwrap();
        drop(send);
        let mut contents = Contents { pieces, piece: None, taken: 0, begun: false };
        let mut bytes = Vec::new();
        assert!(contents.read_to_end(&mut bytes).unwrap_err().to_string().contains("has ended"));
        assert_eq!(bytes.len(), PIECE);
    }
}
