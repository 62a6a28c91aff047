#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "beast_oracle.h"
#include "guarded_text.h"
#include "memory_stream.h"
#include "sylar/http/chunk_decoder.h"
#include "sylar/http/head_scan.h"
#include "sylar/http/request_reader.h"
#include "verdict_table.h"

namespace sylar::http {

std::ostream& operator<<(std::ostream& os, const Verdict& verdict) {
  const char* kinds[] = {"accepted", "refused", "gone"};
  return os << kinds[static_cast<int>(verdict.kind)] << ' ' << static_cast<int>(verdict.status)
            << (verdict.keep_alive ? " keep" : " close") << " (" << verdict.why << ')';
}

namespace {

HttpLimits tableLimits() {
  HttpLimits limits;
  limits.max_body = kTableMaxBody;
  return limits;
}

// The verdict of a reader on all that a source sends.
void expectRow(const VerdictRow& row, MemorySource& source) {
  const HttpLimits limits = tableLimits();
  MemorySink sink;
  RequestReader reader(source, sink, limits);
  HttpRequest request;
  ASSERT_EQ(reader.read(request), row.verdict);
  if (!row.verdict.ok()) return;
  ASSERT_EQ(request.getBody(), row.body);
  ASSERT_EQ(std::string(reader.buffered()) + source.unread(), row.left);
}

std::vector<std::string> ids() {
  std::set<std::string> all;
  for (const VerdictRow& row : verdictTable()) all.insert(row.id);
  return {all.begin(), all.end()};
}

class VerdictTable : public testing::TestWithParam<std::string> {
 protected:
  std::vector<VerdictRow> rows() const {
    std::vector<VerdictRow> found = verdictTable();
    std::erase_if(found, [](const VerdictRow& row) { return row.id != GetParam(); });
    return found;
  }
};

std::string idName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, VerdictTable, testing::ValuesIn(ids()), idName);

// RG-11
TEST_P(VerdictTable, HasRowsEnough) { EXPECT_GE(rows().size(), 5u); }

// RD-10, SEC-01 to SEC-04, SEC-20 to SEC-35: the row's id
TEST_P(VerdictTable, HoldsForInputAsAWhole) {
  for (const VerdictRow& row : rows()) {
    SCOPED_TRACE(row.name);
    MemorySource source;
    source.send(row.input);
    expectRow(row, source);
  }
}

TEST_P(VerdictTable, HoldsByteByByte) {
  for (const VerdictRow& row : rows()) {
    SCOPED_TRACE(row.name);
    MemorySource source;
    source.sendByteByByte(row.input);
    expectRow(row, source);
  }
}

// RG-10
TEST_P(VerdictTable, HoldsCutAnywhere) {
  for (const VerdictRow& row : rows()) {
    SCOPED_TRACE(row.name);
    for (size_t cut = 1; cut < row.input.size(); ++cut) {
      SCOPED_TRACE(cut);
      MemorySource source;
      source.send(std::string_view(row.input).substr(0, cut));
      source.send(std::string_view(row.input).substr(cut));
      expectRow(row, source);
    }
  }
}

// The second request on a connection gets the verdict that the first would get.
TEST_P(VerdictTable, HoldsBehindAnotherRequest) {
  for (const VerdictRow& row : rows()) {
    SCOPED_TRACE(row.name);
    const HttpLimits limits = tableLimits();
    MemorySource source;
    MemorySink sink;
    source.send(table::length("4", "abcd") + row.input);
    RequestReader reader(source, sink, limits);
    HttpRequest request;
    ASSERT_EQ(reader.read(request), Verdict::accepted(true));
    ASSERT_EQ(reader.read(request), row.verdict);
    if (row.verdict.ok()) {
      ASSERT_EQ(request.getBody(), row.body);
      ASSERT_EQ(std::string(reader.buffered()) + source.unread(), row.left);
    }
  }
}

// RG-12: where a head that we take apart has its parts, another parser has them, too.
TEST_P(VerdictTable, WhatIsAcceptedLooksTheSameToBeast) {
  for (const VerdictRow& row : rows()) {
    SCOPED_TRACE(row.name);
    if (!row.verdict.ok()) continue;
    const HttpLimits limits = tableLimits();
    MemorySource source;
    MemorySink sink;
    source.send(row.input);
    RequestReader reader(source, sink, limits);
    HttpRequest request;
    ASSERT_TRUE(reader.read(request).ok());
    checkWithBeast(row.input, request, reader.buffered().size() + source.unread().size());
  }
}

TEST_P(VerdictTable, ScanReadsNothingPastTheEnd) {
  const HttpLimits limits = tableLimits();
  for (const VerdictRow& row : rows()) {
    SCOPED_TRACE(row.name);
    GuardedText guarded(row.input.size());
    for (size_t size = 1; size <= row.input.size(); ++size) {
      const std::string_view text = guarded.put(std::string_view(row.input).substr(0, size));
      HeadScan scan(limits);
      FieldList fields;
      const Scan found = scan.feed(text, fields);
      const bool all = size == row.input.size();
      ASSERT_TRUE(!all || found != Scan::kMore || row.verdict.kind == Verdict::Kind::kGone);
      if (found != Scan::kDone) continue;
      ASSERT_LE(scan.end(), size);
      // And the rest as the chunks of a body.
      ChunkDecoder decoder(limits);
      decoder.start();
      const std::string_view rest = guarded.put(text.substr(scan.end()));
      ASSERT_LE(decoder.feed(rest), rest.size());
    }
  }
}

TEST(VerdictTableTotal, HasTwoHundredRowsAndDistinctNames) {
  std::set<std::string> names;
  for (const VerdictRow& row : verdictTable()) names.insert(std::string(row.id) + row.name);
  EXPECT_EQ(names.size(), verdictTable().size());
  EXPECT_GE(names.size(), 200u);
}

}  // namespace
}  // namespace sylar::http
