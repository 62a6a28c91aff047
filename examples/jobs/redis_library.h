// The functions of the store in Redis, in Lua. Redis runs one at a time, so each is one atomic step, by the clock of Redis.
//
// Their one key is a prefix, in braces, so that all keys are in one slot of a cluster:
//
//   PREFIX:due       sorted set of the ids of jobs; the score is when a job may be claimed, in microseconds
//   PREFIX:dead      sorted set of the ids of dead letters; the score is the time of death
//   PREFIX:job:ID    hash: payload, due, period, run, token ("0": nobody has claimed it), attempts, error; of a dead letter, died
//   PREFIX:number    the last number that a run or a claim was given
//   PREFIX:fence     the highest fencing token that a leader has shown
//   PREFIX:earlier   channel with the time of each job that becomes the first of all
//
// Redis may lose any of these keys alone, because it evicts keys when its memory is full, and somebody may delete or overwrite one.
// So a function takes a job only as load() returns it, which drops what is not whole, and mend() puts jobs where they belong. Each
// function returns its result, how many jobs it has put back, and what it has dropped.
//
// The number in the names changes with what the functions take and return. So replicas of two versions may share a Redis.
#pragma once

namespace jobs {

inline constexpr const char* kRedisLibrary = R"lua(#!lua name=jobs_2

local exact = 2 ^ 53  -- up to which all whole numbers are

local function text(number) return string.format('%.0f', math.max(-exact, math.min(exact, number))) end
-- The number that text() has written, or nil if it is none.
local function whole(written) return written and #written <= 17 and written:match('^%-?%d+$') and tonumber(written) or nil end

-- What a function sees of one prefix.
local function open(prefix)
  local time = redis.call('TIME')
  local all = {prefix = prefix, due = prefix .. ':due', dead = prefix .. ':dead', now = time[1] * 1000000 + time[2],
               repaired = 0, dropped = {}}

  -- Whether a key is of a type. One of another type is not from here and in the way.
  local function is(kind, key)
    local found = redis.call('TYPE', key).ok
    if found ~= kind and found ~= 'none' then
      redis.call('DEL', key)
      table.insert(all.dropped, key)
    end
    return found == kind
  end
  is('zset', all.due)
  is('zset', all.dead)

  function all.job(id) return prefix .. ':job:' .. id end
  function all.read(name) return is('string', prefix .. name) and whole(redis.call('GET', prefix .. name)) or 0 end
  -- Not below the clock, so that numbers rise even if the last one is lost.
  function all.number()
    local number = text(math.max(all.read(':number') + 1, all.now))
    redis.call('SET', prefix .. ':number', number)
    return number
  end
  function all.first()
    local found = redis.call('ZRANGE', all.due, 0, 0, 'WITHSCORES')
    return found[2] and tonumber(found[2])
  end
  function all.place(id, time) redis.call('ZADD', all.due, text(time), id) end
  function all.remove(id)
    return redis.call('ZREM', all.due, id) + redis.call('ZREM', all.dead, id) + redis.call('DEL', all.job(id))
  end
  -- The job, or nil if there is none that is whole. Then nothing is left of it.
  function all.load(id)
    local key = all.job(id)
    if redis.call('TYPE', key).ok == 'hash' then
      local found = redis.call('HMGET', key, 'payload', 'due', 'period', 'run', 'token', 'attempts', 'died', 'error')
      local job = {payload = found[1], due = whole(found[2]), period = whole(found[3]), run = whole(found[4]),
                   token = whole(found[5]), attempts = whole(found[6]), died = whole(found[7]), error = found[8] or ''}
      if job.payload and job.due and job.period and job.run and job.token and job.attempts then return job end
    end
    if all.remove(id) > 0 then table.insert(all.dropped, id) end
  end
  function all.bury(id, error)
    redis.call('HSET', all.job(id), 'token', 0, 'error', error, 'died', text(all.now))
    redis.call('ZREM', all.due, id)
    redis.call('ZADD', all.dead, text(all.now), id)
  end
  return all
end

-- Registers a function that may put jobs first, and tells the listeners if it has.
local function register(name, body, flags)
  local function called(keys, args)
    local all = open(keys[1])
    local before = all.first()
    local result = body(all, args)
    local after = all.first()
    if after and (not before or after < before) then redis.call('PUBLISH', all.prefix .. ':earlier', text(after)) end
    return {result, all.repaired, all.dropped}
  end
  -- When the memory is full, jobs must still run and end, or it stays full.
  redis.register_function{function_name = 'jobs_2_' .. name, callback = called, flags = flags or {'allow-oom'}}
end

-- (id, payload, time, '1' if it counts from now, period)... -> how many
register('put', function(all, args)
  for i = 1, #args, 5 do
    local id, due = args[i], tonumber(args[i + 2])
    if args[i + 3] == '1' then due = due + all.now end
    redis.call('DEL', all.job(id))
    redis.call('HSET', all.job(id), 'payload', args[i + 1], 'due', text(due), 'period', args[i + 4], 'run', all.number(),
               'token', 0, 'attempts', 0, 'error', '')
    redis.call('ZREM', all.dead, id)
    all.place(id, due)
  end
  return #args / 5
end, {})

-- id -> 0: gone, 1: was waiting, 2: was claimed
register('cancel', function(all, args)
  local key = all.job(args[1])
  local token = redis.call('TYPE', key).ok == 'hash' and redis.call('HGET', key, 'token') or '0'
  if all.remove(args[1]) == 0 then return 0 end
  return token == '0' and 1 or 2
end)

-- limit, ahead, visibility, max attempts
-- -> now, time of the first that is left or '', {id, payload, due, at, run, token, attempt}...
register('claim', function(all, args)
  local limit, ahead, visibility, most = args[1], tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local found = redis.call('ZRANGEBYSCORE', all.due, '-inf', text(all.now + ahead), 'WITHSCORES', 'LIMIT', 0, limit)
  local result = {text(all.now), ''}
  for i = 1, #found, 2 do
    local id, at = found[i], tonumber(found[i + 1])
    local job = all.load(id)
    if job and job.attempts >= most then
      all.bury(id, 'no attempt came to an end')
    elseif job then
      local token, attempt = all.number(), text(job.attempts + 1)
      redis.call('HSET', all.job(id), 'token', token, 'attempts', attempt)
      -- Claims look ahead, so what is to be visible at a time has its place so much later.
      all.place(id, math.max(at, all.now) + visibility + ahead)
      result[#result + 1] = {id, job.payload, text(job.due), text(at), text(job.run), token, attempt}
    end
  end
  local first = all.first()
  if first then result[2] = text(first) end
  return result
end)

-- (id, token, 'done' or 'retry' or 'dead', delay, error)... -> how many were valid
register('settle', function(all, args)
  local valid = 0
  for i = 1, #args, 5 do
    local id, verdict = args[i], args[i + 2]
    local job = all.load(id)
    if job and job.token == tonumber(args[i + 1]) then
      valid = valid + 1
      if verdict == 'retry' then
        redis.call('HSET', all.job(id), 'token', 0, 'error', args[i + 4])
        all.place(id, all.now + args[i + 3])
      elseif verdict == 'dead' then
        all.bury(id, args[i + 4])
      elseif job.period > 0 then
        local rounds = math.max(1, math.floor((all.now - job.due) / job.period) + 1)  -- those that were missed are left out
        local due = job.due + job.period * rounds
        redis.call('HSET', all.job(id), 'due', text(due), 'run', all.number(), 'token', 0, 'attempts', 0, 'error', '')
        all.place(id, due)
      else
        all.remove(id)
      end
    end
  end
  return valid
end)

-- limit -> {id, payload, due, attempts, error}...
register('dead', function(all, args)
  local result = {}
  for _, id in ipairs(redis.call('ZREVRANGE', all.dead, 0, args[1] - 1)) do
    local job = all.load(id)
    if job then result[#result + 1] = {id, job.payload, text(job.due), text(job.attempts), job.error} end
  end
  return result
end)

-- id -> 1, or 0 if there is no such dead letter
register('retry', function(all, args)
  if not redis.call('ZSCORE', all.dead, args[1]) or not all.load(args[1]) then return 0 end
  redis.call('ZREM', all.dead, args[1])
  redis.call('HSET', all.job(args[1]), 'attempts', 0)
  redis.call('HDEL', all.job(args[1]), 'died')
  all.place(args[1], all.now)
  return 1
end)

-- fence, keep, limit -> how many dead letters were deleted, or -1 if a later leader was here
register('sweep_dead', function(all, args)
  local fence = tonumber(args[1])
  if fence < all.read(':fence') then return -1 end
  redis.call('SET', all.prefix .. ':fence', text(fence))
  local old = redis.call('ZRANGEBYSCORE', all.dead, '-inf', text(all.now - args[2]), 'LIMIT', 0, args[3])
  for _, id in ipairs(old) do all.remove(id) end
  return #old
end)

-- cursor, how many keys to look at, visibility -> the cursor of the next call, '0' at the end
register('mend', function(all, args)
  local found = redis.call('SCAN', args[1], 'MATCH', all.job(''):gsub('[%[%]*?^\\-]', '\\%0') .. '*', 'COUNT', args[2])
  for _, key in ipairs(found[2]) do
    local id = key:sub(#all.job('') + 1)
    local job = all.load(id)
    if job and not whole(redis.call('ZSCORE', all.due, id)) and not redis.call('ZSCORE', all.dead, id) then
      if job.died then
        redis.call('ZADD', all.dead, text(job.died), id)
      else
        all.place(id, job.token > 0 and all.now + args[3] or job.due)  -- as long as a replica may have it
      end
      all.repaired = all.repaired + 1
    end
  end
  return found[1]
end)

-- -> jobs, of these late, dead letters
register('counts', function(all)
  local late = redis.call('ZCOUNT', all.due, '-inf', '(' .. text(all.now))
  return {redis.call('ZCARD', all.due), late, redis.call('ZCARD', all.dead)}
end)
)lua";

}  // namespace jobs
