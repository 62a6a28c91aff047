// The table of the store in PostgreSQL, and its statements. Each statement is a transaction, by the clock of the server.
#pragma once

#include <utility>

namespace jobs {

/// Makes the schema if there is none. The lock is for replicas that start at the same time.
inline constexpr const char* kPostgresSchema = R"sql(
DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('jobs.job'));
  IF to_regclass('jobs.job') IS NULL THEN
    CREATE SCHEMA IF NOT EXISTS jobs;
    CREATE SEQUENCE jobs.number;         -- of runs and claims
    CREATE TABLE jobs.job (              -- all times in microseconds since 1970
      id       text COLLATE "C" PRIMARY KEY,
      payload  text NOT NULL,
      due      bigint NOT NULL,          -- of the run
      period   bigint NOT NULL,          -- 0: it runs once
      at       bigint,                   -- when it may be claimed; null: it is a dead letter
      run      bigint NOT NULL,
      token    bigint NOT NULL DEFAULT 0,  -- of the claim; 0: nobody has claimed it
      attempts int NOT NULL DEFAULT 0,
      error    text NOT NULL DEFAULT '',
      died     bigint                    -- when it became a dead letter
    ) WITH (autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX job_at ON jobs.job (at) WHERE at IS NOT NULL;
    CREATE INDEX job_died ON jobs.job (died) WHERE died IS NOT NULL;
    CREATE FUNCTION jobs.now() RETURNS bigint LANGUAGE sql VOLATILE
      AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
  END IF;
  IF to_regclass('jobs.leader') IS NULL THEN
    CREATE TABLE jobs.leader (           -- one row: the highest fencing token that a leader has shown
      only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
      fence    bigint NOT NULL
    );
  END IF;
  IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('jobs.job') AND conname = 'whole') THEN
    -- A job waits or is a dead letter, and no sum of its numbers is too large.
    ALTER TABLE jobs.job ADD CONSTRAINT whole CHECK ((at IS NULL) <> (died IS NULL) AND period BETWEEN 0 AND 10000000000000000
      AND greatest(abs(due), abs(at), abs(died)) < 100000000000000000) NOT VALID;
  END IF;
END $$)sql";

/// Few rows of a large table are wanted, and always by an index. The planner does not know how few: it would read all jobs to claim
/// some, because a plan that is kept counts on a tenth of the table for a limit.
inline constexpr const char* kPostgresSession = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

inline constexpr std::pair<const char*, const char*> kPostgresStatements[] = {
    // ids, payloads, times, whether they count from now, periods -> the time of the first
    {"put", R"sql(
WITH moment AS (SELECT jobs.now() AS now), placed AS (
  INSERT INTO jobs.job (id, payload, due, at, period, run)
  SELECT id, payload, instant + from_now * now, instant + from_now * now, period, nextval('jobs.number')
  FROM moment, unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::bigint[]) AS new (id, payload, instant, from_now, period)
  ORDER BY id
  ON CONFLICT (id) DO UPDATE SET payload = excluded.payload, due = excluded.due, at = excluded.at, period = excluded.period,
    run = excluded.run, token = 0, attempts = 0, error = '', died = NULL
  RETURNING at)
SELECT min(at) FROM placed)sql"},

    // id -> its token
    {"cancel", "DELETE FROM jobs.job WHERE id = $1 RETURNING token"},

    // limit, ahead, visibility, max attempts -> id, payload, due, at, run, token, attempt
    // Claims look ahead, so what is to be visible at a time has its place so much later.
    {"claim", R"sql(
WITH moment AS (SELECT jobs.now() AS now), found AS MATERIALIZED (
  SELECT id, at, attempts < $4::int AS lives FROM jobs.job
  WHERE at <= (SELECT now FROM moment) + $2::bigint ORDER BY at LIMIT $1::int FOR UPDATE SKIP LOCKED
), claimed AS (
  UPDATE jobs.job SET
    at = CASE WHEN lives THEN greatest(found.at, now) + $3::bigint + $2::bigint END,
    token = CASE WHEN lives THEN nextval('jobs.number') ELSE 0 END,
    attempts = attempts + lives::int,
    error = CASE WHEN lives THEN error ELSE 'no attempt came to an end' END,
    died = CASE WHEN lives THEN NULL ELSE now END
  FROM found, moment WHERE job.id = found.id
  RETURNING job.id, payload, due, found.at AS at, run, token, attempts)
SELECT id, payload, due, at, run, token, attempts FROM claimed WHERE token > 0 ORDER BY at)sql"},

    // -> now, the time of the first
    {"first", "SELECT jobs.now(), (SELECT min(at) FROM jobs.job)"},

    // time -> tells all who listen, if no job is earlier
    {"tell", "SELECT pg_notify('jobs', $1::bigint::text) WHERE NOT EXISTS (SELECT FROM jobs.job WHERE at < $1::bigint)"},

    // ids, tokens, verdicts, delays, errors -> how many were valid, the time of the first that waits again
    {"settle", R"sql(
WITH moment AS (SELECT jobs.now() AS now), outcome AS (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[]) AS o (id, token, verdict, delay, cause)
), over AS (
  DELETE FROM jobs.job USING outcome
  WHERE job.id = outcome.id AND job.token = outcome.token AND verdict = 'done' AND period = 0 RETURNING 1
), moved AS (
  UPDATE jobs.job SET
    at = CASE verdict WHEN 'dead' THEN NULL WHEN 'retry' THEN now + delay
         ELSE due + period * greatest(1, (now - due) / nullif(period, 0) + 1) END,  -- rounds that were missed are left out
    due = CASE verdict WHEN 'done' THEN due + period * greatest(1, (now - due) / nullif(period, 0) + 1) ELSE due END,
    run = CASE verdict WHEN 'done' THEN nextval('jobs.number') ELSE run END,
    attempts = CASE verdict WHEN 'done' THEN 0 ELSE attempts END,
    died = CASE verdict WHEN 'dead' THEN now END,
    token = 0, error = cause
  FROM outcome, moment
  WHERE job.id = outcome.id AND job.token = outcome.token AND NOT (verdict = 'done' AND period = 0) RETURNING at)
SELECT (SELECT count(*) FROM over) + (SELECT count(*) FROM moved), (SELECT min(at) FROM moved))sql"},

    // limit -> id, payload, due, attempts, error
    {"dead", R"sql(
SELECT id, payload, due, attempts, error FROM jobs.job WHERE died IS NOT NULL ORDER BY died DESC LIMIT $1::bigint)sql"},

    // id -> the time at which it waits now
    {"retry", "UPDATE jobs.job SET at = jobs.now(), died = NULL, attempts = 0 WHERE id = $1 AND died IS NOT NULL RETURNING at"},

    // fence, keep, limit -> 1, or 0 if a later leader was here; how many dead letters were deleted
    {"sweep_dead", R"sql(
WITH moment AS (SELECT jobs.now() AS now), lead AS (
  INSERT INTO jobs.leader (fence) VALUES ($1::bigint)
  ON CONFLICT (only_one) DO UPDATE SET fence = excluded.fence WHERE leader.fence <= excluded.fence RETURNING 1
), old AS (
  SELECT id FROM jobs.job WHERE died <= (SELECT now - $2::bigint FROM moment) ORDER BY died LIMIT $3::bigint FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM jobs.job USING old WHERE job.id = old.id AND EXISTS (SELECT FROM lead) RETURNING 1)
SELECT (SELECT count(*) FROM lead), (SELECT count(*) FROM gone))sql"},

    // -> jobs, of these late, dead letters
    {"counts", R"sql(
SELECT count(at), count(*) FILTER (WHERE at < (SELECT jobs.now())), count(died) FROM jobs.job)sql"},
};

}  // namespace jobs
