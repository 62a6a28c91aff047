// sylar-run PROGRAM: has the loader put the hooks before libc, and becomes the program. It says so if the loader will not do that.
// Source: ld.so(8), LD_PRELOAD; elf(5); execve(2).
#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "sylar/run/main_fiber.h"
#include "sylar/run/report.h"
#include "sylar/version.h"

namespace {

namespace fs = std::filesystem;

constexpr int kMisused = 125, kNotExecutable = 126, kNotFound = 127;  // as env, nice and their like have it
constexpr int kMostScripts = 4;                                       // that are each other's interpreters, as the kernel has it

constexpr char kHelp[] =
    "Usage: sylar-run [--threads=real|fibers] [--report] PROGRAM [ARGUMENT]...\n"
    "Runs PROGRAM with its main in a fiber, whose blocking calls suspend it instead of the thread.\n"
    "Programs that PROGRAM starts run in the same way. sylar-run(1) says what is not reached.\n\n"
    "  --threads=fibers   make the program's threads fibers as well, all of them on main's thread\n"
    "  --threads=real     leave them threads (the default)\n"
    "  --report   print at the end, to stderr, which calls main has made, which have waited, and what held the thread\n"
    "  --help     print this and exit\n"
    "  --version  print the version and exit\n";

/// Returns the file that execvp(3) would run, or `program` if there is none.
fs::path find(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path file = fs::path(folder.empty() ? "." : folder) / program;
    if (::access(file.c_str(), X_OK) == 0 && !fs::is_directory(file)) return file;
  }
  return program;
}

/// Returns the beginning of a file, where a script names its interpreter and an ELF file has its program headers.
std::string headOf(const fs::path& file) {
  std::string head(4096, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(stream.gcount()));
  return head;
}

bool isElf(const std::string& head) { return head.size() >= sizeof(Elf64_Ehdr) && head.starts_with(ELFMAG); }

/// Returns true if an ELF file asks for no dynamic loader.
bool isStatic(const std::string& head) {
  Elf64_Ehdr file;
  std::memcpy(&file, head.data(), sizeof file);
  if (file.e_ident[EI_CLASS] != ELFCLASS64) return false;
  Elf64_Phdr segment;
  for (size_t i = 0, at = file.e_phoff; i < file.e_phnum; ++i, at += sizeof segment) {
    if (at > head.size() - sizeof segment) return false;  // it cannot be told
    std::memcpy(&segment, head.data() + at, sizeof segment);
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

/// Returns true if the program gets rights by being started. The loader then ignores LD_PRELOAD with a path.
bool gainsRights(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != ::getgid()) return true;
  return ::getuid() != 0 && ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
}

/// Returns why the hooks will not reach the program in `file`, or null.
const char* whyNotReached(fs::path file) {
  std::string head = headOf(file);
  for (int i = 0; i < kMostScripts && head.starts_with("#!"); ++i) {
    std::istringstream line(head.substr(2, head.find('\n')));
    line >> file;
    std::string interpreter = file.string();
    head = headOf(interpreter);
  }
  if (!isElf(head)) return nullptr;
  if (isStatic(head)) return "is statically linked";
  if (gainsRights(file)) return "runs with other rights than yours";
  return nullptr;
}

/// Returns the object with the hooks, which is installed with this program.
fs::path preload() { return fs::weakly_canonical(fs::read_symlink("/proc/self/exe").parent_path() / SYLAR_RUN_OBJECT); }

int fail(int status, const char* what, const char* why) {
  std::fprintf(stderr, "sylar-run: %s: %s\n", what, why);
  return status;
}

int run(char** arguments) {
  const std::string object = preload().string();
  if (!fs::exists(object)) return fail(kMisused, object.c_str(), "does not exist; install it beside sylar-run");
  if (object.find_first_of(": ") != std::string::npos)
    return fail(kMisused, object.c_str(), "the loader takes no path with a space or a colon; install it elsewhere");
  const char* const others = std::getenv("LD_PRELOAD");
  const std::string all = others != nullptr && *others != '\0' ? object + ':' + others : object;
  ::setenv("LD_PRELOAD", all.c_str(), 1);
  if (const char* const why = whyNotReached(find(arguments[0])))
    std::fprintf(stderr, "sylar-run: %s %s, so it runs without fibers\n", arguments[0], why);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  return fail(error == ENOENT ? kNotFound : kNotExecutable, arguments[0], std::strerror(error));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--help") return std::fputs(kHelp, stdout) < 0;
  if (first == "--version")
    return std::printf("sylar-run %d.%d.%d\n", SYLAR_VERSION_MAJOR, SYLAR_VERSION_MINOR, SYLAR_VERSION_PATCH) < 0;
  int program = 1;
  for (; program < argc; ++program) {
    const std::string option = argv[program];
    if (option == "--report") {
      ::setenv(sylar::kReportVariable, "1", 1);
    } else if (option == "--threads=fibers") {
      ::setenv(sylar::kThreadsVariable, "fibers", 1);
    } else if (option == "--threads=real") {
      ::unsetenv(sylar::kThreadsVariable);
    } else {
      break;
    }
  }
  const std::string next = argc > program ? argv[program] : "";
  if (next == "--") ++program;
  if (program >= argc || (next != "--" && next.starts_with('-'))) {
    std::fputs(kHelp, stderr);
    return kMisused;
  }
  try {
    return run(argv + program);
  } catch (const std::exception& error) {
    return fail(kMisused, argv[program], error.what());
  }
}
