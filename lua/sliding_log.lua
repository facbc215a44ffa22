-- sliding_log: at most n tokens in every window of a period, by a log of what
-- was admitted when.
--
-- Purpose: decides waiting requests exactly.
--
-- KEYS, ARGV and replies: see window.lua. There are no leases: wishes for one
-- are not heard. What is given back (charge < 0) is not taken off the log, since
-- nobody knows which entry it is of: taken off the last it would mint.
--
-- State, one sorted set. A member is "sum weight", where the sum is of all weights
-- up to it, in 16 digits, and so is another one for each call and sorts behind
-- those of the same microsecond; its score is the instant. What
-- the window holds is the difference of two sums. A message is one member, however
-- many requests it carries. The member of score +inf is "limit|skew|stands": the
-- limit (see bucket.lua), by how many us the log's clock is ahead of that of Redis,
-- which may have stepped back, and until when the limit stands.
--
-- Atomicity: one script, reads before the writes. Cluster: one key. Work: at most
-- 512 members that have left are removed in a call; a search reads one member for
-- each bit of their number; a log of which all has left is unlinked. The caller
-- sees to it that n is at most 10,000, which bounds the members. The key lives
-- for one period after the last member.

local now = clock()
local op = opening()
if not op then return redis.error_reply('ERR wrong arguments') end

local top = redis.call('ZREVRANGE', KEYS[1], 0, 1, 'WITHSCORES')
local text, skew, stands = string.match(top[1] or '', '^(.*)|(%d+)|(%d+)$')
local w = begin(text, stands, op, now)
if w.newer then return head(w, NEWER) end
skew = tonumber(skew or 0)

local function parse(member)
  local sum, weight = string.match(member, '^(%d+) (%d+)$')
  return tonumber(sum), tonumber(weight)
end

-- The log's clock does not go back.
local last = tonumber(top[4] or 0)
skew = math.max(skew, last - now)
local t = now + skew
local sum, base, card, gone = 0, 0, 0, 0
local anew = top[1] and (not text or not top[3] or last <= t - w.period)
if not anew and top[3] then
  sum = parse(top[3])
  local oldest = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. int(t - w.period), '+inf', 'LIMIT', 0, 1)
  local s, weight = parse(oldest[1])
  base = s - weight
  card = redis.call('ZCARD', KEYS[1]) - 1
  gone = redis.call('ZCOUNT', KEYS[1], '-inf', int(t - w.period))
end
if anew then skew, t = 0, now end

-- measure is called when all is written: the search goes by what is stored.
local function measure()
  local used = sum - base
  w.left = lower(w.n - used, w.n)
  w.reset = used > 0 and last + w.period - t or 0
  w.fits = function(n)
    if n <= w.left then return 0 end
    -- The first member with which enough leaves.
    local enough = sum + n - w.n
    local low, high, at = 0, card - 1, last
    while low <= high do
      local middle = math.floor((low + high) / 2)
      local m = redis.call('ZRANGE', KEYS[1], middle, middle, 'WITHSCORES')
      if parse(m[1]) >= enough then
        high, at = middle - 1, tonumber(m[2])
      else
        low = middle + 1
      end
    end
    return at + w.period - t
  end
end

if op ~= 'acquire' then
  if op == 'reset' then
    redis.call('UNLINK', KEYS[1])
    sum, base = 0, 0
  end
  measure()
  return seen(w)
end

-- A charge is made as far as one limit of debt.
local left = w.n - (sum - base)
local charge = math.max(0, owed(w, top[1]))
local weight = math.max(0, math.min(charge, left + w.n))
w.beyond = charge - weight
local rest, granted, missing = decide(w, left - weight)
weight = left - rest

if anew then redis.call('UNLINK', KEYS[1]) end
if gone > 0 then
  gone = math.min(gone, 512)
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, gone - 1)
  card = card - gone
end
if weight > 0 then
  sum, last, card = sum + weight, t, card + 1
  redis.call('ZADD', KEYS[1], int(t), string.format('%016.0f %.0f', sum, weight))
end
if sum > 0 then
  local header = limit_text(w.limit) .. '|' .. int(skew) .. '|' .. int(w.stands)
  if anew or header ~= top[1] then
    if top[1] and not anew then redis.call('ZREM', KEYS[1], top[1]) end
    redis.call('ZADD', KEYS[1], '+inf', header)
  end
  redis.call('PEXPIRE', KEYS[1], int(ceildiv(last + w.period - t, 1000) + 1000))
end
measure()
return told(w, tonumber(ARGV[3]), 0, granted, missing)
