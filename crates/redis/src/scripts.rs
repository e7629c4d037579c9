//! Scripts that compare and remove in one step on the server, because another client may replace a shard or a stage
//! between an answer and the next command.

use crate::shards::Key;
use redis::Cmd;

/// Removes the shard `KEYS[1]` if its mark, 8 bytes from `ARGV[1]` on, is one of the other arguments, or begins with
/// one of 4 bytes.
pub(crate) const REMOVE_SHARD: &str = "\
local mark = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 7)
for i = 2, #ARGV do
  if mark == ARGV[i] or #ARGV[i] == 4 and string.sub(mark, 1, 4) == ARGV[i] then
    return redis.call('UNLINK', KEYS[1])
  end
end
return 0";

/// Removes the shard `KEYS[1]` of a filter of one size if it has no mark. The mark would be behind the blocks, wherever
/// another filter of this name has its end. The bits of a claim end in the second half of a block.
pub(crate) const REMOVE_UNMARKED: &str = "\
if redis.call('STRLEN', KEYS[1]) % 64 ~= 8 then return redis.call('UNLINK', KEYS[1]) end
return 0";

/// Removes the stage `ARGV[1]` from the list `KEYS[1]` if its line is `ARGV[2]`.
pub(crate) const REMOVE_LINE: &str = "\
local list = redis.call('HGETALL', KEYS[1])
for i = 1, #list, 2 do
  if list[i] == ARGV[1] and list[i + 1] == ARGV[2] then
    return redis.call('HDEL', KEYS[1], ARGV[1])
  end
end
return 0";

/// The bytes in place of the mark of a stage's shard that has none: a string that ends before, zeros, and a seal alone.
pub(crate) const NO_MARK: [&[u8]; 3] = [&[], &[0; 8], &[0x80, 0, 0, 0, 0, 0, 0, 0]];

/// Returns the command that removes a shard if its mark is, or begins with, one of these bytes.
pub(crate) fn remove_shard<M: AsRef<[u8]>>(
    key: &Key,
    mark_offset: usize,
    marks: impl IntoIterator<Item = M>,
) -> (u16, Cmd) {
    let mut command = redis::cmd("EVAL");
    command.arg(REMOVE_SHARD).arg(1).arg(&key.name).arg(mark_offset);
    marks.into_iter().for_each(|mark| _ = command.arg(mark.as_ref()));
    (key.slot, command)
}

/// Returns the command that removes a shard of a filter of one size if it has no mark.
pub(crate) fn remove_unmarked(key: &Key) -> (u16, Cmd) {
    (key.slot, redis::cmd("EVAL").arg(REMOVE_UNMARKED).arg(1).arg(&key.name).take())
}

/// Returns the command that removes a stage from a list if it has this line.
pub(crate) fn remove_line(list: &Key, number: u64, line: &str) -> (u16, Cmd) {
    (list.slot, redis::cmd("EVAL").arg(REMOVE_LINE).arg(1).arg(&list.name).arg(number).arg(line).take())
}
