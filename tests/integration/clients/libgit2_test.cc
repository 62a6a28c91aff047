// Unmodified libgit2 in many fibers of which some fail: it keeps the last error of a thread. They ask a daemon of git's.
#include <git2.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/integration/clients/matrix.h"
#include "tests/integration/server_process.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(git_remote* remote) const { ::git_remote_free(remote); }
  void operator()(git_repository* repository) const { ::git_repository_free(repository); }
};

class Folder {
 public:
  Folder() { EXPECT_NE(::mkdtemp(m_path.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(m_path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return m_path; }

 private:
  std::string m_path = std::filesystem::temp_directory_path() / "sylar_git_XXXXXX";
};

/// The last error of this thread, which others had time to change.
std::string lastError(Users& us) {
  us.meet();
  const git_error* const error = ::git_error_last();
  const std::string text = error == nullptr ? "no error" : std::to_string(error->klass) + ' ' + error->message;
  us.meet();
  ::git_error_clear();
  return text + '\n';
}

/// Lists the references of a remote repository.
std::string list(Users& us, const std::string& url) {
  git_remote* made = nullptr;
  int result = ::git_remote_create_detached(&made, url.c_str());
  const std::unique_ptr<git_remote, Free> remote(made);
  us.meet();
  if (result == 0) result = ::git_remote_connect(made, GIT_DIRECTION_FETCH, nullptr, nullptr, nullptr);
  std::string seen = std::to_string(result) + '\n' + lastError(us);
  const git_remote_head** heads = nullptr;
  size_t count = 0;
  result = ::git_remote_ls(&heads, &count, made);
  for (size_t i = 0; result == 0 && i < count; ++i) seen += heads[i]->name + std::string(" ");
  return seen + std::to_string(result) + '\n' + lastError(us);
}

int refuse(const git_indexer_progress* progress, void* number) {
  ::git_error_set_str(GIT_ERROR_CALLBACK, ("refused by " + std::to_string(*static_cast<size_t*>(number))).c_str());
  return progress->received_objects > 0 ? -42 : 0;
}

/// Clones a repository, which some break off.
std::string clone(Users& us, const std::string& url, size_t i) {
  const Folder folder;
  git_clone_options options;
  EXPECT_EQ(::git_clone_options_init(&options, GIT_CLONE_OPTIONS_VERSION), 0);
  if (i % 2 == 1) options.fetch_opts.callbacks.transfer_progress = &refuse;
  options.fetch_opts.callbacks.payload = &i;
  git_repository* made = nullptr;
  const int result = ::git_clone(&made, url.c_str(), (folder.path() + "/clone").c_str(), &options);
  const std::unique_ptr<git_repository, Free> repository(made);
  std::string seen = std::to_string(result) + '\n' + lastError(us);
  seen += std::to_string(std::filesystem::exists(folder.path() + "/clone/file")) + '\n';
  git_reference* reference = nullptr;
  if (made != nullptr) {
    EXPECT_NE(::git_reference_lookup(&reference, made, ("refs/heads/none_" + std::to_string(i)).c_str()), 0);
  }
  return seen + lastError(us);
}

TEST(Libgit2, SeesInFibersWhatItSeesInThreads) {
  ::git_libgit2_init();
  ServerProcess server("git_daemon");
  const std::string here = "git://127.0.0.1:" + std::to_string(server.port());
  seesInFibersWhatItSeesInThreads(12, [&](Users& us, size_t i) {
    const std::string urls[] = {
        here + "/repository",
        here + "/repository",
        here + "/none_" + std::to_string(i),
        "git://127.0.0.1:1/repository",
        "none_" + std::to_string(i) + "://127.0.0.1/",
        here,
    };
    const std::string& url = urls[i / 2 % std::size(urls)];
    const std::string seen = list(us, url);
    return seen + clone(us, url, i);
  });
  ::git_libgit2_shutdown();
}

}  // namespace
}  // namespace sylar::test
