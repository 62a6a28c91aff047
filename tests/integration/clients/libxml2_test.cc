// Unmodified libxml2 in many fibers of which some fail: it keeps the last error of a thread, and who gets the errors.
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "tests/integration/clients/matrix.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(xmlDoc* document) const { ::xmlFreeDoc(document); }
  void operator()(xmlParserCtxt* parser) const { ::xmlFreeParserCtxt(parser); }
};

/// A document in two parts. The parser waits for the second.
struct Document {
  std::string first;
  std::string second;
};

Document documentOf(size_t i) {
  const std::string name = "name" + std::to_string(i);
  const Document documents[] = {
      {"<?xml version='1.0'?>\n<" + name + ">", "text</" + name + ">"},
      {"<" + name + ">\n\n<other>", "</mismatch></" + name + ">"},
      {"<" + name + ">&undefined" + std::to_string(i) + ";", "</" + name + ">"},
      {"<" + name + " a='1' ", "a='2'/>"},
      {"<" + name + ">", ""},
      {"<?xml version='1.0' encoding='nothing" + std::to_string(i) + "'?>\n<" + name + ">", "</" + name + ">"},
  };
  return documents[i % std::size(documents)];
}

/// Where a parser reads. The second part comes from a neighbour, when all are in the middle of theirs.
struct Input {
  Users& us;
  std::array<std::array<int, 2>, Users::kSize>& pipes;
  size_t i;
  int reads = 0;

  void feed() {
    us.meet();
    const size_t next = (i + 1) % Users::kSize;
    const std::string second = documentOf(next).second;
    EXPECT_EQ(::write(pipes[next][1], second.data(), second.size()), static_cast<ssize_t>(second.size()));
    ::close(pipes[next][1]);
  }

  static int read(void* self, char* bytes, int size) {
    auto& input = *static_cast<Input*>(self);
    if (input.reads++ == 1) input.feed();
    return static_cast<int>(::read(input.pipes[input.i][0], bytes, static_cast<size_t>(size)));
  }
};

std::string toText(const xmlError* error) {
  if (error == nullptr || error->code == 0) return "no error\n";
  return std::to_string(error->code) + " in line " + std::to_string(error->line) + ": " + error->message;
}

void note(void* all, xmlErrorPtr error) { *static_cast<std::string*>(all) += "told " + toText(error); }

TEST(Libxml2, SeesInFibersWhatItSeesInThreads) {
  ::xmlInitParser();
  std::array<std::array<int, 2>, Users::kSize> pipes;
  seesInFibersWhatItSeesInThreads(18, [&](Users& us, size_t i) {
    EXPECT_EQ(::pipe(pipes[i].data()), 0);
    const std::string first = documentOf(i).first;
    EXPECT_EQ(::write(pipes[i][1], first.data(), first.size()), static_cast<ssize_t>(first.size()));
    std::string seen;
    ::xmlSetStructuredErrorFunc(&seen, &note);
    us.meet();
    Input input{us, pipes, i};
    {
      const std::unique_ptr<xmlParserCtxt, Free> parser(::xmlNewParserCtxt());
      const std::unique_ptr<xmlDoc, Free> document(
          ::xmlCtxtReadIO(parser.get(), &Input::read, nullptr, &input, "document", nullptr, 0));
      seen += document == nullptr ? "none" : reinterpret_cast<const char*>(::xmlDocGetRootElement(document.get())->name);
      seen += '\n' + toText(::xmlCtxtGetLastError(parser.get()));
      if (input.reads < 2) input.feed();  // it gave up before
    }
    us.meet();
    seen += toText(::xmlGetLastError());
    us.meet();
    ::xmlResetLastError();
    us.meet();
    ::close(pipes[i][0]);
    return seen + toText(::xmlGetLastError());
  });
  ::xmlCleanupParser();
}

}  // namespace
}  // namespace sylar::test
