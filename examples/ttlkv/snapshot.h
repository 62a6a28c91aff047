// A snapshot is a file with all keys, their values and their times to live.
//
// It is written to a temporary file beside it, which is renamed when all of it is on the disk. So the file is always a whole
// snapshot, the last or the one before, whenever the process or the machine ends.
//
//   file:    "TTLKV001" block... end
//   block:   bytes (8)  records  checksum (8)        one for each shard
//   end:     0 (8)      number of records (8)
//   record:  expiry in unix ms (8)  key  elements + 1, or 0 for a string (4)  value...
//   bytes:   size (4) bytes
//
// Numbers are little-endian. Each shard is written as it is at one moment, and the shards one after the other.
//
// Thread safety: any thread, one call for each file. The calls block the thread: use sylar::blocking in a fiber.
#pragma once

#include <cstddef>
#include <string>

#include "keyspace.h"

namespace ttlkv {

/// Writes the snapshot. Throws std::system_error if it cannot; then the file is as it was.
void writeSnapshot(Keyspace& keyspace, const std::string& path);

/// Adds the keys of the snapshot that have not expired, and returns their number. Returns 0 if there is no file. Throws
/// std::system_error if it cannot be read, and std::runtime_error, which says where, if it is no whole snapshot.
size_t loadSnapshot(Keyspace& keyspace, const std::string& path);

}  // namespace ttlkv
