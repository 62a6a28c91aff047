#include "status_page.h"

#include <utility>

namespace jobs {

namespace {

using Json = nlohmann::json;

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

std::string textOf(const Json& value) { return escaped(value.is_string() ? value.get<std::string>() : value.dump()); }

/// The columns of a replica: what stands above, and where it is in what the replica tells of itself.
const std::pair<const char*, Json::json_pointer> kColumns[] = {
    {"claimed", "/claimed"_json_pointer},
    {"done", "/done"_json_pointer},
    {"failed", "/failed"_json_pointer},
    {"buried", "/buried"_json_pointer},
    {"lost", "/lost"_json_pointer},
    {"lag p50, ms", "/lag_ms/p50"_json_pointer},
    {"lag p99, ms", "/lag_ms/p99"_json_pointer},
    {"store's clock ahead, ms", "/store_clock_ahead_ms"_json_pointer},
    {"dropped", "/dropped"_json_pointer},
    {"repaired", "/repaired"_json_pointer},
};

std::string replicasTable(const Json& status) {
  std::string table = "<table id=replicas><tr><th>replica";
  for (const auto& [name, where] : kColumns) table += std::string("<th>") + name;
  table += '\n';
  for (const Json& each : status["replicas"]) {
    table += "<tr><th>" + textOf(each["name"]) + (each["name"] == status["leader"] ? " leads" : "");
    for (const auto& [name, where] : kColumns) table += "<td>" + (each.contains(where) ? textOf(each[where]) : "");
    table += '\n';
  }
  return table + "</table>\n";
}

}  // namespace

Json aboutOf(const Jobs& jobs) {
  const Counts here = jobs.counts();
  return {{"claimed", here.claimed},
          {"done", here.done},
          {"failed", here.failed},
          {"buried", here.buried},
          {"lost", here.lost},
          {"lag_ms", {{"p50", milliseconds(here.lag_p50)}, {"p99", milliseconds(here.lag_p99)}}},
          {"store_clock_ahead_ms", milliseconds(here.skew)},
          {"store_clock_uncertainty_ms", milliseconds(here.skew_uncertainty)},
          {"dropped", here.damage.dropped},
          {"repaired", here.damage.repaired}};
}

Json statusOf(Jobs& jobs, const std::string& replica, const std::string& store, const Members& members) {
  const StoreCounts all = jobs.store().counts();
  const Json here = aboutOf(jobs);
  Json replicas = Json::array();
  bool known = false;
  const auto add = [&replicas](const std::string& name, Json about) {
    about["name"] = name;
    replicas.push_back(std::move(about));
  };
  for (const auto& each : members.members) {
    known |= each.name == replica;
    add(each.name, each.name == replica ? here : each.about);
  }
  if (!known) add(replica, here);
  return {{"replica", replica},  {"ready", jobs.ready()},
          {"store", store},      {"jobs", {{"all", all.jobs}, {"late", all.late}, {"dead", all.dead}}},
          {"here", here},        {"leader", members.leader.empty() ? Json() : Json(members.leader)},
          {"replicas", replicas}};
}

std::string pageOf(const Json& status) {
  const Json& jobs = status["jobs"];
  return "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2><title>jobs</title>\n"
         "<style>body{font:16px sans-serif;margin:2em}table{border-collapse:collapse}th,td{padding:.3em 1em;border-bottom:1px "
         "solid #ccc;"
         "text-align:right}th:first-child{text-align:left}</style>\n"
         "<h1>Jobs</h1>\n"
         "<table id=jobs><tr><th>in " +
         textOf(status["store"]) + "<th>all<th>late<th>dead\n<tr><th><td>" + textOf(jobs["all"]) + "<td>" + textOf(jobs["late"]) +
         "<td><a href=/dead>" + textOf(jobs["dead"]) + "</a></table>\n<h2>Replicas</h2>\n" + replicasTable(status) +
         "<p>This page is by " + textOf(status["replica"]) + (status["ready"] == true ? "" : ", which is not ready") +
         ". <a href=/status>As JSON</a></html>\n";
}

}  // namespace jobs
