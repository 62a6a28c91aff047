// An inline request is split into words as sdssplitargs() of Redis does it.
#include <cctype>
#include <cstddef>

#include "request_reader.h"

namespace ttlkv {

namespace {

bool isSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
/// A word ends at these, although more characters may stand between words. Redis has the same difference.
bool endsWord(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool isHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

char hexValue(char c) {
  if (c <= '9') return static_cast<char>(c - '0');
  return static_cast<char>((c | 0x20) - 'a' + 10);
}

char escaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return c;
  }
}

/// Takes the rest of a word in double quotes off `line`. Returns false if the quote is not closed, or not followed by a space.
bool takeDoubleQuoted(std::string_view& line, std::string& word) {
  while (!line.empty() && line[0] != '"') {
    if (line.size() >= 4 && line[0] == '\\' && line[1] == 'x' && isHex(line[2]) && isHex(line[3])) {
      word += static_cast<char>(hexValue(line[2]) << 4 | hexValue(line[3]));
      line.remove_prefix(4);
    } else if (line.size() >= 2 && line[0] == '\\') {
      word += escaped(line[1]);
      line.remove_prefix(2);
    } else {
      word += line[0];
      line.remove_prefix(1);
    }
  }
  if (line.empty()) return false;
  line.remove_prefix(1);
  return line.empty() || isSpace(line[0]);
}

bool takeSingleQuoted(std::string_view& line, std::string& word) {
  while (!line.empty() && line[0] != '\'') {
    if (line.starts_with("\\'")) line.remove_prefix(1);
    word += line[0];
    line.remove_prefix(1);
  }
  if (line.empty()) return false;
  line.remove_prefix(1);
  return line.empty() || isSpace(line[0]);
}

}  // namespace

bool splitWords(std::string_view line, std::vector<std::string>& words) {
  while (true) {
    while (!line.empty() && isSpace(line[0])) line.remove_prefix(1);
    if (line.empty()) return true;
    std::string word;
    while (!line.empty() && !endsWord(line[0])) {
      const char c = line[0];
      line.remove_prefix(1);
      if (c == '"' || c == '\'') {
        if (c == '"' ? !takeDoubleQuoted(line, word) : !takeSingleQuoted(line, word)) return false;
        break;  // the closing quote ends the word
      }
      word += c;
    }
    words.push_back(std::move(word));
  }
}

}  // namespace ttlkv
