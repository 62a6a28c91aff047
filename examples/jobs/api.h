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

#include <string>

#include "jobs.h"
#include "sylar/http/http_server.h"

namespace jobs {

/// Adds the servlets. `jobs` must outlive them. `replica` and `store` are names to show.
void addServlets(sylar::http::ServletDispatch& servlets, Jobs& jobs, const std::string& replica, const std::string& store);

}  // namespace jobs
