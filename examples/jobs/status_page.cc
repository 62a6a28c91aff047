#include "status_page.h"

namespace jobs {

namespace {

double milliseconds(Micros time) { return static_cast<double>(time.count()) / 1000; }

std::string escaped(const std::string& text) {
  std::string html;
  for (const char each : text) {
    if (each == '<')
      html += "&lt;";
    else if (each == '&')
      html += "&amp;";
    else
      html += each;
  }
  return html;
}

void addRows(std::string& page, const std::string& prefix, const nlohmann::json& object) {
  for (const auto& [name, value] : object.items()) {
    const std::string label = prefix.empty() ? name : prefix + " " + name;
    if (value.is_object()) {
      addRows(page, label, value);
    } else {
      page += "<tr><th>" + escaped(label) + "<td>" + escaped(value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
  }
}

}  // namespace

nlohmann::json statusOf(Jobs& jobs, const std::string& replica, const std::string& store) {
  const StoreCounts all = jobs.store().counts();
  const Counts here = jobs.counts();
  return {{"replica", replica},
          {"ready", !jobs.draining()},
          {"store", store},
          {"jobs", {{"all", all.jobs}, {"late", all.late}, {"dead", all.dead}}},
          {"here",
           {{"claimed", here.claimed},
            {"done", here.done},
            {"failed", here.failed},
            {"buried", here.buried},
            {"lost", here.lost},
            {"lag_ms", {{"p50", milliseconds(here.lag_p50)}, {"p99", milliseconds(here.lag_p99)}}},
            {"store_clock_ahead_ms", milliseconds(here.skew)},
            {"store_clock_uncertainty_ms", milliseconds(here.skew_uncertainty)}}}};
}

std::string pageOf(const nlohmann::json& status) {
  std::string page =
      "<!doctype html><meta charset=utf-8><title>jobs</title>\n"
      "<style>body{font:16px sans-serif;margin:2em}th{text-align:left;padding-right:2em}td{text-align:right}</style>\n"
      "<h1>jobs</h1><table>\n";
  addRows(page, "", status);
  return page + "</table><p><a href=/dead>dead letters</a> <a href=/status>as JSON</a>\n";
}

}  // namespace jobs
