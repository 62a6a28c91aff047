#include "sylar/app/command_line.h"

#include <fmt/format.h>
#include <getopt.h>

namespace sylar::detail {

CommandLine CommandLine::parse(int argc, char** argv) {
  static constexpr option kLong[] = {
      {"check-config", no_argument, nullptr, 'k'},
      {"help", no_argument, nullptr, 'h'},
      {},
  };
  CommandLine line;
  optind = 0;  // starts over, even if the program has used getopt before
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":c:dhps", kLong, nullptr)) != -1 && line.error.empty();) {
    const std::string word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
    switch (found) {
      case 'c': line.config_dir = optarg; break;
      case 'k': line.check_config = true; break;
      case 'p':
      case 'h': line.help = true; break;
      case 's':  // in the foreground, as always
        break;
      case 'd':
        line.error = "-d: there is no daemon mode; a service manager keeps a service in the background, and starts it again";
        break;
      case ':': line.error = fmt::format("{}: a folder must follow, as in '-c conf'", word); break;
      default: line.error = fmt::format("{}: no such option", word);
    }
  }
  if (line.error.empty() && optind < argc) line.error = fmt::format("{}: nothing but options is expected", argv[optind]);
  return line;
}

std::string CommandLine::usage(const std::string& program) {
  return fmt::format(
      "usage: {} [-c DIR] [--check-config]\n"
      "  -c DIR           the folder with the YAML files that configure the service; 'conf' unless given\n"
      "  --check-config   say whether they are right, and end: 0 if so, else 2\n"
      "  -p, --help       this text\n"
      "SIGTERM and SIGINT end the service when what it has begun is answered, within app.drain_ms; a second one ends it at once. "
      "SIGHUP\n"
      "reads the folder again. Exit status: 0 ended as asked; 1 something did not end in time; 2 wrong options or configuration; "
      "3 could\n"
      "not start (an address in use, ...).\n",
      program);
}

}  // namespace sylar::detail
