// Snapshots: complete, damaged, cut short, and written to a disk that is full.
#include "examples/ttlkv/snapshot.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

class TtlkvSnapshot : public testing::Test {
 protected:
  TtlkvSnapshot() {
    char name[] = "/tmp/ttlkv_snapshot_XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    m_directory = name;
  }
  ~TtlkvSnapshot() override { std::filesystem::remove_all(m_directory); }

  std::string path() const { return m_directory / "snapshot"; }
  Options options() const {
    Options options;
    options.snapshot_path = path();
    return options;
  }
  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(std::string_view bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(m_directory), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path m_directory;
};

TEST_F(TtlkvSnapshot, KeepsKeysValuesAndTimes) {
  Store before(options());
  before.client.ask({"SET", "plain", std::string_view("a\0\r\n", 4)});
  before.ask("SET empty \"\"");
  before.ask("SET volatile 1 PX 5000");
  before.ask("SET short 1 PX 1000");
  before.ask("LPUSH list c b a");
  before.ask("EXPIRE list 100");
  EXPECT_EQ(before.ask("SAVE"), "+OK\r\n");
  EXPECT_EQ(files(), 1u);

  Store after(options());
  after.clock.set(std::chrono::milliseconds(2000));  // `short` has expired meanwhile
  EXPECT_EQ(after.engine.load(), 4u);
  EXPECT_EQ(after.ask("GET plain"), std::string("$4\r\na\0\r\n\r\n", 10));
  EXPECT_EQ(after.ask("GET empty"), "$0\r\n\r\n");
  EXPECT_EQ(after.ask("PTTL volatile"), ":3000\r\n");
  EXPECT_EQ(after.ask("LRANGE list 0 -1"), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
  EXPECT_EQ(after.ask("TTL list"), ":98\r\n");
  EXPECT_EQ(after.ask("DBSIZE"), ":4\r\n");
  EXPECT_TRUE(after.engine.keyspace().verify());
}

TEST_F(TtlkvSnapshot, ThatDoesNotExistIsEmpty) {
  Store store(options());
  EXPECT_EQ(store.engine.load(), 0u);
}

TEST_F(TtlkvSnapshot, IsRefusedIfItIsCutAnywhere) {
  Store before(options());
  before.ask("SET a 1");
  before.ask("LPUSH list b a");
  before.ask("SAVE");
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    Store after(options());
    EXPECT_THROW(after.engine.load(), std::runtime_error) << size;
  }
}

TEST_F(TtlkvSnapshot, IsRefusedIfAnyByteIsWrong) {
  Store before(options());
  before.ask("SET a 1");
  before.ask("LPUSH list b a");
  before.ask("SAVE");
  const std::string whole = bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write(damaged);
    Store after(options());
    EXPECT_THROW(after.engine.load(), std::runtime_error) << i;
  }
}

// A process that is killed in the middle of a snapshot leaves a part of the temporary file. The last snapshot loads, and the next
// one is written over the rest.
TEST_F(TtlkvSnapshot, TheLastOneSurvivesAKill) {
  Store before(options());
  before.ask("SET a 1");
  before.ask("SAVE");
  std::ofstream(path() + ".tmp", std::ios::binary) << bytes().substr(0, 20);
  Store after(options());
  EXPECT_EQ(after.engine.load(), 1u);
  EXPECT_EQ(after.ask("SAVE"), "+OK\r\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(TtlkvSnapshot, TheLastOneSurvivesAFullDisk) {
  Store store(options());
  store.ask("SET a 1");
  store.ask("SAVE");
  const std::string last = bytes();
  store.ask("SET b " + std::string(100'000, 'x'));
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string reply = store.ask("SAVE");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(reply, "-ERR " + path() + ".tmp: write: File too large\r\n");
  EXPECT_EQ(bytes(), last);
  EXPECT_EQ(files(), 1u);  // the part that was written is gone
  EXPECT_NE(store.ask("INFO persistence").find("rdb_last_bgsave_status:err"), std::string::npos);
  EXPECT_EQ(store.ask("SAVE"), "+OK\r\n");
  EXPECT_NE(store.ask("INFO persistence").find("rdb_last_bgsave_status:ok"), std::string::npos);
}

TEST_F(TtlkvSnapshot, SaysWhyItCannotBeWritten) {
  Options nowhere;
  nowhere.snapshot_path = path() + "/missing/file";
  Store store(nowhere);
  EXPECT_EQ(store.ask("SAVE"), "-ERR " + path() + "/missing/file.tmp: open: No such file or directory\r\n");
  Store none;
  EXPECT_EQ(none.ask("SAVE"), "-ERR the setting ttlkv.snapshot names no file\r\n");
  EXPECT_EQ(none.engine.load(), 0u);
}

TEST_F(TtlkvSnapshot, IsWrittenInTheBackground) {
  Store store(options());
  store.ask("SET a 1");
  EXPECT_EQ(store.ask("BGSAVE"), "+Background saving started\r\n");  // on a plain thread it is done by now
  EXPECT_EQ(store.ask("BGSAVE SCHEDULE"), "+Background saving started\r\n");
  Store after(options());
  EXPECT_EQ(after.engine.load(), 1u);
}

}  // namespace
}  // namespace ttlkv::test
