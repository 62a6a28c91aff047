// An echo server that also serves a file by HTTP, as a user writes it: read, and write what was read. One worker does both.
//
//   file_and_echo HTTP_PORT FILE [suspend|block]      block: reads of the file that wait for the disk block the worker
//
// Prints `listening on 127.0.0.1:PORT`, which echoes, and exits with 0 on SIGINT or SIGTERM. The file is at /file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "bench/support/loopback.h"
#include "sylar/hook.h"
#include "sylar/http/http_server.h"
#include "sylar/iomanager.h"

namespace {

using namespace sylar::http;

void echo(int fd) {
  char buffer[4096];
  for (;;) {
    const ssize_t size = read(fd, buffer, sizeof buffer);
    if (size <= 0 || write(fd, buffer, static_cast<size_t>(size)) != size) break;
  }
  close(fd);
}

void serveEchoes() {
  const int listener = bench::listenOn(0, 0);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) bench::die("accept");
    sylar::IOManager::GetThis()->place([fd] { echo(fd); });
  }
}

int sendFile(const std::string& path, const HttpResponse::ptr& response, const HttpSession::ptr& session) {
  constexpr size_t kPiece = 256 * 1024;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) bench::die(path.c_str());
  const auto piece = std::make_unique<char[]>(kPiece);
  ssize_t size = 0;
  if (session->beginResponse(response, static_cast<uint64_t>(status.st_size))) {
    while ((size = read(file, piece.get(), kPiece)) > 0) {
      if (!session->writeBody(std::string_view(piece.get(), static_cast<size_t>(size)))) break;
    }
    session->endResponse();
  }
  close(file);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string path = argv[2];
  sylar::setHookFiles(argc < 4 || std::string_view(argv[3]) != "block");
  std::signal(SIGPIPE, SIG_IGN);
  bench::raiseFileLimit();
  const sigset_t ending = bench::blockEnding();

  sylar::IOManager iom(1, false, "both");
  const auto http = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  http->getServletDispatch()->addServlet("/file",
                                         [&path](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr session) {
                                           return sendFile(path, response, session);
                                         });
  if (!http->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(std::atoi(argv[1]))))) return 1;
  http->start();
  iom.schedule(serveEchoes);
  bench::endAt(ending);
}
