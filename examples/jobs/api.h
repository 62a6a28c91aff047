// Jobs over HTTP.
//
//   PUT    /jobs/{id}           {"in_ms": N} or {"at_ms": N} or {"every_ms": N}, and a "payload" that may be any JSON
//   POST   /jobs                an array of these with their ids
//   DELETE /jobs/{id}           cancels: {"state": "waiting" | "claimed"}, the state that it was in; 404 if there is none
//   GET    /dead?limit=N        the latest dead letters
//   POST   /dead/{id}/retry     runs one again, now
//   GET    /  /status           what there is to see
//   GET    /healthz  /readyz    whether the process is alive; whether it takes part, which it does not once it drains
//   POST   /drain               claims no more, and is not ready any more
#pragma once

#include <functional>
#include <string>

#include "jobs.h"
#include "leadership.h"
#include "sylar/http/http_server.h"

namespace jobs {

/// The status page shows these beside `jobs`.
struct Shown {
  std::string replica;  ///< its name
  std::string store;    ///< the kind of it
  std::function<Members()> members = [] { return Members{}; };
};

/// Adds the servlets. `jobs` must outlive them.
void addServlets(sylar::http::ServletDispatch& servlets, Jobs& jobs, const Shown& shown);

}  // namespace jobs
