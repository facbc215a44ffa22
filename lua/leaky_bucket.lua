-- leaky_bucket: a queue of bounded length that drains at a steady rate.
--
-- Purpose: admits a request that finds room in the queue. One that queues is given
-- a turn in the outflow: it leaves when what was before it has drained. How
-- much that is follows from the level in the reply, as what the queue lacks of
-- being empty.
--
-- KEYS[1]     the queue (the only key touched)
-- ARGV[1..]   as in acquire.lua. The limit's rate is the outflow and its burst the
--             length of the queue. A turn is not farther ahead than the ttl; what
--             is about leases is not heard.
--
-- Returns what acquire.lua returns, with no lease. Its tokens are the room in the
-- queue; peek.lua and reset.lua know it.
--
-- State: that of bucket.lua, without leases: its tokens are the room.
--
-- Atomicity: one script, reads before the one save. Cluster: one key. Work: one
-- HMGET and one save.

local now = clock()
if #ARGV < 21 or math.fmod(#ARGV - 21, 3) ~= 0 then return redis.error_reply('ERR wrong number of arguments') end
for i = 3, #ARGV do
  if not tonumber(ARGV[i]) then return redis.error_reply('ERR an argument is not a number') end
end
local ttl = math.min(tonumber(ARGV[8]), LONGEST)
local b = load(limit_of(4), now, '', ttl, tonumber(ARGV[19]), tonumber(ARGV[20]))
if b.format > FORMAT then return level(b, now, NEWER) end
local limit = b.limit
refill(b, now)

-- As in acquire.lua: a queue that was seen and is gone was lost.
local charge, seen = tonumber(ARGV[17]), tonumber(ARGV[18])
local lost = not b.text and seen >= 0 and seen < b.tokens
if lost then b.tokens = seen end
local beyond = 0
if charge > 0 then
  local before = b.tokens
  b.tokens = math.min(b.tokens, math.max(b.tokens - charge, -limit.burst))
  beyond = charge - (before - b.tokens)
end
if charge < 0 then b.tokens = math.min(b.tokens - charge, limit.burst) end

-- The least room that a request may find whose turn is to come within the ttl. The
-- product is exact, being hardly above that of a whole queue.
local near = 0
if ttl < ceildiv(limit.burst * limit.den, limit.num) then
  near = limit.burst - floordiv(ttl * limit.num, limit.den)
end

local spare = floordiv(floordiv(part_of(b, limit.burst), 1000000) * tonumber(ARGV[21]), 1000) * 1000000
local granted, blocked = {}, false
for i = 22, #ARGV, 3 do
  local n, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local queues = math.fmod(tonumber(ARGV[i + 2]), 2) == 1
  local least = queues and math.max(n, near) or n
  if math.fmod(tonumber(ARGV[i + 2]), 4) >= 2 then least = least + spare end
  local can = 0
  if not blocked and b.tokens >= least then can = math.min(count, floordiv(b.tokens - least, n) + 1) end
  b.tokens = b.tokens - can * n
  if can < count and queues then blocked = true end
  granted[#granted + 1] = int(can)
end
save(b, now)

local reply = level(b, now, OK)
for _, x in ipairs({ tonumber(ARGV[3]), 0, 0, 0, 0, 0, beyond * 2 + (lost and 1 or 0) }) do reply[#reply + 1] = int(x) end
for i = 1, #granted do reply[#reply + 1] = granted[i] end
return complete(reply, b)
