#include "snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace ttlkv {

namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kMagic = "TTLKV001";
constexpr SipHash kChecksum(0x736e617073686f74, 0x74746c6b76303031);  // finds damage; it is no protection against forgery

[[noreturn]] void fail(const std::string& path, const char* call) {
  throw std::system_error(errno, std::generic_category(), fmt::format("{}: {}", path, call));
}

/// A file that is closed at the end of the scope.
class File {
 public:
  File(std::string path, int flags) : m_path(std::move(path)), m_fd(::open(m_path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (m_fd >= 0) ::close(m_fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool isOpen() const { return m_fd >= 0; }
  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(m_fd, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) fail(m_path, "write");
      if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  /// Reads up to `size` bytes; fewer only at the end of the file.
  std::string read(size_t size) const {
    std::string bytes(size, '\0');
    size_t filled = 0;
    while (filled < size) {
      const ssize_t got = ::read(m_fd, bytes.data() + filled, size - filled);
      if (got < 0 && errno != EINTR) fail(m_path, "read");
      if (got == 0) break;
      if (got > 0) filled += static_cast<size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
  }
  void sync() const {
    if (::fsync(m_fd) != 0) fail(m_path, "fsync");
  }
  size_t size() const {
    struct stat status {};
    if (::fstat(m_fd, &status) != 0) fail(m_path, "fstat");
    return static_cast<size_t>(status.st_size);
  }

 private:
  const std::string m_path;
  const int m_fd;
};

template <class Number>
void put(std::string& to, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  to.append(bytes, sizeof number);
}

void putBytes(std::string& to, std::string_view bytes) {
  put(to, static_cast<uint32_t>(bytes.size()));
  to += bytes;
}

void putItem(std::string& to, const Item& item) {
  const auto& [key, entry] = item;
  put(to, entry.expires_at_ms);
  putBytes(to, key);
  if (entry.list == nullptr) {
    put(to, uint32_t{0});
    return putBytes(to, entry.bytes);
  }
  put(to, static_cast<uint32_t>(entry.list->size() + 1));
  for (const std::string& element : *entry.list) putBytes(to, element);
}

/// Takes numbers and bytes off a block. Throws std::out_of_range at its end.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : m_rest(bytes) {}

  bool atEnd() const { return m_rest.empty(); }
  template <class Number>
  Number number() {
    Number number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  std::string_view bytes() { return take(number<uint32_t>()); }

 private:
  std::string_view take(size_t size) {
    if (size > m_rest.size()) throw std::out_of_range("a record ends beyond its block");
    const std::string_view taken = m_rest.substr(0, size);
    m_rest.remove_prefix(size);
    return taken;
  }
  std::string_view m_rest;
};

/// Reads one record. Returns whether its key was added, and not expired.
bool loadRecord(Keyspace& keyspace, Cursor& cursor) {
  const auto expires_at_ms = cursor.number<int64_t>();
  const LockedKey place(keyspace, cursor.bytes());
  const bool expired = expires_at_ms != kNoExpiry && place.nowMs() > expires_at_ms;
  Item* item = nullptr;
  if (!expired) item = place.find() != nullptr ? place.find() : &place.insert();
  const auto elements = cursor.number<uint32_t>();
  if (elements == 0) {
    const std::string_view bytes = cursor.bytes();
    if (item != nullptr) place.shard().setBytes(*item, bytes);
  }
  for (uint32_t i = 1; i < elements; ++i) {
    const std::string_view element = cursor.bytes();
    if (item != nullptr) place.shard().pushBack(*item, element);
  }
  if (item != nullptr) place.shard().setExpiry(*item, expires_at_ms);
  return item != nullptr;
}

/// Returns the records of the next block, or nothing at the end of the snapshot.
std::string readBlock(const File& file, size_t file_size) {
  const auto size = Cursor(file.read(8)).number<uint64_t>();
  if (size == 0) return {};
  if (size > file_size) throw std::out_of_range("a block is longer than the file");
  std::string records = file.read(size);
  if (records.size() < size) throw std::out_of_range("the file ends in a block");
  if (Cursor(file.read(8)).number<uint64_t>() != kChecksum(records)) throw std::out_of_range("a checksum is wrong");
  return records;
}

}  // namespace

void writeSnapshot(Keyspace& keyspace, const std::string& path) {
  const std::string temporary = path + ".tmp";
  try {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.isOpen()) fail(temporary, "open");
    file.write(kMagic);
    uint64_t count = 0;
    for (size_t i = 0; i < keyspace.shardCount(); ++i) {
      std::string records;
      {
        // The records are made under the lock and written without it, so that no command waits for the disk.
        Shard& shard = keyspace.shard(i);
        const sylar::ThreadMutex::Lock lock(shard.mutex);
        const int64_t now_ms = keyspace.nowMs();
        shard.forEach([&](const Item& item) {
          if (item.second.isExpired(now_ms)) return;
          putItem(records, item);
          ++count;
        });
      }
      if (records.empty()) continue;
      std::string head, tail;
      put(head, uint64_t{records.size()});
      put(tail, kChecksum(records));
      file.write(head);
      file.write(records);
      file.write(tail);
    }
    std::string end;
    put(end, uint64_t{0});
    put(end, count);
    file.write(end);
    file.sync();
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "rename");
  // The rename itself is on the disk when the directory is.
  const std::string directory = std::filesystem::absolute(path).parent_path();
  const File parent(directory, O_RDONLY | O_DIRECTORY);
  if (!parent.isOpen()) fail(directory, "open");
  parent.sync();
}

size_t loadSnapshot(Keyspace& keyspace, const std::string& path) {
  const File file(path, O_RDONLY);
  if (!file.isOpen()) {
    if (errno == ENOENT) return 0;
    fail(path, "open");
  }
  try {
    const size_t file_size = file.size();
    if (file.read(kMagic.size()) != kMagic) throw std::out_of_range("it does not begin with TTLKV001");
    uint64_t records = 0;
    size_t loaded = 0;
    for (std::string block; !(block = readBlock(file, file_size)).empty();) {
      for (Cursor cursor(block); !cursor.atEnd(); ++records) loaded += loadRecord(keyspace, cursor) ? 1 : 0;
    }
    if (Cursor(file.read(8)).number<uint64_t>() != records) throw std::out_of_range("records are missing");
    return loaded;
  } catch (const std::out_of_range& damage) {
    throw std::runtime_error(fmt::format("{} is no whole snapshot: {}", path, damage.what()));
  }
}

}  // namespace ttlkv
