// The functions of the store in Redis, in Lua. Redis runs one at a time, so each is one atomic step, by the clock of Redis.
//
// Their one key is a prefix, in braces, so that all keys are in one slot of a cluster:
//
//   PREFIX:due       sorted set of the ids of jobs; the score is when a job may be claimed, in microseconds
//   PREFIX:dead      sorted set of the ids of dead letters; the score is the time of death
//   PREFIX:job:ID    hash: payload, due, period, run, token ("0": nobody has claimed it), attempts, error
//   PREFIX:number    the last number that a run or a claim was given
//   PREFIX:fence     the highest fencing token that a leader has shown
//   PREFIX:earlier   channel with the time of each job that becomes the first of all
#pragma once

namespace jobs {

inline constexpr const char* kRedisLibrary = R"lua(#!lua name=jobs

local function text(number) return string.format('%.0f', number) end

-- What a function sees of one prefix.
local function open(prefix)
  local time = redis.call('TIME')
  local all = {prefix = prefix, due = prefix .. ':due', dead = prefix .. ':dead', now = time[1] * 1000000 + time[2]}
  function all.job(id) return prefix .. ':job:' .. id end
  function all.number() return redis.call('INCR', prefix .. ':number') end
  function all.first()
    local found = redis.call('ZRANGE', all.due, 0, 0, 'WITHSCORES')
    return found[2] and tonumber(found[2])
  end
  function all.place(id, time) redis.call('ZADD', all.due, text(time), id) end
  function all.bury(id, error)
    redis.call('HSET', all.job(id), 'token', 0, 'error', error)
    redis.call('ZREM', all.due, id)
    redis.call('ZADD', all.dead, text(all.now), id)
  end
  return all
end

-- Registers a function that may put jobs first, and tells the listeners if it has.
local function register(name, body)
  redis.register_function('jobs_' .. name, function(keys, args)
    local all = open(keys[1])
    local before = all.first()
    local result = body(all, args)
    local after = all.first()
    if after and (not before or after < before) then redis.call('PUBLISH', all.prefix .. ':earlier', text(after)) end
    return result
  end)
end

-- (id, payload, time, '1' if it counts from now, period)... -> how many
register('put', function(all, args)
  for i = 1, #args, 5 do
    local id, due = args[i], tonumber(args[i + 2])
    if args[i + 3] == '1' then due = due + all.now end
    redis.call('HSET', all.job(id), 'payload', args[i + 1], 'due', text(due), 'period', args[i + 4], 'run', all.number(),
               'token', 0, 'attempts', 0, 'error', '')
    redis.call('ZREM', all.dead, id)
    all.place(id, due)
  end
  return #args / 5
end)

-- id -> 0: gone, 1: was waiting, 2: was claimed
register('cancel', function(all, args)
  local token = redis.call('HGET', all.job(args[1]), 'token')
  if not token then return 0 end
  redis.call('ZREM', all.due, args[1])
  redis.call('ZREM', all.dead, args[1])
  redis.call('DEL', all.job(args[1]))
  return token == '0' and 1 or 2
end)

-- limit, ahead, visibility, max attempts -> now, time of the first that is left or '', {id, payload, due, at, run, token, attempt}...
register('claim', function(all, args)
  local limit, ahead, visibility, most = args[1], tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local found = redis.call('ZRANGEBYSCORE', all.due, '-inf', text(all.now + ahead), 'WITHSCORES', 'LIMIT', 0, limit)
  local result = {text(all.now), ''}
  for i = 1, #found, 2 do
    local id, at = found[i], tonumber(found[i + 1])
    local job = redis.call('HMGET', all.job(id), 'payload', 'due', 'run', 'attempts')
    if tonumber(job[4]) >= most then
      all.bury(id, 'no attempt came to an end')
    else
      local token, attempt = all.number(), job[4] + 1
      redis.call('HSET', all.job(id), 'token', token, 'attempts', attempt)
      -- Claims look ahead, so what is to be visible at a time has its place so much later.
      all.place(id, math.max(at, all.now) + visibility + ahead)
      result[#result + 1] = {id, job[1], job[2], text(at), job[3], text(token), text(attempt)}
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
    local job = redis.call('HMGET', all.job(id), 'token', 'due', 'period')
    if job[1] == args[i + 1] then
      local due, period = tonumber(job[2]), tonumber(job[3])
      valid = valid + 1
      if verdict == 'retry' then
        redis.call('HSET', all.job(id), 'token', 0, 'error', args[i + 4])
        all.place(id, all.now + args[i + 3])
      elseif verdict == 'dead' then
        all.bury(id, args[i + 4])
      elseif period > 0 then
        due = due + period * math.max(1, math.floor((all.now - due) / period) + 1)  -- rounds that were missed are left out
        redis.call('HSET', all.job(id), 'due', text(due), 'run', all.number(), 'token', 0, 'attempts', 0, 'error', '')
        all.place(id, due)
      else
        redis.call('ZREM', all.due, id)
        redis.call('DEL', all.job(id))
      end
    end
  end
  return valid
end)

-- limit -> {id, payload, due, attempts, error}...
register('dead', function(all, args)
  local result = {}
  for i, id in ipairs(redis.call('ZREVRANGE', all.dead, 0, args[1] - 1)) do
    local job = redis.call('HMGET', all.job(id), 'payload', 'due', 'attempts', 'error')
    result[i] = {id, job[1], job[2], job[3], job[4]}
  end
  return result
end)

-- id -> 1, or 0 if there is no such dead letter
register('retry', function(all, args)
  if redis.call('ZREM', all.dead, args[1]) == 0 then return 0 end
  redis.call('HSET', all.job(args[1]), 'attempts', 0)
  all.place(args[1], all.now)
  return 1
end)

-- fence, keep, limit -> how many dead letters were deleted, or -1 if a later leader was here
register('sweep_dead', function(all, args)
  local fence = tonumber(args[1])
  if fence < tonumber(redis.call('GET', all.prefix .. ':fence') or '0') then return -1 end
  redis.call('SET', all.prefix .. ':fence', text(fence))
  local old = redis.call('ZRANGEBYSCORE', all.dead, '-inf', text(all.now - args[2]), 'LIMIT', 0, args[3])
  for _, id in ipairs(old) do
    redis.call('ZREM', all.dead, id)
    redis.call('DEL', all.job(id))
  end
  return #old
end)

-- -> jobs, of these late, dead letters
register('counts', function(all)
  local late = redis.call('ZCOUNT', all.due, '-inf', '(' .. text(all.now))
  return {redis.call('ZCARD', all.due), late, redis.call('ZCARD', all.dead)}
end)
)lua";

}  // namespace jobs
